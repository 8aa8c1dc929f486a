"""Rows as of any position (organism/views/views.py, V4), on every engine, over more than two checkpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from organism.events.record import Record, Unit
from organism.events.vocabulary import Event
from organism.log.log import EventLog
from organism.log.rows.versions import CHECKPOINT_EVENTS
from organism.sqlite.driver import Pysqlite
from organism.views.views import Among, Query, Where
from tests.contracts.test_views import STORES
from tests.log.engines import START_US, anchor, created, handled, killed, open_durable, sent, unit, views

LAST = 2 * CHECKPOINT_EVENTS + 300
"""So many events has the story, at least."""
THREADS = [f"thr-{number:02}" for number in range(30)]
KEYS = {"messages": "msg-00700", "threads": "thr-07", "agents": "greeter"}
QUERIES = {
    "messages": (
        Query(order_by="position", limit=5, descending=True),
        Query((Where("thread", "=", "thr-07"),), order_by="position", limit=7),
        Query(order_by="position", limit=3, text="number 7"),
        Query(order_by="position", limit=3, after=(500, "msg-00100")),
        Query(order_by="position", limit=3, among=(Among("thread", "threads", (Where("sent", ">", 3),)),)),
    ),
    "threads": (
        Query(order_by="last", limit=9, descending=True),
        Query((Where("sent", ">", 3),), order_by="last", limit=4, offset=2),
        Query(order_by="last", limit=4, descending=True, after=(1000, "thr-07")),
        Query(order_by="last", limit=4, text="number 17"),
    ),
    "agents": (Query(),),
}
Answers = dict[str, Any]


def unit_of(number: int) -> Unit:
    """The story's unit of this number: threads begin, are killed and begin again, messages come and go."""
    chance = Random(number)
    thread = chance.choice(THREADS)
    records: list[Record[Event]] = [
        sent(f"msg-{number:05}", f"number {number}", chance.choice(["greeter", "shouter", "thr"]))
    ]
    if chance.random() < 0.5:
        records.append(handled(f"msg-{number:05}", chance.choice(["greeter", "shouter"])))
    if chance.random() < 0.05:
        records.append(killed())
    return unit(thread, created(), *records, at=START_US + 10 * (number // 2))


async def answers(log: EventLog, at: int | None = None) -> Answers:
    """What the log says to every question, as of a position if one is given."""
    found: Answers = {}
    for model, queries in QUERIES.items():
        found[model] = await views(log).row(model, KEYS[model], at)
        for number, query in enumerate(queries):
            found[f"{model} {number}"] = await views(log).rows(model, replace(query, at=at))
    return found


async def tell(log: EventLog, kept: dict[int, Answers], until: int) -> None:
    """Commit further units, and keep what the log says now and then: at each checkpoint, and next to it."""
    head = log.head
    while head < until:
        each, chance = unit_of(head), Random(head).random()
        head += len(each.records)
        near = min(head % CHECKPOINT_EVENTS, -head % CHECKPOINT_EVENTS) < 4
        if near or chance < 0.01:
            await log.commit(each)
            kept[head] = await answers(log)
        else:
            log.append(each)
    await log.commit(unit_of(head))


@pytest.fixture(params=STORES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = await STORES[request.param](tmp_path / "log")
    yield opened
    await opened.close()


@pytest.mark.thorough
async def test_v4_each_answer_can_be_had_again_as_of_its_position(log: EventLog) -> None:
    kept: dict[int, Answers] = {}
    await tell(log, kept, LAST)
    assert len(kept) > 20
    for position, then in kept.items():
        assert await answers(log, position) == then
    assert await answers(log, log.head) == await answers(log)
    assert await answers(log, log.head + 1) == await answers(log)


async def test_v4_before_the_first_event_there_was_nothing(log: EventLog) -> None:
    await tell(log, {}, 20)
    before = await answers(log, 0)
    assert before["threads"] is None
    assert [page.total for name, page in before.items() if " " in name] == [0] * 10


@pytest.mark.thorough
async def test_v4_a_row_that_was_deleted_is_there_before_and_not_after(log: EventLog) -> None:
    for number in range(CHECKPOINT_EVENTS):  # so many versions of it
        log.append(unit("thr-1", created(), sent(f"msg-{number}")))
    end = await log.commit(unit("thr-1", killed()))
    await log.commit(unit("thr-2", *(created() for _ in range(CHECKPOINT_EVENTS))))
    assert await views(log).row("threads", "thr-1") is None
    assert await views(log).row("threads", "thr-1", end) is None
    assert orjson.loads(await views(log).row("threads", "thr-1", end - 1) or b"")["sent"] == CHECKPOINT_EVENTS
    threads = (await views(log).rows("threads", Query(order_by="last", at=end - 1))).rows
    assert [row["id"] for row in orjson.loads(threads)] == ["thr-1"]


async def test_the_last_position_of_a_time_is_that_of_the_last_event_not_after_it(log: EventLog) -> None:
    await tell(log, {}, 200)
    times = [(record.position, record.at) for record in await log.read(limit=1000)]
    for _, at in times[::7]:
        assert await log.position_at(at) == max(position for position, other in times if other <= at)
        assert await log.position_at(at - 1) == max((position for position, other in times if other < at), default=0)
    assert await log.position_at(START_US - 1) == 0
    assert await log.position_at(START_US * 2) == log.head


def nothing(_place: Path) -> None:
    """The log is opened again as it was closed."""


def without_rows(place: Path) -> None:
    """Every row is made again, and the live rows have no checkpoint."""
    with closing(Pysqlite().connect(str(place / "log.sqlite"))) as database:
        database.execute("DELETE FROM models")


@pytest.mark.thorough
@pytest.mark.parametrize("meanwhile", [nothing, without_rows])
async def test_v4_the_past_is_the_same_over_stops_and_rebuilds(
    tmp_path: Path, meanwhile: Callable[[Path], None]
) -> None:
    kept: dict[int, Answers] = {}
    for until in (350, CHECKPOINT_EVENTS - 2, CHECKPOINT_EVENTS + 5, 2 * CHECKPOINT_EVENTS - 400, LAST):
        log = await open_durable(tmp_path / "log")
        await tell(log, kept, until)
        anchor(log)
        await log.close()
        meanwhile(tmp_path / "log")
    log = await open_durable(tmp_path / "log")
    for position, then in kept.items():
        assert await answers(log, position) == then
    await log.close()
    with closing(Pysqlite().connect(str(tmp_path / "log" / "log.sqlite"))) as database:
        checkpoints = database.execute(
            "SELECT position FROM snapshots WHERE name = 'live' ORDER BY position"
        ).fetchall()
    steps = [later - earlier for (earlier,), (later,) in pairwise([(0,), *checkpoints])]
    assert max(steps) < CHECKPOINT_EVENTS + 100
