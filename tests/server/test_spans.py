"""What passes over spans of the log gives what reading all of it gives."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from organism.log.log import SPAN_EVENTS, EventFilter, Log
from organism.model.events import Event, Unit
from organism.server import past
from organism.server.past import Past
from organism.server.push import Filter
from tests.log.engines import START_US
from tests.server.tales import by_the_naive_way, in_memory, on_disk
from tests.server.test_past import all_of

ENGINES: dict[str, Callable[[Path], Awaitable[Log]]] = {"memory": in_memory, "sqlite": on_disk}
COMMON, RARE, NEVER = "step_recorded", "thread_paused", "value_set"
SEEN = frozenset({7, 3 * SPAN_EVENTS, 3 * SPAN_EVENTS + 1, 9 * SPAN_EVENTS, 12 * SPAN_EVENTS - 1})
"""Positions of what is rare: inside a span, the last one, the first one."""
EVENTS = 12 * SPAN_EVENTS
UNIT_EVENTS = 300
ASKED = [(COMMON,), (RARE,), (NEVER,), (RARE, NEVER), (RARE, COMMON), ()]


@pytest.fixture(params=ENGINES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    """A log of twelve spans of two threads, in whose units spans begin and end anywhere."""
    opened = await ENGINES[request.param](tmp_path / "log")
    for begin in range(1, EVENTS + 1, UNIT_EVENTS):
        positions = range(begin, min(begin + UNIT_EVENTS, EVENTS + 1))
        events = [Event(RARE if position in SEEN else COMMON, {}) for position in positions]
        await opened.commit(Unit(f"t{begin % 2}", events, START_US + begin, {}))
    yield opened
    await opened.close()


async def test_the_same_events_are_found_without_reading_all(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 1)
    chance = random.Random(1)
    for types in ASKED:
        for threads in ((), ("t1",), ("t0", "t1"), ("nowhere",)):
            wanted = EventFilter(threads, types)
            for after, until, limit in [(0, EVENTS, 20_000), (0, EVENTS, 2), *(_part(chance) for _ in range(5))]:
                found = await past.read_events(log, after, until, wanted, limit)
                assert _places(found) == _places(await log.read(after, until, wanted, limit))


def _part(chance: random.Random) -> tuple[int, int, int]:
    return chance.randrange(EVENTS), chance.randrange(EVENTS), chance.choice([1, 50, 20_000])


def _places(events: list[Event]) -> list[int]:
    return [event.position for event in events]


async def test_a_stretch_ends_where_the_types_do(log: Log) -> None:
    assert await past.stretch(log, [RARE], 0, EVENTS) == (0, SPAN_EVENTS)
    assert await past.stretch(log, [RARE], 100, EVENTS) == (100, SPAN_EVENTS)
    assert await past.stretch(log, [RARE], SPAN_EVENTS, EVENTS) == (2 * SPAN_EVENTS, 4 * SPAN_EVENTS)
    assert await past.stretch(log, [RARE], 4 * SPAN_EVENTS, EVENTS - 5) == (8 * SPAN_EVENTS, 9 * SPAN_EVENTS)
    assert await past.stretch(log, [NEVER], 3, EVENTS) == (EVENTS, EVENTS)
    assert await past.stretch(log, [COMMON], 5, EVENTS) == (5, past.STEP_EVENTS)


async def test_frames_are_those_of_the_naive_way_over_many_spans(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 500)
    for threads in (None, frozenset({"t0"}), frozenset({"nowhere"})):
        for names in (frozenset({"thread_updated"}), frozenset({"error"}), None):
            wanted = Filter(threads, events=names)
            assert await all_of(Past(log, wanted, 5), EVENTS) == await by_the_naive_way(log, wanted, 5)
