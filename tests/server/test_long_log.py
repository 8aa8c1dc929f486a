"""A long log, and a viewer that comes back with a filter that none of its events passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from organism.events.record import Content, Record, Unit
from organism.events.stored import StoredUnit
from organism.events.vocabulary import Event, MessageSent, StepRecorded, ThreadCompleted, ThreadCreated
from organism.log import units
from organism.log.encode import parse
from organism.log.log import EventLog
from tests.log.engines import START_US
from tests.server.served import HELLO, Frames, Served, served
from tests.server.test_stream import listening

pytestmark = pytest.mark.thorough

THREADS, EVENTS_A_THREAD, AT_ONCE = 250, 200, 10
FEW = 1000
"""The most events that may be read of the 50,000."""
OWN = {"connected", "checkpoint", "caught_up", "agent_state"}
"""Frames that tell of no event of the log."""
ONE = f"thr-{7:016x}"
FILTERS = [
    "threads=thr-nowhere",
    f"threads={ONE}&events=error",
    f"threads={ONE}&agents=nobody",
    "agents=greeter&events=error,dead_letter,approval",
    "events=dead_letter",
    "events=run,usage,indeterminate",
    "events=reload",
    "events=agent_state",
]
"""Of ``/ws`` and of ``/events``."""
LOOKS = [
    "thread=thr-nowhere",
    "type=message_dead",
    "type=thread_killed",
    "type=agent_resumed",
    "type=message_dead,thread_killed&order=desc",
    f"thread={ONE}&type=thread_killed",
    "thread=thr-nowhere&type=step_recorded",
]
"""Of ``/log``."""


def said(number: int) -> Unit:
    """A thread that greets, takes many steps and ends."""
    thread, message = f"thr-{number:016x}", f"msg-{number:016x}"
    sent = MessageSent(message, "greeter", "shouter", "Greeting", depth=1, token="c")
    steps = [Record(StepRecorded(message, "shouter", step, "now", "")) for step in range(EVENTS_A_THREAD - 3)]
    begin = [Record(ThreadCreated()), Record(sent, Content(thread, b"{}", b""))]
    return Unit(thread, [*begin, *steps, Record(ThreadCompleted())], START_US + number, {})


async def fill(log: EventLog) -> int:
    """Write the threads; gives the head. A commit is small enough for the server's own followers not to fall behind."""
    for number in range(THREADS):
        if number % AT_ONCE:
            log.append(said(number))
        else:
            await log.commit(said(number))
    return await log.commit(said(THREADS))


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """All events that anybody reads from the disk."""
    found: list[Event] = []

    def noted(*arguments: Any) -> StoredUnit:
        unit = parse(*arguments)
        found.extend(unit.events)
        return unit

    monkeypatch.setattr(units, "parse", noted)
    return found


async def caught_up(server: Served, query: str) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """What a WebSocket and a stream are sent after a position of the past."""
    async with server.socket(f"?since=3&{query}") as socket:
        yield "socket", await Frames(socket).until("caught_up")
    async with listening(server, f"?since=3&{query}") as events:
        yield "stream", [frame for _, frame in await events.until("caught_up")]


async def read_for_nothing(server: Served, looked: list[Event]) -> AsyncIterator[tuple[str, int]]:
    """Each look that finds nothing, and how many events were read for it."""
    for query in FILTERS:
        looked.clear()
        async for way, frames in caught_up(server, query):
            assert {frame["event"] for frame in frames} <= OWN
            yield f"{way} {query}", len(looked)
            looked.clear()
    for query in LOOKS:
        looked.clear()
        assert (await server.get(f"/log?{query}"))["events"] == []
        yield f"log {query}", len(looked)


async def walked(server: Served, query: str) -> AsyncIterator[dict[str, Any]]:
    """All events of ``/log``, page by page."""
    name, place = ("until" if "order=desc" in query else "after"), ""
    while True:
        page = await server.get(f"/log?{query}{place}")
        for event in page["events"]:
            yield event
        if page["next"] is None:
            return
        place = f"&{name}={page['next']}"


async def test_anyone_who_looks_for_nothing_in_a_long_log_reads_next_to_none(
    tmp_path: Path, looked: list[Event]
) -> None:
    async with served(HELLO, tmp_path) as server:
        assert await fill(server.log) > THREADS * EVENTS_A_THREAD
        read = {what: count async for what, count in read_for_nothing(server, looked)}
        found = await server.get(f"/log?thread={ONE}&type=thread_completed")
        ends = [event["position"] async for event in walked(server, "type=thread_completed&limit=100")]
        newest = [event["position"] async for event in walked(server, "type=thread_completed&limit=100&order=desc")]
    assert (len(ends), newest) == (THREADS + 1, ends[::-1])
    assert len(found["events"]) == 1
    assert {what: count for what, count in read.items() if count >= FEW} == {}
