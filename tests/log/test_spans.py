"""Rows of spans: each is made of its events, once they are all there, whatever happens in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from organism.errors import CommitUnknown
from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import Event, MessageHandled, MessageSent
from organism.log.offline import verify_directory
from organism.log.sqlite import SqliteLog
from organism.views.activity import DETAILS, LONG_SPAN, LONG_SPANS, SPAN, SPANS, LongSpan, Span, add, summed
from organism.views.views import Query, all_rows
from tests.log.engines import START_US, open_durable
from tests.log.faulty import FaultyDriver, Plan

MODELS = (DETAILS, SPANS, LONG_SPANS)
ALL = 1 << 20
UNIT_EVENTS = 7


async def tell(log: SqliteLog, until: int) -> None:
    """Messages and handlings up to a position, in units that spans cut."""
    unit = None
    for number in range(log.head, until, UNIT_EVENTS):
        names = [f"agent-{each % 5}" for each in range(number, min(number + UNIT_EVENTS, until))]
        records: list[Record[Event]] = [
            Record(MessageHandled("m", name, "done", number))
            if at % 2
            else Record(MessageSent("m", "console", name, f"T{at}", 1, "t"), Content("thr-1", b'{"text":"long"}'))
            for at, name in enumerate(names)
        ]
        unit = Unit("thr-1", records, START_US + number, {})
        log.append(unit)
    if unit is not None:
        await log.commit(Unit("thr-1", [Record(MessageHandled("m", "agent-0", "done", 1))], START_US + until, {}))


def bytes_of(rows: list[Span] | list[LongSpan]) -> list[bytes]:
    return [msgspec.json.encode(row) for row in rows]


async def test_a_row_is_the_sum_of_its_span_also_over_a_restart(tmp_path: Path) -> None:
    for until in (SPAN // 2, SPAN + SPAN // 2, LONG_SPAN - 3 * SPAN, LONG_SPAN + SPAN):
        log = await open_durable(tmp_path, models=MODELS)
        await tell(log, until)
        await log.close()
    log = await open_durable(tmp_path, models=MODELS)
    records = await log.read(limit=ALL)
    spans = await all_rows(log.views, SPANS.name, Query(order_by="position"), Span)
    long_spans = await all_rows(log.views, LONG_SPANS.name, Query(order_by="position"), LongSpan)
    await log.close()
    parts = [records[begin : begin + SPAN] for begin in range(0, len(records) - SPAN + 1, SPAN)]
    assert bytes_of(spans) == bytes_of([summed(part) for part in parts])
    whole = LongSpan(position=0)
    for span in spans[: LONG_SPAN // SPAN]:
        add(whole, span)
    assert bytes_of(long_spans) == bytes_of([whole])
    assert whole.messages == sum(isinstance(record.event, MessageSent) for record in records[:LONG_SPAN])
    assert verify_directory(tmp_path, models=MODELS).damage == ()


async def test_what_a_failed_commit_has_lost_is_in_no_row(tmp_path: Path) -> None:
    plan = Plan()
    log = await open_durable(tmp_path, FaultyDriver(plan), MODELS)
    await tell(log, SPAN // 2)
    again: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    log.on_lost = again.set_result
    plan.fail_commits = {plan.commits + 1: "SQLITE_IOERR"}
    with pytest.raises(CommitUnknown):
        await log.commit(Unit("thr-1", [Record(MessageHandled("m", "lost", "done", 1))], START_US, {}))
    await again
    await tell(log, 2 * SPAN)
    (found, *_) = await all_rows(log.views, SPANS.name, Query(order_by="position"), Span)
    assert bytes_of([found]) == bytes_of([summed(await log.read(limit=SPAN))])
    assert "lost" not in found.agents
    await log.close()
