"""A client that folds frames has what the server says of any position, whatever happened before it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import orjson
import pytest

from organism.model.commands import PauseAgent
from organism.server.push.frames import FRAMES
from organism.testing import Running
from tests.flows.world import MakeWorld, World, open_all
from tests.server.client_fold import Client, Json, comparable
from tests.server.histories import History, playing
from tests.server.served import Frames, Served, served

EVERYTHING = "?events=" + ",".join(sorted(FRAMES - {"rates"}))
TRIED = 25
"""So many positions of a log are compared."""
OF_HANDLINGS = ("state", "current_thread", "oldest_waiting_at", "handlings")
"""What a client can only fold that has seen all messages that are open, or is told it by ``agent_state``."""


@asynccontextmanager
async def living_on(made: World, chance: random.Random) -> AsyncIterator[tuple[Served, History]]:
    """The organism after a life that ended in the middle of steps, served, and what happens to it now."""
    async with made.running() as o:
        history = History(made, o, chance)
        await history.happen()
        await history.leave_open()
        await o.crash()
    async with served(made.config, made.data) as server:
        o = Running(server.organism)
        yield server, History(made, o, chance)
        open_all(o)


async def snapshot(server: Served, at: int) -> Json:
    """What the server says of a position."""
    return comparable(await server.get(f"/organism/snapshot?at={at}"))


async def played(server: Served, since: int, until: int | None = None) -> list[str]:
    """The frames of the log after a position, as they came."""
    end = "" if until is None else f"&until={until}"
    seen: list[str] = []
    async with server.socket(f"{EVERYTHING}&since={since}{end}") as socket:
        while not seen or orjson.loads(seen[-1])["event"] != "caught_up":
            seen.append(await Frames(socket).text())
    return logged(seen)


def logged(frames: Sequence[str]) -> list[str]:
    """Those of events of the log."""
    return [frame for frame in frames if is_logged(orjson.loads(frame))]


def is_logged(frame: Json) -> bool:
    return "position" in frame and frame["event"] not in {"connected", "caught_up", "checkpoint", "fell_behind"}


async def ends_of_units(history: History) -> list[int]:
    """The positions at which the log has ended; all events of a unit have one time."""
    records = await history.o.records()
    ends = [record.position for record, following in pairwise(records) if record.at != following.at]
    return [*ends, records[-1].position]


def known(state: Json) -> Json:
    """The state without what only those know who have seen all messages that are open."""
    agents = {
        name: {key: value for key, value in row.items() if key not in OF_HANDLINGS}
        for name, row in state["agents"].items()
    }
    return {**state, "agents": agents}


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_frames_up_to_a_position_are_the_snapshot_there(world: MakeWorld, seed: int) -> None:
    chance = random.Random(seed)
    async with living_on(playing(world), chance) as (server, history):
        await history.settle()
        await history.happen()
        ends = await ends_of_units(history)
        frames = [orjson.loads(frame) for frame in await played(server, 0, ends[-1])]
        positions = [frame["position"] for frame in frames]
        assert positions == sorted(set(positions)), "no event has two frames with a position"
        tried = sorted({*chance.sample(ends, TRIED), ends[-1]})
        client, joined = Client(), None
        for since, until in pairwise([0, *tried]):
            for frame in frames:
                if since < frame["position"] <= until:
                    client.take(frame)
                    if joined is not None:
                        joined.take(frame)
            client.complete()
            state = await snapshot(server, until)
            assert client.shown() == state
            if joined is None:
                joined = Client(await server.get(f"/organism/snapshot?at={until}"))
            joined.complete()
            assert known(joined.shown()) == known(state)


async def test_what_was_pushed_is_the_snapshot_too_and_the_same_bytes_as_later(world: MakeWorld) -> None:
    chance = random.Random(3)
    async with living_on(playing(world), chance) as (server, history), server.socket(EVERYTHING) as socket:
        frames, live = Frames(socket), list[str]()
        connected = orjson.loads(await frames.text())
        await history.settle()
        await history.happen()
        await history.o.do(PauseAgent(agent="last"))
        client, is_told = Client(connected), False
        while not is_told:
            live.append(await frames.text())
            frame = orjson.loads(live[-1])
            client.take(frame)
            is_told = frame["event"] == "agent_state" and frame["agent"] == "last" and frame["paused"]
        head = history.o.log.head
        assert client.shown() == await snapshot(server, head)
        since = connected["position"]
        assert logged(live) == await played(server, since) == await played(server, since, head)


async def test_the_first_viewer_after_a_start_is_told_of_no_agent_what_the_snapshot_said(world: MakeWorld) -> None:
    async with living_on(playing(world), random.Random(4)) as (server, history), server.socket(EVERYTHING) as socket:
        frames = Frames(socket)
        rows = {row["name"]: row for row in (await frames.next())["agents"]}
        await history.o.do(PauseAgent(agent="last"))
        told = [each for each in await frames.until("agent_state", agent="last") if each["event"] == "agent_state"]
        for frame in told:
            del frame["event"]
            row = rows[frame.pop("agent")]
            assert any(row[name] != value for name, value in frame.items())
            row.update(frame)
