"""The past as one viewer wants it: the frames of the naive way, by reading no more than may pass."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import (
    AgentPaused,
    Event,
    MessageRetried,
    MessageSent,
    OrganismPaused,
    OrganismResumed,
    OrganismStarted,
    StepRecorded,
    ThreadCompleted,
    ThreadCreated,
    ThreadPaused,
)
from organism.log.log import SPAN_EVENTS, EventLog
from organism.server.push import past
from organism.server.push.filter import Filter, Frame
from organism.server.push.frames import FRAMES, Folded
from organism.server.push.past import Past, load_unknown, thread_at
from organism.views import threads
from tests.log.engines import START_US, views
from tests.server.random_logs import NAMES, Teller, by_the_naive_way, on_disk

TALES = 30


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EventLog]:
    """An empty log."""
    opened = await on_disk(tmp_path / "log")
    yield opened
    await opened.close()


async def all_of(reading: Past, head: int) -> Sequence[Frame]:
    """What a viewer is given up to the head; each page begins where the one before has ended."""
    found: list[Frame] = []
    while (position := reading.position) < head:
        page = await reading.read()
        assert (page.after, page.last) == (position, reading.position)
        assert page.last > position
        found += page.passing(reading.wanted)
    return found


def some(chance: random.Random, names: Sequence[str]) -> frozenset[str] | None:
    """A list of a filter, or none."""
    return frozenset(chance.sample(names, chance.randint(0, 2))) if chance.random() < 1 / 2 else None


@pytest.mark.parametrize("step", [8, 1 << 20])
async def test_the_frames_are_those_of_the_naive_way(log: EventLog, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", step)
    teller = Teller(log, seed=1)
    head = await teller.tell(150)
    chance = random.Random(step)
    for _ in range(TALES):
        threads = some(chance, [f"t{number}" for number in range(12)])
        wanted = Filter(threads, some(chance, NAMES), some(chance, sorted(FRAMES)))
        after = chance.randrange(head)
        monkeypatch.setattr(past, "FIRST_PAGE", chance.choice([2, 5, 64]))
        assert await all_of(Past(log, views(log), wanted, after), head) == await by_the_naive_way(log, wanted, after)


async def test_the_very_next_event_is_found(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 2)
    after = await log.commit(chatter(1))
    tried = MessageRetried("m1", "ann", attempt=1, error="no", next_at=START_US)
    await log.commit(Unit("t1", [Record(tried)], START_US, {}))
    head = await log.commit(chatter(2))
    frames = await all_of(Past(log, views(log), Filter(events=frozenset({"error"})), after), head)
    assert [frame.position for frame in frames] == [after + 1]


async def test_what_is_written_while_it_is_read_follows(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 8)
    teller, wanted = Teller(log, seed=2), Filter(agents=frozenset({"ann"}))
    reading, found = Past(log, views(log), wanted, 0), list[Frame]()
    for _ in range(20):
        found += await all_of(reading, await teller.tell(10))
    assert found == await by_the_naive_way(log, wanted, 0)


def chatter(number: int) -> Unit:
    """A thread of three events in which ann and bob talk."""
    thread = f"t{number}"
    shown = Record(sent(number), Content(thread, b"{}", b""))
    return Unit(thread, [Record(ThreadCreated()), shown, Record(ThreadCompleted())], START_US, {})


def sent(number: int) -> MessageSent:
    """What ann says to bob."""
    return MessageSent(f"m{number}", "ann", "bob", "T", depth=1, token="c")


async def test_a_page_has_as_much_as_a_socket_takes(log: EventLog) -> None:
    for number in range(1000):
        unit = chatter(number)
        assert unit.records[1].content
        unit.records[1].content.json = b'{"text":"%b"}' % (b"x" * (50_000 if number > 500 else 50))
        log.append(unit)
    head = await log.commit(chatter(1000))
    reading, sizes = Past(log, views(log), Filter(), 0), []
    while reading.position < head:
        sizes.append((await reading.read()).size_bytes)
    large = [size for size in sizes if size > 1 << 20]
    assert len(large) < 5, "the page shrinks as soon as events are large"
    assert len(sizes) > 200


COMMON, RARE = StepRecorded("m", "ann", step=1, kind="now", input=""), ThreadPaused()
SEEN = frozenset({7, 3 * SPAN_EVENTS, 3 * SPAN_EVENTS + 1, 9 * SPAN_EVENTS, 12 * SPAN_EVENTS - 1})
"""Positions of what is rare: inside a span, the last one, the first one."""
EVENTS = 12 * SPAN_EVENTS
UNIT_EVENTS = 300


@pytest.fixture
async def spans(log: EventLog) -> EventLog:
    """A log of twelve spans of two threads, in whose units spans begin and end anywhere."""
    for begin in range(1, EVENTS + 1, UNIT_EVENTS):
        positions = range(begin, min(begin + UNIT_EVENTS, EVENTS + 1))
        records = [Record[Event](RARE if position in SEEN else COMMON) for position in positions]
        await log.commit(Unit(f"t{begin % 2}", records, START_US + begin, {}))
    return log


async def test_frames_are_those_of_the_naive_way_over_many_spans(
    spans: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "STEP_EVENTS", 500)
    for named in (None, frozenset({"t0"}), frozenset({"nowhere"})):
        for names in (frozenset({"thread_updated"}), frozenset({"error"}), None):
            wanted = Filter(named, events=names)
            assert await all_of(Past(spans, views(spans), wanted, 5), EVENTS) == await by_the_naive_way(
                spans, wanted, 5
            )


async def test_a_long_thread_is_learned_by_a_handful_of_events(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(Unit("t", [Record(ThreadCreated())], START_US, {}))
    for number in range(5000):
        log.append(Unit("t", [Record(sent(number))], START_US, {}))
    head = await log.commit(Unit("t", [Record(ThreadCompleted())], START_US, {}))
    given: list[Record[Event]] = []
    read = log.read

    async def counting(*arguments: object, **options: object) -> list[Record[Event]]:
        records = await read(*arguments, **options)  # type: ignore[arg-type] # handed on as they came
        given.extend(records)
        return records

    monkeypatch.setattr(log, "read", counting)
    learned = await thread_at(log, views(log), "t", head - 1)
    assert learned is not None
    assert (learned.status, learned.message_count, learned.participants) == ("active", 5000, ["ann", "bob"])
    assert len(given) <= 2


async def test_a_thread_is_loaded_as_it_stood_at_any_position_in_the_middle_of_a_unit_too(log: EventLog) -> None:
    head = await Teller(log, seed=3).tell(60)
    rows: dict[str, threads.Thread | None] = {}
    for record in await log.read(limit=head):
        if record.thread is not None:
            rows[record.thread] = threads.apply(record.thread, rows.get(record.thread), record)
        for thread, row in rows.items():
            loaded = await thread_at(log, views(log), thread, record.position)
            assert loaded is not None
            assert row is not None
            assert [getattr(loaded, field) for field in SHOWN] == [getattr(row, field) for field in SHOWN]


SHOWN = ("status", "message_count", "paused", "error", "participants")


PAUSED, RESUMED = OrganismPaused("operator"), OrganismResumed("operator")
AGENT, STARTED = AgentPaused("ann", "operator"), OrganismStarted("o", "1", "", (), removed=(), life=1, clean=True)


@pytest.mark.parametrize(("pauses", "status"), [([PAUSED], "paused"), ([RESUMED], "running")])
async def test_a_start_says_whether_the_organism_was_paused_long_before(
    log: EventLog, pauses: list[Event], status: str
) -> None:
    for event in (PAUSED, RESUMED, *pauses, AGENT, STARTED):
        await log.commit(Unit(None, [Record(event)], START_US, {}))
    folded = Folded(log.head - 1)
    records = await log.read(folded.position)
    await load_unknown(log, views(log), folded, records)
    assert status.encode() in folded.frames(records)[0].json
