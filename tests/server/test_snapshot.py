"""The first frame under load: what it shows and what follows it make up the log, with no seam."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from organism.log.log import EventFilter
from organism.server.snapshot import ACTIVE_SHOWN
from tests.server.served import HELLO, Frames, Served, served

INJECTIONS = 15
VIEWERS = 6
"""Together fewer threads than the hundred that a snapshot shows of those that have ended."""
CROWD = 1000


async def watch(server: Served, joined: asyncio.Semaphore, until: asyncio.Event) -> dict[str, Any]:
    """A viewer that joins somewhere in the middle: its snapshot, and every frame from there to the end."""
    async with server.socket() as socket:
        frames = Frames(socket)
        connected = await frames.next()
        joined.release()
        await until.wait()
        answer = asyncio.ensure_future(frames_to(frames, server.log.head))
        return {**connected, "seen": await answer}


async def frames_to(frames: Frames, head: int) -> list[dict[str, Any]]:
    """The frames up to the one of the log's last event that has a frame, which is a thread's end."""
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1].get("position", 0) < head:
        frame = await frames.next()
        if frame["event"] in {"message", "thread_created", "thread_updated", "checkpoint"}:
            seen.append(frame)
    return seen


@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "on disk"])
async def test_a_snapshot_and_what_follows_it_are_the_log(tmp_path: Path, *, on_disk: bool) -> None:
    async with served(HELLO, tmp_path if on_disk else None) as server:
        joined, done = asyncio.Semaphore(0), asyncio.Event()
        sending: list[asyncio.Future[Any]] = []
        watching = []
        for _ in range(VIEWERS):
            group = [asyncio.ensure_future(server.inject()) for _ in range(INJECTIONS)]
            await asyncio.wait(group, return_when=asyncio.FIRST_COMPLETED)
            watching.append(asyncio.ensure_future(watch(server, joined, done)))
            sending += group
        await asyncio.gather(*sending)
        for _ in watching:
            await joined.acquire()
        await server.inject()
        done.set()
        views = await asyncio.gather(*watching)
        sent = await server.log.read(wanted=EventFilter(types=("message_sent",)), limit=100_000)
        rows = {row["id"]: row for row in (await server.get("/threads?limit=500"))["threads"]}
    assert len({view["position"] for view in views}) > 1, "the viewers joined at different moments"
    for view in views:
        messages = [frame["position"] for frame in view["seen"] if frame["event"] == "message"]
        assert messages == [event.position for event in sent if event.position > view["position"]]
        assert view["organism"]["total_messages"] == len(sent) - len(messages)
        assert counts(view) == {name: row["message_count"] for name, row in rows.items()}


def counts(view: dict[str, Any]) -> dict[str, int]:
    """How many messages each thread has after the snapshot and all that followed."""
    counted = {thread["id"]: thread["message_count"] for thread in view["threads"]}
    assert len(counted) == view["threads_total"]
    for frame in view["seen"]:
        if frame["event"] == "thread_created":
            counted[frame["thread"]["id"]] = 0
        elif frame["event"] == "message":
            counted[frame["message"]["thread_id"]] += 1
        elif frame["event"] == "thread_updated":
            assert counted[frame["thread_id"]] == frame["message_count"]
    return counted


async def test_a_snapshot_and_what_follows_it_are_the_log_while_a_thousand_are_injected(tmp_path: Path) -> None:
    async with served(HELLO, tmp_path) as server:
        joined, done = asyncio.Semaphore(0), asyncio.Event()
        sending = [asyncio.ensure_future(server.inject(wait=None)) for _ in range(CROWD)]
        watching = []
        for sent in (sending[0], sending[CROWD // 3], sending[CROWD // 2]):
            await sent
            watching.append(asyncio.ensure_future(watch(server, joined, done)))
            await joined.acquire()
        await asyncio.gather(*sending)
        await server.inject()
        while (await server.get("/organism"))["active_threads"]:
            await server.inject()
        done.set()
        views = await asyncio.gather(*watching)
        total = await server.get("/organism")
        known = (await server.get("/threads?limit=1"))["total"]
    for view in views:
        events = [frame["event"] for frame in view["seen"]]
        assert view["organism"]["total_messages"] + events.count("message") == total["total_messages"]
        assert view["threads_total"] + events.count("thread_created") == known
        assert view["organism"]["active_threads"] + events.count("thread_created") == events.count("thread_updated")
        shown = [thread for thread in view["threads"] if thread["status"] == "active"]
        assert len(shown) == min(view["organism"]["active_threads"], ACTIVE_SHOWN)
        assert all(thread["position"] <= view["position"] for thread in view["threads"])
