"""The contract of the log (organism/log/log.py), on every engine, alone and with views."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from organism.errors import LogDamaged, LogUnavailable, StalePosition
from organism.events.record import ORGANISM_STREAM, Actor, Record, Unit
from organism.events.vocabulary import (
    CallAnswered,
    Event,
    LoopBlocked,
    MessageHandled,
    MessageSent,
    OrganismPaused,
    OrganismResumed,
    ThreadCompleted,
    ThreadCreated,
)
from organism.log.log import EventFilter, EventLog
from organism.log.sqlite import SqliteLog
from organism.log.units import PORTION_UNITS
from tests.contracts.late import LateLog
from tests.log.apsw_driver import ApswDriver
from tests.log.engines import MODELS, as_tuples, created, handled, open_durable, sent, unit

Open = Callable[[Path], Awaitable[EventLog]]


async def late(_place: Path) -> EventLog:
    return LateLog()


ENGINES: dict[str, Open] = {
    "sqlite": open_durable,
    "sqlite-apsw": lambda place: open_durable(place, ApswDriver()),
    "memory": lambda _: SqliteLog.in_memory(MODELS),
    "late": late,
}


@pytest.fixture(params=ENGINES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = await ENGINES[request.param](tmp_path / "log")
    yield opened
    await opened.close()


async def take(log: EventLog, after: int, count: int, wanted: EventFilter | None = None) -> list[Record[Event]]:
    """The first ``count`` events that a follower gets."""
    found: list[Record[Event]] = []
    async for records in log.follow(after, wanted):
        found += records
        if len(found) >= count:
            break
    return found


# L1 - whole units, dense positions


async def test_l1_positions_are_dense_and_rise_in_the_order_of_append(log: EventLog) -> None:
    units = [unit(f"thr-{n}", created(), sent(f"msg-{n}")) for n in range(5)]
    for each in units[:-1]:
        log.append(each)
    await log.commit(units[-1])
    assert [(each.first, each.last) for each in units] == [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)]
    assert [record.position for record in await log.read()] == list(range(1, 11))


@pytest.mark.parametrize(
    "event",
    [
        CallAnswered("key", "POST", "/inject", "digest", 202, {"value": object()}, 0),
        LoopBlocked("long", "stack"),  # type: ignore[arg-type]  # as it may come from what nobody checks
        LoopBlocked(1, "half a character \ud800"),
    ],
)
async def test_l1_a_unit_that_could_not_be_read_again_is_refused_whole(log: EventLog, event: Event) -> None:
    with pytest.raises((TypeError, ValueError)):
        log.append(unit("thr-1", created(), Record(event)))
    assert await log.commit(unit("thr-1", created())) == 1
    assert [record.event for record in await log.read()] == [ThreadCreated()]


async def test_l1_what_the_unit_says_holds_for_its_events(log: EventLog) -> None:
    made = unit("thr-1", created(), created("thr-2"))
    made.cause, made.correlation, made.actor = "msg-1", "msg-0", Actor("acme", "ann", "req-1")
    made.records[1].cause = "msg-2"
    await log.commit(made)
    first, second = await log.read()
    assert (first.thread, first.cause, first.correlation, first.at) == ("thr-1", "msg-1", "msg-0", made.at)
    assert (second.thread, second.cause, second.correlation) == ("thr-2", "msg-2", "msg-0")
    assert first.actor == second.actor == Actor("acme", "ann", "req-1")


async def test_l1_an_empty_log_has_no_head(log: EventLog) -> None:
    assert (log.head, log.last_at, log.available) == (0, 0, True)
    assert await log.read() == []
    assert await log.content(1) is None


# L2 - then


async def test_l2_then_is_called_in_order_once_the_unit_is_on_disk(log: EventLog) -> None:
    heard: list[tuple[int, int, Exception | None]] = []

    def then(done: Unit, error: Exception | None) -> None:
        heard.append((done.last, log.head, error))

    for number in range(3):
        each = unit(f"thr-{number}", created())
        each.then = then
        log.append(each)
    assert heard == []
    await log.commit(unit("thr-9", created()))
    assert [(last, error) for last, _, error in heard] == [(1, None), (2, None), (3, None)]
    assert all(head >= last for last, head, _ in heard)


async def test_l2_then_may_append(log: EventLog) -> None:
    followed = unit("thr-2", created())
    first = unit("thr-1", created())
    first.then = lambda *_: log.append(followed)
    log.append(first)
    found = await take(log, 0, 2)
    assert [record.thread for record in found] == ["thr-1", "thr-2"]


async def test_l2_one_that_raises_keeps_no_follower_from_the_unit(log: EventLog) -> None:
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))

    def then(_done: Unit, _error: Exception | None) -> None:
        raise ArithmeticError

    first = unit("thr-1", created(), sent("msg-1", to="greeter"))
    first.then = then
    log.append(first)
    assert len(await take(log, 0, 2)) == 2
    assert [type(error) for error in raised] == [ArithmeticError]


# L3 - expect


async def test_l3_a_stale_unit_is_refused_and_touches_no_other(log: EventLog) -> None:
    first = unit("thr-1", created(), expect={"thr-1": 0})
    log.append(first)
    with pytest.raises(StalePosition, match="thr-1"):
        log.append(unit("thr-1", sent("msg-1"), expect={"thr-1": 0}))
    last = await log.commit(unit("thr-1", sent("msg-2"), expect={"thr-1": first}))
    assert last == 2
    assert [record.event for record in await log.read()] == [ThreadCreated(), sent("msg-2").event]


async def test_l3_a_unit_that_is_on_its_way_can_be_expected(log: EventLog) -> None:
    first = unit("thr-1", created())
    log.append(first)
    second = unit("thr-1", sent("msg-1"), expect={"thr-1": first})
    log.append(second)
    with pytest.raises(StalePosition):
        log.append(unit("thr-1", sent("msg-2"), expect={"thr-1": first}))
    assert await log.commit(unit("thr-1", sent("msg-3"), expect={"thr-1": second})) == 3


async def test_l3_a_unit_that_ends_with_another_stream_is_still_the_last_of_this_one(log: EventLog) -> None:
    both = unit("thr-1", created(), created("thr-2"))
    await log.commit(both)
    await log.commit(unit("thr-1", sent("msg-1"), expect={"thr-1": both, "thr-2": 2}))
    assert log.head == 3


async def test_l3_the_organism_has_a_stream_of_its_own(log: EventLog) -> None:
    await log.commit(unit(None, Record(OrganismPaused("operator")), expect={ORGANISM_STREAM: 0}))
    await log.commit(unit("thr-1", created(), expect={ORGANISM_STREAM: 1}))
    with pytest.raises(StalePosition):
        log.append(unit(None, Record(OrganismResumed("operator")), expect={ORGANISM_STREAM: 0}))


async def test_l3_a_stream_that_left_the_memory_is_still_known(log: EventLog) -> None:
    await log.commit(unit("thr-0", created(), sent("msg-0")))
    await log.commit(unit("thr-y", *(created(f"thr-x{number}") for number in range(9000))))
    with pytest.raises(StalePosition):
        log.append(unit("thr-0", sent("msg-1"), expect={"thr-0": 0}))
    log.append(unit("thr-0", sent("msg-1"), expect={"thr-0": 2}))


# L4 - reads see what ``then`` reported


async def test_l4_a_read_after_then_sees_the_unit_and_its_content(log: EventLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "hi"), handled("msg-1")))
    assert [record.type for record in await log.read()] == ["thread_created", "message_sent", "message_handled"]
    assert await log.content(2) == (b'{"text":"hi"}', b"<text>hi</text>")


@pytest.fixture
async def filled(log: EventLog) -> EventLog:
    """Three messages in two threads."""
    log.append(unit("thr-1", created(), sent("msg-1", "first Word", to="ann")))
    log.append(unit("thr-2", created(), sent("msg-2", 'a "quoted" ü', to="bob")))
    await log.commit(unit("thr-1", sent("msg-3", "third", to="bob")))
    return log


@pytest.mark.parametrize(
    ("span", "wanted", "positions"),
    [
        ((0, None), None, [1, 2, 3, 4, 5]),
        ((2, 4), None, [3, 4]),
        ((3, 99), None, [4, 5]),
        ((9, None), None, []),
        ((0, None), EventFilter(threads=("thr-1",)), [1, 2, 5]),
        ((1, 4), EventFilter(threads=("thr-2", "thr-1")), [2, 3, 4]),
        ((0, None), EventFilter(types=(MessageSent,)), [2, 4, 5]),
        ((0, None), EventFilter(threads=("thr-2",), types=(MessageSent,)), [4]),
        ((0, None), EventFilter(threads=("thr-7",)), []),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 500])
async def test_l4_a_read_gives_its_span_in_both_directions(
    filled: EventLog, span: tuple[int, int | None], wanted: EventFilter | None, positions: list[int], limit: int
) -> None:
    up = await filled.read(*span, wanted, limit)
    down = await filled.read(*span, wanted, limit, reverse=True)
    assert [record.position for record in up] == positions[:limit]
    assert [record.position for record in down] == positions[::-1][:limit]


async def test_l4_what_is_rare_in_a_long_stream_is_found_wherever_it_stands(log: EventLog) -> None:
    rare = EventFilter(threads=("thr-1",), types=(ThreadCompleted,))
    plain = [unit("thr-1", sent(f"msg-{number}")) for number in range(2 * PORTION_UNITS)]
    for each in (unit("thr-1", created(), Record(ThreadCompleted())), *plain):
        log.append(each)
    head = await log.commit(unit("thr-1", sent("msg"), Record(ThreadCompleted())))
    assert [record.position for record in await log.read(0, None, rare)] == [2, head]
    assert [record.position for record in await log.read(0, None, rare, 1, reverse=True)] == [head]


async def test_l4_the_last_event_that_is_not_after_a_time_is_found(log: EventLog) -> None:
    for at in (10, 20, 20, 30):
        await log.commit(unit("thr-1", created(), created(), at=at))
    assert (log.last_at, [await log.position_at(at) for at in (9, 10, 19, 20, 29, 30)]) == (30, [0, 2, 2, 6, 6, 8])


async def test_l4_content_comes_with_the_event_when_it_is_wanted(filled: EventLog) -> None:
    without, with_it = await filled.read(), await filled.read(wanted=EventFilter(content=True))
    assert [record.content for record in without] == [None] * 5
    contents = [record.content for record in with_it if record.content is not None]
    assert [(content.json, content.owner) for content in contents] == [
        (b'{"text":"first Word"}', "thr-1"),
        (b'{"text":"a \\"quoted\\" \xc3\xbc"}', "thr-1"),
        (b'{"text":"third"}', "thr-1"),
    ]
    digests = {record.position: record.digest for record in without if record.digest}
    assert await filled.contents(digests) == {position: await filled.content(position) for position in digests}
    with pytest.raises(LogDamaged, match="content at position 2 does not fit its digest"):
        await filled.contents({2: "0" * 64})


# L5 - follow


async def test_l5_a_follower_gets_the_past_and_the_present_once_and_in_order(log: EventLog) -> None:
    for number in range(40):
        await log.commit(unit(f"thr-{number}", created()))
        log.append(unit(f"thr-{number}", sent(f"msg-{number}")))
        found = await take(log, number, 2 + number)
        assert [record.position for record in found][: 2 + number] == list(range(number + 1, 2 * number + 3))


async def test_l5_a_follower_from_before_the_tail_in_memory_misses_nothing(log: EventLog) -> None:
    for number in range(60):
        await log.commit(unit("thr-1", sent(f"msg-{number}", "x" * 60_000)))
    log.append(unit("thr-1", handled("msg-1")))
    found = await take(log, 3, 58)
    assert [record.position for record in found] == list(range(4, 62))


async def test_l5_a_filter_gives_its_events_and_says_what_passed_by(log: EventLog) -> None:
    await log.commit(unit("thr-1", created()))
    await log.commit(unit("thr-2", sent("msg-2")))
    log.append(unit("thr-1", handled("msg-1")))
    lists = []
    async for records in log.follow(0, EventFilter(types=(MessageSent,))):
        lists.append([record.position for record in records])
        if log.head == 3 and len(lists) > 1:
            break
    assert [position for positions in lists for position in positions] == [2]
    assert [] in lists


async def test_l5_a_follower_of_one_thread_gets_its_next_event_however_much_passes_by(log: EventLog) -> None:
    await log.commit(unit("thr-1", created()))
    following = asyncio.ensure_future(take(log, 1, 2, EventFilter(threads=("thr-1",))))
    ended = asyncio.ensure_future(take(log, 1, 1, EventFilter(threads=("thr-1",), types=(MessageHandled,))))
    for number in range(300):
        await log.commit(unit(f"thr-{number + 2}", created(), sent(f"msg-{number}", text="x" * 500)))
    await log.commit(unit("thr-1", sent("msg-a")))
    await log.commit(unit("thr-1", handled("msg-a")))
    assert [record.position for record in await following] == [602, 603]
    assert [record.position for record in await ended] == [603]


async def test_l5_a_follower_ends_when_the_log_closes(log: EventLog) -> None:
    await log.commit(unit("thr-1", created()))
    stream = log.follow(0)
    assert [record.position for record in await anext(stream)] == [1]
    await log.close()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


# L7 - verification (the damage itself: tests/log/test_damage.py)


async def test_l7_a_whole_log_verifies(filled: EventLog) -> None:
    found = await filled.verify()
    assert (found.position, found.events, found.damage) == (5, 5, ())
    assert found.commits == 1


async def test_l7_what_comes_after_a_position_can_be_verified_alone(filled: EventLog) -> None:
    await filled.commit(unit("thr-3", created()))
    found = await filled.verify(5)
    assert (found.position, found.events, found.commits, found.damage) == (6, 1, 1, ())


# Snapshots


async def test_the_last_two_snapshots_are_kept(filled: EventLog) -> None:
    assert await filled.load_snapshot("routing") is None
    for position in (1, 3, 4):
        await filled.save_snapshot("routing", position, b"state %d" % position)
    await filled.save_snapshot("other", 2, b"else")
    assert await filled.load_snapshot("routing") == (4, b"state 4")
    assert await filled.load_snapshot("other") == (2, b"else")


async def test_a_snapshot_ahead_of_the_log_is_not_given(filled: EventLog) -> None:
    await filled.save_snapshot("routing", 4, b"fits")
    await filled.save_snapshot("routing", 99, b"ahead")
    assert await filled.load_snapshot("routing") == (4, b"fits")


async def test_a_log_closes_with_all_that_was_appended(log: EventLog) -> None:
    last = unit("thr-1", created())
    outcome: list[Exception | None] = []
    last.then = lambda _, error: outcome.append(error)
    log.append(last)
    await log.close()
    assert outcome == [None]


async def test_a_closed_log_takes_nothing_more(log: EventLog) -> None:
    await log.close()
    assert not log.available
    with pytest.raises(LogUnavailable, match="closed"):
        log.append(unit("thr-1", created()))


async def test_l4_a_fold_is_handed_what_the_lists_hold(filled: EventLog) -> None:
    mixed = unit("thr-1", created(), created("thr-4"), created())
    mixed.cause, mixed.correlation, mixed.actor = "msg-3", "msg-1", Actor("acme")
    await filled.commit(mixed)
    for after in range(9):
        handed: list[Record[Event]] = []
        await filled.fold(after, handed.append)
        records = await filled.read(after)
        assert as_tuples(handed) == as_tuples(records)
        assert [record.actor for record in handed] == [record.actor for record in records]
