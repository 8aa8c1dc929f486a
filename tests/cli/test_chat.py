"""``organism chat`` against a real server: one turn, a talk, and what cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Ran, on_terminal, organism
from tests.server.invoking.talkers import talkers
from tests.server.served import TOKEN, Served, served


@pytest.fixture
async def server(tmp_path: Path) -> object:
    async with served(talkers(tmp_path)) as serving:
        yield serving


async def chat(server: Served, *arguments: str, stdin: str = "") -> Ran:
    return await organism("chat", *arguments, stdin=stdin, ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)


@pytest.mark.parametrize("agent", ["echo", "teller"])
async def test_one_turn_is_shown_whether_or_not_the_agent_streams(server: Served, agent: str) -> None:
    ran = await chat(server, agent, "hello")
    assert (ran.code, ran.out) == (0, "You said: hello\n"), ran.err


async def test_with_json_chat_prints_the_servers_answer(server: Served) -> None:
    ran = await chat(server, "teller", "-", "--json", stdin="hello")
    assert ran.json["data"]["outputs"]["messages"] == [{"role": "assistant", "content": "You said: hello"}]


async def test_a_conversation_sends_the_earlier_messages(server: Served) -> None:
    ran = await chat(server, "echo", stdin="one\ntwo\n")
    assert ran.out.splitlines() == ["You said: one", "You said: two, after one and You said: one"]


async def test_a_failed_turn_exits_with_1_and_says_why(server: Served) -> None:
    ran = await chat(server, "broken", "hello")
    assert (ran.code, ran.out) == (1, "")
    assert "The handling failed" in ran.err


async def test_an_agents_answer_cannot_control_the_terminal(server: Served) -> None:
    shown = await on_terminal("chat", "echo", "\x9b2Jhello", ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)
    assert "\x9b" not in shown
    assert "\ufffd2Jhello" in shown
