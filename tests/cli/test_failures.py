"""A failure from the command line alone: which line it was, and how it is resolved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.command import organism
from tests.cli.test_verbs import ask
from tests.flows.test_failures import ASKERS, CHAIN
from tests.flows.world import World
from tests.server.api.test_dead_letters import STRAY
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, token, write_tokens

AT_FAULT = "in find: return HandlerResponse.respond(Told(NAMES[name]))"


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Served]:
    """Listeners that ask each other; the innermost fails, and one sends where it may not."""
    async with served(World(tmp_path, CHAIN + STRAY, {**ASKERS, "stray": {}}).config) as server:
        yield server


async def test_inject_wait_shows_the_line_that_raised_and_what_failed_with_it(asking: Served) -> None:
    ran = await ask(asking, "inject", "outer", '{"text":"ann"}', "--wait", "20")
    assert ran.code == 1
    lines = ran.out.splitlines()
    first = next(at for at, line in enumerate(lines) if "KeyError: 'ann'" in line)
    assert lines[first + 1].startswith("    actors/play.py:")
    assert lines[first + 1].endswith(AT_FAULT)
    assert [line.split()[1] for line in lines if line.startswith("  msg-")] == ["middle", "outer"]
    listed = (await ask(asking, "dead-letters", "list")).out
    assert AT_FAULT in listed


async def test_a_send_that_was_refused_is_reported_by_inject_wait_and_its_exit_code(asking: Served) -> None:
    ran = await ask(asking, "inject", "stray", '{"text":"ann"}', "--wait", "20")
    assert (ran.code, "stray may not send to inner" in ran.out) == (1, True)
    result = await ask(asking, "inject", "stray", '{"text":"ann"}', "--wait", "20", "--json")
    (letter,) = result.json["dead_letters"]
    assert (result.code, letter["code"], result.json["thread"]["status"]) == (1, "routing", "completed")


async def test_a_token_that_may_only_inject_is_shown_no_lines(tmp_path: Path) -> None:
    made = World(tmp_path, CHAIN, dict(ASKERS))
    write_tokens(tmp_path, {"default": {"sender": ["inject"]}})
    async with served(made.config) as server:
        named = {"ORGANISM_URL": server.url, "ORGANISM_TOKEN": token("default", "sender")}
        ran = await organism("inject", "inner", '{"text":"ann"}', "--wait", "20", **named)
        refused = await server.client.get("/api/v1/dead-letters", headers=bearer("default", "sender"))
    assert (ran.code, "KeyError" in ran.err, "play.py" in ran.out + ran.err) == (1, True, False)
    assert refused.status_code == 403


async def test_all_dead_letters_of_a_thread_are_replayed_or_discarded_by_one_command(asking: Served) -> None:
    thread = (await asking.inject("outer", {"text": "ann"}))["thread_id"]
    async with asking.socket() as socket:
        assert (await ask(asking, "dead-letters", "replay", "--thread", thread)).out == f"{thread} active\n"
        await Frames(socket).until("thread_updated", status="error")
    assert (await ask(asking, "dead-letters", "discard", "--thread", thread)).code == 0
    assert (await ask(asking, "dead-letters", "list")).out == "no dead letters\n"
    for wrong in (
        ("replay",),
        ("replay", "--thread", thread, "--group", "grp-1"),
        ("replay", "--group", "grp-1", "--payload", "1"),
        ("discard", "msg-1", "--thread", thread),
        ("replay", "--thread", thread, "--payload", "1"),
    ):
        assert (await ask(asking, "dead-letters", *wrong)).code == 2


async def test_failures_that_are_alike_are_listed_as_one_and_resolved_by_one_command(asking: Served) -> None:
    for _ in range(2):
        await asking.inject("inner", {"text": "ann"})
    killed = (await asking.inject("inner", {"text": "bob"}))["thread_id"]
    await asking.call("POST", f"/threads/{killed}/kill")
    listed = await ask(asking, "dead-letters", "list", "--group")
    (line,) = [line for line in listed.out.splitlines() if "grp-" in line]
    group, count, agent, *_ = line.split()
    assert (count, agent, "actors/play.py:" in line) == ("3", "inner", True)
    replayed = await ask(asking, "dead-letters", "replay", "--group", group)
    assert replayed.out.startswith("2 of the group: sent again\n")
    assert f"Thread {killed} was killed" in replayed.out
    async with asking.socket() as socket:
        while (await asking.get("/dead-letters"))["total"] < 3:
            await Frames(socket).until("dead_letter")
    assert (await ask(asking, "dead-letters", "discard", "--group", group)).out == "3 of the group: discarded\n"
    assert (await ask(asking, "dead-letters", "list", "--group")).out == "no failure is open\n"
    assert (await ask(asking, "dead-letters", "discard", "--group", group)).out == "0 of the group: discarded\n"
