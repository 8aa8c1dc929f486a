"""The verbs as people and scripts run them, against a real server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.command import Ran, organism
from tests.server.served import TOKEN, Served


async def ask(server: Served, *arguments: str | Path, stdin: str = "") -> Ran:
    """Run a verb against the server, with its token."""
    return await organism(*arguments, stdin=stdin, ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)


async def test_help_is_there_at_once() -> None:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        ran = await organism("--help")
        took.append(time.perf_counter() - began)
        assert ran.code == 0
        assert "Exit codes:" in ran.out
    assert min(took) < 0.3


async def test_inject_sends_and_shows_the_replies(hello: Served) -> None:
    ran = await ask(hello, "inject", "greeter", '{"name":"Dan"}', "--wait", "10")
    assert ran.code == 0, ran.err
    assert "response-handler → console ShoutedResponse" in ran.out
    assert "completed" in ran.out


async def test_inject_reads_a_file_or_standard_input_and_speaks_json(hello: Served, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"name":"File"}')
    of_file = await ask(hello, "inject", "greeter", f"@{tmp_path / 'p.json'}", "--wait", "10", "--json")
    of_input = await ask(hello, "inject", "greeter", "--json", stdin="<Greeting><name>Pipe</name></Greeting>")
    assert of_file.json["replies"][0]["payload"]["message"] == "HELLO, FILE!"
    assert set(of_input.json) == {"thread_id", "message_id", "position"}


async def test_the_same_key_sends_once(hello: Served) -> None:
    ran = [await ask(hello, "inject", "greeter", '{"name":"D"}', "--key", "k", "--json") for _ in range(2)]
    assert ran[0].json == ran[1].json


async def test_what_the_server_refuses_is_told_field_by_field(hello: Served) -> None:
    ran = await ask(hello, "inject", "greeter", '{"nme":"Dan"}')
    assert (ran.code, ran.out) == (1, "")
    assert "/payload/name: " in ran.err
    assert "next: " in ran.err


@pytest.mark.parametrize(
    "arguments",
    [["inject", "greeter", "nope"], ["inject", "greeter", "@/no/file"], ["pause"], ["pause", "a", "--all"], ["dance"]],
)
async def test_wrong_usage_is_exit_2(hello: Served, arguments: list[str]) -> None:
    assert (await ask(hello, *arguments)).code == 2


async def test_agents_and_threads_are_tables_or_json(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    table, json = await ask(hello, "agents"), await ask(hello, "agents", "--json")
    assert table.out.splitlines()[0].startswith("AGENT")
    assert [agent["name"] for agent in json.json] == ["greeter", "shouter", "response-handler"]
    threads = await ask(hello, "threads", "--status", "completed")
    assert thread in threads.out
    assert (await ask(hello, "threads", "--status", "killed", "--json")).json == []


async def test_pause_resume_and_kill_show_what_stands_then(hello: Served) -> None:
    assert (await ask(hello, "pause", "shouter")).out == "shouter paused\n"
    thread = (await hello.inject(wait=None))["thread_id"]
    assert (await ask(hello, "pause", "--thread", thread, "--json")).json["paused"] is True
    assert (await ask(hello, "resume", "--thread", thread)).out == f"{thread} active\n"
    assert (await ask(hello, "kill", thread)).out == f"{thread} killed\n"
    assert (await ask(hello, "pause", "--all", "--json")).json["status"] == "paused"
    assert (await ask(hello, "resume", "--all")).out == "hello-world running\n"


async def test_reload_and_stop_say_what_they_did(hello: Served) -> None:
    assert (await ask(hello, "reload")).out == "nothing has changed\n"
    assert (await ask(hello, "stop", "--json")).json["status"] == "stopping"


async def test_a_server_that_is_not_there_is_exit_3() -> None:
    ran = await organism("agents", "--url", "http://127.0.0.1:1")
    assert ran.code == 3
    assert "organism serve" in ran.err


async def test_a_token_that_is_not_taken_is_exit_4(hello: Served) -> None:
    ran = await organism("agents", "--url", hello.url, "--token", "wrong")
    watched = await organism("tail", "--url", hello.url, "--token", "wrong")
    assert (ran.code, watched.code) == (4, 4)


async def test_tail_refuses_a_position_that_is_not_there(hello: Served) -> None:
    ran = await ask(hello, "tail", "--since", "99999")
    assert ran.code == 1
    assert "ahead of the log" in ran.err
