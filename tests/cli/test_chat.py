"""``organism chat`` against a real server: one turn, a talk, and what cannot be had."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.command import Ran, environment, on_terminal, organism, start_process
from tests.server.served import TOKEN, Served, served
from tests.server.sessions.talking import at_gate, talking
from tests.server.turns.talkers import talkers


@pytest.fixture
async def server(tmp_path: Path) -> object:
    async with served(talkers(tmp_path)) as serving:
        yield serving


async def chat(server: Served, *arguments: str, stdin: str = "") -> Ran:
    named = {"ORGANISM_URL": server.url, "ORGANISM_TOKEN": TOKEN, "ORGANISM_USER": "dan"}
    return await organism("chat", *arguments, stdin=stdin, **named)


@pytest.mark.parametrize("agent", ["echo", "teller"])
async def test_one_turn_is_shown_whether_or_not_the_agent_streams(server: Served, agent: str) -> None:
    ran = await chat(server, agent, "hello")
    assert (ran.code, ran.out) == (0, "You said: hello\n"), ran.err


async def test_only_newlines_end_a_line_of_the_stream(parrots: Served) -> None:
    ran = await chat(parrots, "parrot", "a\u2028b\u2029c\x85d")
    assert (ran.code, ran.out, ran.err) == (0, "a\ufffdb\ufffdc\ufffdd after 0: \n", "")


async def test_with_json_chat_prints_the_servers_answer(server: Served) -> None:
    ran = await chat(server, "teller", "-", "--json", stdin="hello")
    assert ran.json["messages"] == [{"role": "assistant", "content": "You said: hello"}]


@pytest.fixture
async def parrots(tmp_path: Path) -> AsyncIterator[Served]:
    """Agents that say what they remember."""
    async with talking(tmp_path) as running:
        yield running


async def test_a_conversation_is_a_session_that_can_be_gone_on_with(parrots: Served) -> None:
    ran = await chat(parrots, "parrot", stdin="one\n\ntwo\n")
    assert ran.out.splitlines() == ["one after 0: ", "two after 2: one | one after 0: "]
    ((session,),) = [[row["id"] for row in (await sessions(parrots))["sessions"]]]
    again = await chat(parrots, "parrot", "--session", session, stdin="three\n")
    assert again.out.splitlines()[:4] == ["> one", "one after 0: ", "> two", "two after 2: one | one after 0: "]
    assert again.out.splitlines()[4].startswith("three after 4: ")
    one = await chat(parrots, "parrot", "four", "--session", session)
    assert one.out.startswith("four after 6: ")
    assert (await sessions(parrots))["total"] == 1


async def test_with_json_a_line_in_is_an_answer_out(parrots: Served) -> None:
    ran = await chat(parrots, "parrot", "--json", stdin="one\ntwo\n")
    replies = [orjson.loads(line) for line in ran.out.splitlines()]
    assert [reply["reply"] for reply in replies] == ["one after 0: ", "two after 2: one | one after 0: "]
    assert len({reply["session_id"] for reply in replies}) == 1


async def test_a_conversation_knows_its_commands(parrots: Served) -> None:
    ran = await chat(parrots, "parrot", stdin="/help\n/history\none\n/history\n")
    assert ran.out.splitlines() == ["one after 0: ", "> one", "one after 0: "]
    assert "/compact" in ran.err


async def test_anyone_elses_session_is_not_there(parrots: Served) -> None:
    await chat(parrots, "parrot", stdin="one\n")
    session = (await sessions(parrots))["sessions"][0]["id"]
    ran = await chat(parrots, "parrot", "--session", session, "--user", "eve", stdin="two\n")
    assert (ran.code, ran.out) == (5, "")


async def sessions(server: Served) -> Any:
    headers = {**server.bearer, "SPASS-User-Id": "dan"}
    return (await server.client.get("/a1/agents/parrot/sessions", headers=headers)).json()


async def test_ctrl_c_stops_the_answer_and_the_conversation_goes_on(parrots: Served) -> None:
    named = {"ORGANISM_URL": parrots.url, "ORGANISM_TOKEN": TOKEN, "ORGANISM_USER": "dan"}
    process = await start_process("chat", "parrot", env=environment(**named), stdin=PIPE)
    assert process.stdin is not None
    process.stdin.write(b"wait\n")
    await at_gate(parrots, "wait")
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate(b"next\n")
    assert (process.returncode, out.decode()) == (0, "next after 1: wait\n"), err.decode()
    assert "stopped" in err.decode()


async def test_a_failed_turn_exits_with_1_and_says_why(server: Served) -> None:
    ran = await chat(server, "broken", "hello")
    assert (ran.code, ran.out) == (1, "")
    assert "The handling failed" in ran.err


async def test_a_paused_agent_is_reported_at_once_with_exit_7_or_waited_for(server: Served) -> None:
    await server.call("POST", "/agents/teller/pause")
    ran = await chat(server, "teller", "hello")
    assert (ran.code, ran.out) == (7, "")
    assert "organism resume teller" in ran.err
    assert "organism chat --wait" in ran.err
    named = {"ORGANISM_URL": server.url, "ORGANISM_TOKEN": TOKEN, "ORGANISM_USER": "dan"}
    process = await start_process("chat", "teller", "hello", "--wait", env=environment(**named))
    assert process.stderr is not None
    assert b"The agent teller is paused." in await process.stderr.readline()
    await server.call("POST", "/agents/teller/resume")
    out, err = await process.communicate()
    assert (process.returncode, out.decode()) == (0, "You said: hello\n"), err.decode()


async def test_an_agents_answer_cannot_control_the_terminal(server: Served) -> None:
    shown = await on_terminal("chat", "echo", "\x9b2Jhello", ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)
    assert "\x9b" not in shown
    assert "\ufffd2Jhello" in shown


class Terminal:
    """A person's end of a terminal in which a command runs."""

    def __init__(self) -> None:
        self._own, self.command = pty.openpty()
        self._seen = ""

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._own, text.encode())

    async def until(self, text: str) -> str:
        """What appears up to this text, after what was read before."""
        async with asyncio.timeout(30):
            while text not in self._seen:
                self._seen += (await asyncio.to_thread(os.read, self._own, 4096)).decode()
        before, _, self._seen = self._seen.partition(text)
        return before


async def test_in_a_terminal_a_refused_command_does_not_end_the_conversation(parrots: Served) -> None:
    terminal = Terminal()
    named = {"ORGANISM_URL": parrots.url, "ORGANISM_TOKEN": TOKEN, "ORGANISM_USER": "dan", "TERM": "dumb"}
    ends = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.command)
    process = await start_process("chat", "parrot", env=environment(**named), **ends)
    await terminal.until("> ")
    terminal.type("one\n")
    await terminal.until("one after 0: ")
    await terminal.until("> ")
    terminal.type("/compact\n")
    assert "There is nothing to summarise" in await terminal.until("> ")
    terminal.type("two\n")
    await terminal.until("two after 2: one | one after 0: ")
    await terminal.until("> ")
    terminal.type("\x04")
    await terminal.until("go on with: organism chat parrot --session ses-")
    assert await process.wait() == 0
