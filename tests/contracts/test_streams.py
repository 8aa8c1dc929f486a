"""The contract of the log on whole streams: erasure (L9), forks (L10) and export (L11), on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import orjson
import pytest

from organism.errors import BadPosition, CommitUnknown, NotFound, StalePosition
from organism.events.record import ORGANISM_STREAM, Actor, Record, Unit
from organism.events.vocabulary import ContentErased, Event, MessageSent, ThreadForked
from organism.log.log import EventFilter, EventLog
from organism.log.streams import PAGE_EVENTS
from tests.contracts.late import LateLog
from tests.contracts.test_log import ENGINES, take
from tests.log.engines import START_US, as_tuples, created, open_durable, sent, turn, unit
from tests.log.faulty import FaultyDriver, Plan

WITH_CONTENT = EventFilter(content=True)


@pytest.fixture(params=ENGINES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = await ENGINES[request.param](tmp_path / "log")
    yield opened
    await opened.close()


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture(params=["sqlite", "late"])
async def failing(request: pytest.FixtureRequest, tmp_path: Path, plan: Plan) -> AsyncIterator[EventLog]:
    """A log whose commits fail as the plan says."""
    is_late = request.param == "late"
    opened = LateLog(plan) if is_late else await open_durable(tmp_path / "log", FaultyDriver(plan))
    yield opened
    await opened.close()


async def erase(log: EventLog, owner: str) -> int:
    return await log.erase(owner, START_US)


async def copy(log: EventLog, source: str, until: int, target: str) -> int:
    return await log.copy(source, until, target, START_US)


async def exported(log: EventLog, stream: str) -> list[dict[str, object]]:
    return [orjson.loads(line) async for line in log.export(stream)]


def texts(records: list[Record[Event]]) -> dict[int, bytes | None]:
    """What the contents say by position; None was erased."""
    found = {record.position: record.content for record in records}
    return {
        position: None if content.erased else content.json + content.xml
        for position, content in found.items()
        if content is not None
    }


async def hold_erased(log: EventLog) -> None:
    """Of each owner, exactly what lies before its last erasure is erased."""
    records = await log.read(0, None, WITH_CONTENT, 100_000)
    last = {record.event.owner: record.position for record in records if isinstance(record.event, ContentErased)}
    for record in records:
        if record.content is not None:
            is_before = record.position < last.get(record.content.owner, 0)
            assert record.content.erased is is_before, record.position
            assert (await log.content(record.position) is None) is is_before
    assert (await log.verify()).damage == ()


# L9 - erasure


async def test_l9_what_was_erased_is_in_no_answer_and_the_events_stay(log: EventLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "secret"), sent("msg-2", "secret")))
    await log.commit(unit("thr-2", created(), sent("msg-3", "secret", owner="thr-2")))
    before = await log.read()
    digests = {record.position: record.digest for record in before if record.digest}
    position = await log.erase("thr-1", START_US, Actor("acme", "ann"))
    assert [await log.content(at) for at in (2, 3)] == [None, None]
    assert await log.contents(digests) == {5: (b'{"text":"secret"}', b"<text>secret</text>")}
    *records, last = await log.read(wanted=WITH_CONTENT)
    assert texts(records) == {2: None, 3: None, 5: b'{"text":"secret"}<text>secret</text>'}
    assert [record.content.json + record.content.xml for record in records if record.content][:2] == [b"", b""]
    assert as_tuples(await log.read(0, position - 1)) == as_tuples(before)
    assert (last.position, last.event, last.stream) == (position, ContentErased("thr-1"), ORGANISM_STREAM)
    assert (last.actor, last.at) == (Actor("acme", "ann"), START_US)
    assert (await log.verify()).damage == ()


async def test_l9_an_owner_without_contents_is_no_error_nor_one_that_is_erased_again(log: EventLog) -> None:
    assert await erase(log, "thr-1") == 1
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    assert [await erase(log, "thr-1"), await erase(log, "thr-1")] == [4, 5]
    await hold_erased(log)


async def test_l9_the_same_text_has_another_digest_each_time(log: EventLog) -> None:
    await log.commit(unit("thr-1", *(sent("msg-1", "yes") for _ in range(20))))
    assert len({record.digest for record in await log.read()}) == 20


async def test_l9_text_that_comes_after_the_erasure_stays(log: EventLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await erase(log, "thr-1")
    await log.commit(unit("thr-1", sent("msg-2", "new")))
    assert texts(await log.read(wanted=WITH_CONTENT)) == {2: None, 4: b'{"text":"new"}<text>new</text>'}


@pytest.mark.parametrize("seed", range(5))
async def test_l9_what_is_appended_meanwhile_is_erased_if_it_comes_before(log: EventLog, seed: int) -> None:
    chance = Random(seed)
    erasing: list[asyncio.Task[int]] = []
    for number in range(150):
        owner = chance.choice(["thr-1", "thr-2", "thr-3"])
        log.append(unit(owner, sent(f"msg-{number}", owner=owner)))
        if chance.random() < 0.1:
            erasing.append(asyncio.create_task(erase(log, owner)))
        if chance.random() < 0.3:
            await turn()
    positions = await asyncio.gather(*erasing)
    await log.commit(unit("thr-4", created()))
    assert log.head == 150 + len(positions) + 1
    await hold_erased(log)


async def test_l9_a_unit_that_expects_its_stream_is_not_stale_by_an_erasure(log: EventLog) -> None:
    last = await log.commit(unit("thr-1", created(), sent("msg-1")))
    await erase(log, "thr-1")
    await log.commit(unit("thr-1", sent("msg-2"), expect={"thr-1": last}))


async def test_l9_a_follower_that_stops_is_given_no_text_that_was_erased_meanwhile(log: EventLog) -> None:
    for number in range(4):
        await log.commit(unit("thr-1", sent(f"msg-{number}", "secret")))
    following = log.follow(0, WITH_CONTENT)
    found = list(await anext(following))
    await erase(log, "thr-1")
    for number in range(4, 8):  # more than is kept in memory
        await log.commit(unit("thr-2", sent(f"msg-{number}", "x" * 60_000, owner="thr-2")))
    given = len(found)
    while len(found) < 9:
        found += await anext(following)
    assert set(texts(found[given:5]).values()) <= {None}
    assert [record.position for record in found] == list(range(1, 10))


@pytest.mark.parametrize("is_written_first", [False, True])
async def test_l9_event_and_erasure_are_there_together_or_not_at_all(
    failing: EventLog, plan: Plan, *, is_written_first: bool
) -> None:
    await failing.commit(unit("thr-1", created(), sent("msg-1")))
    back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    failing.on_lost = back.set_result
    plan.fail_commits, plan.is_written_first = {2: "SQLITE_IOERR"}, is_written_first
    with pytest.raises(CommitUnknown):
        await erase(failing, "thr-1")
    assert await back == (3 if is_written_first else 2)
    assert (await failing.content(2) is None) is is_written_first
    await hold_erased(failing)
    await erase(failing, "thr-1")
    assert await failing.content(2) is None
    await hold_erased(failing)


async def test_l9_an_erasure_after_a_commit_that_failed_erases_what_was_acknowledged(
    failing: EventLog, plan: Plan
) -> None:
    await failing.commit(unit("thr-1", created(), sent("msg-1")))
    back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    failing.on_lost = back.set_result
    plan.fail_commits = {2: "SQLITE_IOERR"}
    with pytest.raises(CommitUnknown):
        await failing.commit(unit("thr-1", sent("msg-2")))
    await back
    assert await erase(failing, "thr-1") == 3
    await hold_erased(failing)


async def test_l9_one_who_does_not_wait_for_the_end_has_erased_all_the_same(log: EventLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    erasing = asyncio.create_task(erase(log, "thr-1"))
    following = log.follow(2)
    while not log.head > 2:
        if not erasing.done():
            await turn()
    erasing.cancel()
    assert [record.event for record in await anext(following)] == [ContentErased("thr-1")]
    await hold_erased(log)


# L10 - forks


@pytest.fixture
async def forked(log: EventLog) -> EventLog:
    """A thread, another one, and a fork of the first in the middle of its second unit; all three went on."""
    await log.commit(unit("thr-1", created(), sent("msg-1", "one")))
    await log.commit(unit("thr-2", created(), sent("msg-2", "two", owner="thr-2")))
    await log.commit(unit("thr-1", sent("msg-3", "three"), sent("msg-4", "four")))
    assert await copy(log, "thr-1", 5, "thr-3") == 7
    await log.commit(unit("thr-1", sent("msg-5", "five")))
    await log.commit(unit("thr-3", sent("msg-6", "six", owner="thr-3"), expect={"thr-3": 7}))
    return log


async def positions(log: EventLog, *streams: str, after: int = 0) -> list[int]:
    return [record.position for record in await log.read(after, wanted=EventFilter(streams))]


async def test_l10_a_fork_shares_the_past_and_goes_on_alone(forked: EventLog) -> None:
    assert await positions(forked, "thr-3") == [1, 2, 5, 7, 9]
    assert await positions(forked, "thr-1") == [1, 2, 5, 6, 8]
    assert await positions(forked, "thr-1", "thr-3") == [1, 2, 5, 6, 7, 8, 9]
    found = await forked.read(wanted=EventFilter(("thr-3",), content=True))
    assert [record.stream for record in found] == ["thr-1"] * 3 + ["thr-3"] * 2
    assert found[3].event == ThreadForked("thr-1", 5)
    assert texts(found)[2] == b'{"text":"one"}<text>one</text>'


@pytest.mark.parametrize("limit", [1, 2, 500])
async def test_l10_a_fork_is_read_in_spans_both_ways_and_by_type(forked: EventLog, limit: int) -> None:
    wanted = EventFilter(("thr-3",), (MessageSent,))
    up = await forked.read(1, 8, wanted, limit)
    down = await forked.read(1, 8, wanted, limit, reverse=True)
    assert [record.position for record in up] == [2, 5][:limit]
    assert [record.position for record in down] == [5, 2][:limit]


async def test_l10_a_fork_adds_one_event_however_long_the_past(log: EventLog) -> None:
    for number in range(300):
        log.append(unit("thr-1", sent(f"msg-{number}")))
    head = await log.commit(unit("thr-1", created()))
    assert await copy(log, "thr-1", head, "thr-2") == head + 1 == log.head
    assert len(await positions(log, "thr-2")) == 302


async def test_l10_a_fork_of_a_fork_shares_what_that_one_shares(forked: EventLog) -> None:
    await copy(forked, "thr-3", 9, "thr-4")
    assert await positions(forked, "thr-4") == [1, 2, 5, 7, 9, 10]
    await copy(forked, "thr-3", 2, "thr-5")
    assert await positions(forked, "thr-5") == [1, 2, 11]
    await copy(forked, "thr-5", 11, "thr-6")
    assert await positions(forked, "thr-6") == [1, 2, 11, 12]
    assert await positions(forked, "thr-5", "thr-4") == [1, 2, 5, 7, 9, 10, 11]


async def test_l10_a_follower_gets_the_shared_past_and_then_what_comes(forked: EventLog) -> None:
    wanted = EventFilter(("thr-3",))
    assert [record.position for record in await take(forked, 0, 5, wanted)] == [1, 2, 5, 7, 9]
    assert [record.position for record in await take(forked, 2, 3, wanted)] == [5, 7, 9]
    following = forked.follow(9, wanted)
    forked.append(unit("thr-1", sent("msg-7")))
    forked.append(unit("thr-3", sent("msg-8")))
    found: list[int] = []
    while not found:
        found += [record.position for record in await anext(following)]
    assert found == [11]


async def test_l10_a_follower_from_before_the_fork_gets_what_comes_after_its_position(log: EventLog) -> None:
    await log.commit(unit("thr-1", created()))
    following = log.follow(0, EventFilter(("thr-2",)))
    assert await anext(following) == []
    await copy(log, "thr-1", 1, "thr-2")
    assert [record.event for record in await anext(following)] == [ThreadForked("thr-1", 1)]


async def test_l10_contents_stay_their_owners(forked: EventLog) -> None:
    await erase(forked, "thr-3")
    wanted = EventFilter(("thr-3",), content=True)
    assert texts(await forked.read(wanted=wanted))[9] is None
    assert texts(await forked.read(wanted=wanted))[5] is not None
    await erase(forked, "thr-1")
    assert texts(await forked.read(wanted=wanted)) == {2: None, 5: None, 9: None}
    assert (await forked.verify()).damage == ()


async def test_l10_a_fork_needs_a_source_and_a_position_of_it_and_a_new_stream(forked: EventLog) -> None:
    with pytest.raises(NotFound, match="no stream 'thr-9'"):
        await copy(forked, "thr-9", 5, "thr-8")
    for until in (0, 9, 99):
        with pytest.raises(BadPosition, match="which lie from 1 to 8"):
            await copy(forked, "thr-1", until, "thr-8")
    for target in ("thr-1", "thr-3"):
        with pytest.raises(StalePosition, match=target):
            await copy(forked, "thr-1", 5, target)
    assert forked.head == 9


async def test_l10_a_stream_that_is_on_its_way_is_not_new(log: EventLog) -> None:
    await log.commit(unit("thr-1", created()))
    results = await asyncio.gather(*(copy(log, "thr-1", 1, "thr-2") for _ in range(3)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["StalePosition", "StalePosition", "int"]


# L11 - export


async def test_l11_an_export_has_a_line_for_each_event(log: EventLog) -> None:
    made: Unit = unit("thr-1", created(), sent("msg-1", "line\nbreak", owner="thr-9"))
    made.cause, made.correlation, made.actor = "msg-0", "msg-9", Actor("acme", "ann", "req-1", "holder")
    await log.commit(made)
    await log.commit(unit("thr-2", created()))
    first, second = await exported(log, "thr-1")
    assert first == {
        "position": 1,
        "type": "thread_created",
        "at": "2025-11-21T23:33:20.000000Z",
        "thread_id": "thr-1",
        "cause": "msg-0",
        "correlation": "msg-9",
        "actor": {"tenant": "acme", "user": "ann", "request_id": "req-1", "principal": "holder"},
        "data": {},
    }
    assert second["content"] == {"json": {"text": "line\nbreak"}, "xml": "<text>line\nbreak</text>"}
    assert isinstance(second["data"], dict)
    assert (second["data"]["message"], second["data"]["content_owner"]) == ("msg-1", "thr-9")


async def test_l11_an_export_is_one_line_an_event_whatever_the_json_looks_like(log: EventLog) -> None:
    record = sent("msg-1")
    assert record.content is not None
    record.content.json = b'{\n  "number": 12345678901234567890123,\r\n  "text": "\\n"\n}'
    await log.commit(unit("thr-1", record))
    (line,) = [line async for line in log.export("thr-1")]
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert b'"number": 12345678901234567890123' in line


async def test_l11_an_export_of_a_fork_has_the_shared_past_and_of_nothing_nothing(forked: EventLog) -> None:
    assert [line["position"] for line in await exported(forked, "thr-3")] == [1, 2, 5, 7, 9]
    assert await exported(forked, "thr-9") == []


async def test_l11_an_export_reads_as_it_is_asked_for_and_ends_where_the_log_was(log: EventLog) -> None:
    for number in range(3 * PAGE_EVENTS):
        log.append(unit("thr-1", sent(f"msg-{number}")))
    await log.commit(unit("thr-1", created()))
    lines = log.export("thr-1")
    found = [orjson.loads(await anext(lines))]
    await erase(log, "thr-1")
    await log.commit(unit("thr-1", sent("msg-last")))
    found += [orjson.loads(line) async for line in lines]
    assert len(found) == 3 * PAGE_EVENTS + 1
    erased = [line.get("content") == {"erased": True} for line in found]
    assert erased == [False] * PAGE_EVENTS + [True] * 2 * PAGE_EVENTS + [False]
