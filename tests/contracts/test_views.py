"""The contract of the views (organism/views/views.py, V1 and V2; V3: tests/log, V4: test_past), on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from msgspec import to_builtins

from organism.events.record import Unit
from organism.log.log import EventLog
from organism.log.sqlite import SqliteLog
from organism.views.views import Among, Begin, Query, Sums, Where
from tests.log.engines import MODELS, THREADS, created, handled, killed, open_durable, sent, unit, views

Open = Callable[[Path], Awaitable[EventLog]]
STORES: dict[str, Open] = {
    "sqlite": open_durable,
    "memory": lambda _: SqliteLog.in_memory(MODELS),
}


@pytest.fixture(params=STORES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = await STORES[request.param](tmp_path / "log")
    yield opened
    await opened.close()


@pytest.fixture
async def filled(log: EventLog) -> EventLog:
    """Three messages in two threads."""
    log.append(unit("thr-1", created(), sent("msg-1", "first Word", to="ann")))
    log.append(unit("thr-2", created(), sent("msg-2", 'a "quoted" ü', to="bob")))
    await log.commit(unit("thr-1", sent("msg-3", "third", to="bob")))
    return log


async def test_v1_a_read_after_then_sees_the_rows_that_follow_from_the_unit(log: EventLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "hi"), handled("msg-1")))
    assert await views(log).row("messages", "msg-1") == (
        b'{"id":"msg-1","thread":"thr-1","to":"greeter","position":2,"names":["console","greeter"],'
        b'"payload":{"text":"hi"}}'
    )
    assert (await views(log).rows("agents", Query())).rows == b'[{"name":"greeter","got":1,"done":1}]'
    thread = await views(log).private_row(THREADS, "thr-1")
    assert thread is not None
    assert to_builtins(thread.public) == {"id": "thr-1", "first": 1, "sent": 1, "last": 2}
    assert thread.private.seen == ["thread_created", "message_sent"]


async def test_v1_an_empty_log_has_no_rows(log: EventLog) -> None:
    assert await views(log).row("threads", "thr-1") is None
    assert (await views(log).rows("threads", Query())).rows == b"[]"


async def test_v1_a_then_that_raises_keeps_no_row_from_the_unit(log: EventLog) -> None:
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))

    def then(_done: Unit, _error: Exception | None) -> None:
        raise ArithmeticError

    first = unit("thr-1", created(), sent("msg-1", to="greeter"))
    first.then = then
    log.append(first)
    await log.commit(unit("thr-2", created()))
    assert [type(error) for error in raised] == [ArithmeticError]
    assert await views(log).row("agents", "greeter") is not None


async def test_v1_a_row_can_end(log: EventLog) -> None:
    await log.commit(unit("thr-1", created()))
    assert (await views(log).rows("threads", Query())).total == 1
    await log.commit(unit("thr-1", killed()))
    assert (await views(log).rows("threads", Query())).total == 0
    assert await views(log).row("threads", "thr-1") is None


def ids(rows: bytes) -> list[str]:
    return [row["id"] for row in orjson.loads(rows)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(), ["msg-1", "msg-2", "msg-3"]),
        (Query(order_by="position", descending=True), ["msg-3", "msg-2", "msg-1"]),
        (Query(order_by="to", descending=True), ["msg-3", "msg-2", "msg-1"]),
        (Query(where=(Where("to", "=", "bob"),)), ["msg-2", "msg-3"]),
        (Query(where=(Where("to", "in", ["ann", "eve"]),)), ["msg-1"]),
        (Query(where=(Where("position", ">", 2), Where("position", "<=", 5))), ["msg-2", "msg-3"]),
        (Query(where=(Where("position", ">=", 4), Where("position", "<", 5))), ["msg-2"]),
        (Query(where=(Where("names", "has", "ann"),)), ["msg-1"]),
        (Query(where=(Where("names", "has", "an"),)), []),
        (Query(where=(Where("", "=", "thr-2", any_of=("to", "thread")),)), ["msg-2"]),
        (Query(text="WORD"), ["msg-1"]),
        (Query(text='"quoted" ü'), ["msg-2"]),
        (Query(text="%"), []),
        (Query(order_by="position", limit=1, offset=1), ["msg-2"]),
        (Query(among=(Among("thread", "threads", (Where("sent", "=", 2),)),)), ["msg-1", "msg-3"]),
        (Query((Where("to", "=", "bob"),), among=(Among("thread", "threads", (Where("sent", ">", 1),)),)), ["msg-3"]),
        (Query(among=(Among("thread", "threads", (Where("sent", ">", 2),)),)), []),
    ],
)
async def test_v2_a_page_has_the_rows_that_were_asked_for(filled: EventLog, query: Query, expected: list[str]) -> None:
    page = await views(filled).rows("messages", query)
    assert ids(page.rows) == expected
    assert page.count == len(expected)
    assert page.total == (3 if query.limit == 1 else len(expected))
    assert page.before == query.offset


@pytest.mark.parametrize(
    ("query", "expected", "before"),
    [
        (Query(after=("", "msg-1")), ["msg-2", "msg-3"], 1),
        (Query(after=("", "msg-15")), ["msg-2", "msg-3"], 1),
        (Query(after=("", "msg-2"), descending=True), ["msg-1"], 2),
        (Query(after=(4, "msg-2"), order_by="position"), ["msg-3"], 2),
        (Query(after=(4, "msg-2"), order_by="position", descending=True), ["msg-1"], 2),
        (Query(after=("bob", "msg-2"), order_by="to"), ["msg-3"], 2),
        (Query(after=("bob", "msg-3"), order_by="to", descending=True), ["msg-2", "msg-1"], 1),
        (Query((Where("to", "=", "bob"),), after=(2, "msg-1"), order_by="position"), ["msg-2", "msg-3"], 0),
        (Query(after=(2, "msg-1"), order_by="position", offset=1), ["msg-3"], 2),
        (Query(after=(2, "msg-1"), order_by="position", text="third"), ["msg-3"], 0),
        (Query(after=(5, "msg-3"), order_by="position"), [], 3),
    ],
)
async def test_v2_a_page_begins_behind_a_place(
    filled: EventLog, query: Query, expected: list[str], before: int
) -> None:
    page = await views(filled).rows("messages", query)
    assert (ids(page.rows), page.count, page.before) == (expected, len(expected), before)
    assert page.total == (1 if query.text else 2 if query.where else 3)
    rows = orjson.loads(page.rows)
    value = rows[-1][query.order_by] if rows and query.order_by else ""
    assert page.last == ((value, rows[-1]["id"]) if rows else None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(text="WORD"), ["thr-1"]),
        (Query(text="r"), ["thr-1"]),
        (Query(text="o"), ["thr-1", "thr-2"]),
        (Query(text='"quoted" ü'), ["thr-2"]),
        (Query(text="%"), []),
        (Query(text="third", at=4), []),
        (Query(text="third", at=5), ["thr-1"]),
    ],
)
async def test_v2_a_thread_is_found_by_the_text_of_its_messages(
    filled: EventLog, query: Query, expected: list[str]
) -> None:
    page = await views(filled).rows("threads", query)
    assert (ids(page.rows), page.total) == (expected, len(expected))


async def test_v2_who_walks_through_rows_while_they_change_skips_none_and_gets_none_twice(log: EventLog) -> None:
    for number in range(6):
        await log.commit(unit(f"thr-{number}", created()))
    got: list[str] = []
    query: Query | None = Query(order_by="first", descending=True, limit=2)
    while query is not None:
        page = await views(log).rows("threads", query)
        got += ids(page.rows)
        query = replace(query, after=page.last) if page.before + page.count < page.total else None
        await log.commit(unit(f"thr-{9 - len(got)}", created()))  # a row before the next page
        await log.commit(unit(got[-1], killed()))  # the row that the next page begins behind
    assert got == [f"thr-{number}" for number in (5, 4, 3, 2, 1, 0)]


async def test_v4_a_walk_at_a_position_is_through_rows_as_they_stood(log: EventLog) -> None:
    for number in range(6):
        await log.commit(unit(f"thr-{number}", created()))
    got: list[str] = []
    query: Query | None = Query(order_by="last", descending=True, limit=2, at=log.head)
    while query is not None:
        page = await views(log).rows("threads", query)
        got += ids(page.rows)
        query = replace(query, after=page.last) if page.before + page.count < page.total else None
        await log.commit(unit("thr-0", created()))
        await log.commit(unit(got[-1], created()))
    assert got == [f"thr-{number}" for number in (5, 4, 3, 2, 1, 0)]


async def test_v4_sums_are_of_the_rows_at_a_position_in_the_order_of_their_first_ones(filled: EventLog) -> None:
    by_to, by_begin = Sums(("to",)), Sums((Begin("thread", 3), "to"), (Where("to", "=", "bob"),))
    assert await views(filled).sums("messages", by_to) == [("ann", 1, 2, "thr-1"), ("bob", 2, 9, "thr-2")]
    assert await views(filled).sums("messages", replace(by_to, at=4)) == [
        ("ann", 1, 2, "thr-1"),
        ("bob", 1, 4, "thr-2"),
    ]
    assert await views(filled).sums("messages", by_begin) == [("thr", "bob", 2, 9, "thr-2")]
    assert await views(filled).sums("messages", replace(by_to, at=1)) == []
    assert await views(filled).sums("threads", Sums(("sent",))) == [(1, 1), (2, 1)]


async def test_v2_a_column_that_is_not_declared_is_refused(filled: EventLog) -> None:
    with pytest.raises(ValueError, match="messages has the columns"):
        await views(filled).rows("messages", Query(order_by="body; DROP TABLE units"))
