"""The past as one viewer wants it: the frames of the naive way, by reading no more than may pass."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from organism.log import units
from organism.log.encode import parse
from organism.log.log import Log
from organism.model.events import Content, Event, Unit
from organism.server import learn, past
from organism.server.frames import FRAMES, Frame
from organism.server.past import Past
from organism.server.push import Filter
from tests.log.engines import START_US
from tests.server.tales import NAMES, Teller, by_the_naive_way, in_memory, on_disk

ENGINES: dict[str, Callable[[Path], Awaitable[Log]]] = {"memory": in_memory, "sqlite": on_disk}
TALES = 30


@pytest.fixture(params=ENGINES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    """An empty log of either engine."""
    opened = await ENGINES[request.param](tmp_path / "log")
    yield opened
    await opened.close()


async def all_of(reading: Past, head: int) -> Sequence[Frame]:
    """What a viewer is given up to the head; each page begins where the one before has ended."""
    found: list[Frame] = []
    while (position := reading.position) < head:
        page = await reading.read()
        assert (page.after, page.last) == (position, reading.position)
        assert page.last > position
        found += [frame for frame in page.frames if reading.wanted.passes(frame)]
    return found


def some(chance: random.Random, names: Sequence[str]) -> frozenset[str] | None:
    """A list of a filter, or none."""
    return frozenset(chance.sample(names, chance.randint(0, 2))) if chance.random() < 1 / 2 else None


@pytest.mark.parametrize("step", [8, 1 << 20], ids=["in steps", "at once"])
async def test_the_frames_are_those_of_the_naive_way(log: Log, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", step)
    monkeypatch.setattr(learn, "SHORT_EVENTS", 3)
    teller = Teller(log, seed=1)
    head = await teller.tell(150)
    chance = random.Random(step)
    for _ in range(TALES):
        threads = some(chance, [f"t{number}" for number in range(12)])
        wanted = Filter(threads, some(chance, NAMES), some(chance, sorted(FRAMES)))
        after = chance.randrange(head)
        monkeypatch.setattr(past, "FIRST_PAGE", chance.choice([2, 5, 64]))
        assert await all_of(Past(log, wanted, after), head) == await by_the_naive_way(log, wanted, after)


async def test_the_very_next_event_is_found(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 2)
    after = await log.commit(chatter(1))
    tried = {"message": "m1", "agent": "ann", "attempt": 1, "error": "no", "next_at": START_US}
    await log.commit(Unit("t1", [Event("message_retried", tried)], START_US, {}))
    head = await log.commit(chatter(2))
    frames = await all_of(Past(log, Filter(events=frozenset({"error"})), after), head)
    assert [frame.position for frame in frames] == [after + 1]


async def test_what_is_written_while_it_is_read_follows(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 8)
    monkeypatch.setattr(learn, "SHORT_EVENTS", 3)
    teller, wanted = Teller(log, seed=2), Filter(agents=frozenset({"ann"}))
    reading, found = Past(log, wanted, 0), list[Frame]()
    for _ in range(20):
        found += await all_of(reading, await teller.tell(10))
    assert found == await by_the_naive_way(log, wanted, 0)


class Counted:
    """A log that counts the events it gives."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.given = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, *arguments: Any, **options: Any) -> list[Event]:
        """Read, and count."""
        events = await self._log.read(*arguments, **options)
        self.given += len(events)
        return events


def chatter(number: int) -> Unit:
    """A thread of three events in which ann and bob talk."""
    sent = {"message": f"m{number}", "from": "ann", "to": "bob", "type": "T", "depth": 1, "token": "c"}
    thread = f"t{number}"
    said = Event("message_sent", sent, Content(thread, b"{}", b""))
    return Unit(thread, [Event("thread_created", {}), said, Event("thread_completed", {})], START_US, {})


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(threads=frozenset({"nowhere"})),
        Filter(threads=frozenset({"t0"}), events=frozenset({"error"})),
        Filter(agents=frozenset({"nobody"})),
        Filter(agents=frozenset({"ann"}), events=frozenset({"error", "dead_letter", "approval"})),
        Filter(events=frozenset({"dead_letter"})),
        Filter(events=frozenset({"run", "indeterminate", "reload"})),
        Filter(events=frozenset({"agent_state"})),
        Filter(frozenset({"t5"}), frozenset({"nobody"}), frozenset({"message"})),
    ],
    ids=["no thread", "no error", "nobody", "ann has none", "no letter", "rare ones", "states", "all three"],
)
async def test_a_filter_that_nothing_passes_reads_next_to_nothing(
    log: Log, wanted: Filter, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def noted(first: int, *stored: bytes) -> Any:
        looked.append(first)
        return parse(first, *stored)

    monkeypatch.setattr(units, "parse", noted)
    for number in range(10_000):
        log.append(chatter(number))
    head = await log.commit(chatter(10_000))
    counted: Any = Counted(log)
    assert await all_of(Past(counted, wanted, 3), head) == []
    assert counted.given < 10
    assert len(looked) < 10, "nor does the log look through its units"


async def test_a_page_has_as_much_as_a_socket_takes(log: Log) -> None:
    for number in range(1000):
        unit = chatter(number)
        assert unit.events[1].content
        unit.events[1].content.json = b'{"text":"%b"}' % (b"x" * (50_000 if number > 500 else 50))
        log.append(unit)
    head = await log.commit(chatter(1000))
    reading, sizes = Past(log, Filter(), 0), []
    while reading.position < head:
        sizes.append((await reading.read()).size)
    large = [size for size in sizes if size > 1 << 20]
    assert len(large) < 5, "the page shrinks as soon as events are large"
    assert len(sizes) > 200
