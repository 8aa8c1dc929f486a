"""Frames of handlings and their steps, at a real socket: when each attempt begins and ends, and what it waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from organism.events.vocabulary import ApprovalRequested
from tests.flows.world import MakeWorld
from tests.server.acting import asker
from tests.server.served import Frames, Served, served

ASKED_FOR = "?events=handling,step"
SOURCE = """
async def asking(payload: Ask, metadata: HandlerMetadata):
    try:
        await metadata.ask("flaky", payload)
    except AskError:
        pass
    await metadata.effect("look", look, kind="pure")
    await metadata.now()
    return HandlerResponse.respond(Told("done"))

async def flaky(payload: Ask, metadata: HandlerMetadata):
    if metadata.attempt <= int(payload.text):
        raise ValueError("not yet")
    return HandlerResponse.respond(Told(payload.text))

async def look(key):
    return "seen"
"""
LISTENERS = {"asking": {"peers": ["flaky"]}, "flaky": {}}


async def frames_since(server: Served, query: str) -> list[dict[str, Any]]:
    """All that is played from the beginning of the log."""
    join = "&" if query else "?"
    async with server.socket(f"{query}{join}since=0") as socket:
        frames = await Frames(socket).until("caught_up")
    return [frame for frame in frames if frame.get("event") not in {"connected", "caught_up", "agent_state"}]


@asynccontextmanager
async def watching(server: Served, query: str = ASKED_FOR) -> AsyncIterator[Frames]:
    """A client that listens from now on."""
    async with server.socket(query) as socket:
        frames = Frames(socket)
        await frames.until("connected")
        yield frames


def told(frame: dict[str, Any]) -> tuple[Any, ...]:
    """What the frame says, without ids and times."""
    if frame["event"] == "step":
        named = tuple(frame[name] for name in ("to", "model", "key", "effect") if name in frame)
        return ("step", frame["agent"], frame["kind"], *named, frame["phase"])
    outcome = frame.get("outcome", frame.get("after"))
    return (frame["event"], frame["agent"], frame["attempt"], frame["phase"], outcome)


@pytest.mark.parametrize("failures", [1, 2])
async def test_each_attempt_and_each_wait_begins_and_ends_for_whom_asks(world: MakeWorld, failures: int) -> None:
    made = world(SOURCE, LISTENERS, retry={"attempts": 2, "base_delay_s": 0.01})
    async with served(made.config) as server, watching(server) as frames:
        await server.inject("asking", {"text": str(failures)})
        seen = await frames.until("handling", agent="asking", phase="ended")
        played = await frames_since(server, ASKED_FOR)
    second = (
        [("handling", "flaky", 2, "ended", "done")] if failures == 1 else [("error", "flaky", 2, "ended", "failed")]
    )
    assert [told(frame) for frame in seen] == [
        ("handling", "asking", 1, "started", ""),
        ("step", "asking", "ask", "flaky", "started"),
        ("handling", "flaky", 1, "started", ""),
        ("error", "flaky", 1, "ended", "retried"),
        ("handling", "flaky", 2, "started", "retry"),
        *sorted([*second, ("step", "asking", "ask", "flaky", "ended")], reverse=failures == 1),
        ("step", "asking", "effect", "look", "pure", "ended"),
        ("handling", "asking", 1, "ended", "done"),
    ]
    assert seen == played
    assert all(frame["timestamp"] and frame["position"] for frame in seen)
    assert all(frame["duration_ms"] > 0 for frame in seen if frame["phase"] == "ended" and frame["event"] != "step")
    errors = [frame for frame in seen if frame["event"] == "error"]
    assert {(each["line"]["file"], each["line"]["function"]) for each in errors} == {("actors/play.py", "flaky")}


async def test_who_does_not_ask_for_them_gets_none_and_no_position_has_two(world: MakeWorld) -> None:
    every = "?events=message,thread_created,thread_updated,error,dead_letter,handling,step"
    async with served(world(SOURCE, LISTENERS).config) as server:
        await server.inject("asking", {"text": "1"})
        names = {frame["event"] for frame in await frames_since(server, "")}
        positions = [frame["position"] for frame in await frames_since(server, every)]
        of_one = await frames_since(server, f"{ASKED_FOR}&agents=flaky")
    assert names.isdisjoint({"handling", "step"})
    assert positions == sorted(set(positions))
    assert {frame["agent"] for frame in of_one} == {"flaky"}


async def test_an_effect_in_doubt_passes_as_a_step_and_says_who_ended_it(world: MakeWorld) -> None:
    async with served(asker(world).config) as server, watching(server, "?events=step") as frames:
        await server.inject("asker", {"text": "pay"}, wait=None)
        opened = (await frames.until("indeterminate"))[-1]
        await server.call("POST", f"/indeterminate/{opened['indeterminate']['id']}/resolve", json={"outcome": "fail"})
        closed = (await frames.until("indeterminate"))[-1]
    shown = [(each["indeterminate"]["status"], each["kind"], each["key"], each["by"]) for each in (opened, closed)]
    by = {"principal": closed["by"]["principal"], "user": None, "reason": None}
    assert shown == [("open", "effect", "pay", None), ("fail", "effect", "pay", by)]
    assert by["principal"]


async def test_frames_say_who_paused_decided_and_killed(world: MakeWorld) -> None:
    async with served(asker(world).config) as server, watching(server, "") as frames:
        asked = await server.inject("asker", {"text": "ask"}, wait=None)
        approval = (await frames.until("approval"))[-1]["approval"]["id"]
        decided = {"decision": "reject"}
        await server.call("POST", f"/approvals/{approval}/resolve", json=decided)
        closed = (await frames.until("approval"))[-1]
        ended = (await frames.until("thread_updated", thread_id=asked["thread_id"]))[-1]
        await server.call("POST", "/organism/pause")
        paused = (await frames.until("organism_state"))[-1]
        stopped = await server.inject("asker", {"text": "x"}, wait=None)
        await server.call("POST", f"/threads/{stopped['thread_id']}/kill")
        killed = (await frames.until("thread_updated", thread_id=stopped["thread_id"]))[-1]
    assert [set(frame["by"].values()) - {None} for frame in (closed, paused, killed)] == [{"operator"}] * 3
    assert ended["by"] is None


async def test_an_attempt_that_a_kill_ends_says_so(world: MakeWorld) -> None:
    async with served(asker(world).config) as server, watching(server) as frames:
        asked = await server.inject("asker", {"text": "ask"}, wait=None)
        waits = (await frames.until("step", kind="approve"))[-1]
        await server.call("POST", f"/threads/{asked['thread_id']}/kill")
        ended = (await frames.until("handling", phase="ended"))[-1]
        (requested,) = [each.event for each in await server.log.read(0) if isinstance(each.event, ApprovalRequested)]
    assert (waits["phase"], waits["approval"]) == ("started", requested.approval)
    assert (ended["outcome"], ended["attempt"], ended["duration_ms"] > 0) == ("killed", 1, True)


async def test_rates_say_what_moved_to_whom_asks(world: MakeWorld) -> None:
    made = world(SOURCE, LISTENERS, retry={"attempts": 1})
    async with (
        served(made.config) as server,
        watching(server, "?events=rates") as all_of_it,
        watching(server, "?events=rates&agents=flaky") as of_one,
        watching(server, "?events=rates&agents=nobody") as of_none,
    ):
        await server.inject("asking", {"text": "0"})
        await server.inject("asking", {"text": "1"})
        agents, edges = await moved(all_of_it, {"asking": 2, "flaky": 2})
        one_agents, one_edges = await moved(of_one, {"flaky": 2})
        assert await of_none.ask("ping")
    assert agents == {"asking": (2, 0), "flaky": (1, 1)}
    assert edges == {
        ("console", "asking"): (2, 0),
        ("asking", "flaky"): (2, 1),
        ("flaky", "asking"): (1, 0),
        ("asking", "console"): (2, 0),
    }
    assert one_agents == {"flaky": (1, 1)}
    assert one_edges == {edge: said for edge, said in edges.items() if "flaky" in edge}


async def test_rates_tell_no_viewer_what_moved_before_it_came(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        async with watching(server, "?events=rates,thread_updated") as frames:
            await server.inject("flaky", {"text": "0"})
            await frames.until("thread_updated")
        await server.until(lambda: not server.serving.process.connections.count)
        async with watching(server, "?events=rates") as frames:
            await server.inject("asking", {"text": "0"})
            agents, _ = await moved(frames, {"asking": 1, "flaky": 1})
    assert agents == {"asking": (1, 0), "flaky": (1, 0)}


Pairs = dict[Any, tuple[int, int]]


async def moved(frames: Frames, until: dict[str, int]) -> tuple[Pairs, Pairs]:
    """What the frames with rates say together, once the agents have ended so much."""
    agents: Pairs = {}
    edges: Pairs = {}
    while {name: sum(said) for name, said in agents.items()} != until:
        frame = (await frames.until("rates"))[-1]
        assert "position" not in frame
        assert frame["seconds"] > 0
        for name, rate in frame["agents"].items():
            agents[name] = added(agents.get(name), (rate["handled"], rate["failed"]))
        for sender, to, *said in frame["edges"]:
            edges[sender, to] = added(edges.get((sender, to)), (said[0], said[1]))
    return agents, edges


def added(one: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int]:
    return other if one is None else (one[0] + other[0], one[1] + other[1])
