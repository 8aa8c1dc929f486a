"""Reads of rows beside their writing: nobody waits for it, nobody sees half of it (L4)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.errors import CommitUnknown
from organism.log import beside, rows
from organism.log.crew import LONG_LOOKS, Crew
from organism.log.driver import Connection
from organism.log.log import EventFilter, Page, Query, Where
from organism.log.sqlite import SqliteLog
from organism.log.views import read_page
from organism.log.worker import Worker
from tests.log.engines import created, open_durable, sent, turn, unit
from tests.log.faulty import FaultyDriver, Plan

READ_PAGE, RENEW_LOG = "read_page", "_renew_log"
IN_THE_LOOP = "MainThread"


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def log(tmp_path: Path, plan: Plan) -> AsyncIterator[SqliteLog]:
    opened = await open_durable(tmp_path / "log", FaultyDriver(plan))
    yield opened
    await opened.close()


@contextmanager
def held_keeper(log: SqliteLog) -> Iterator[None]:
    """While it lasts no row is written: the thread that writes them stands still."""
    gate = threading.Event()
    log._crew.keeper.post(lambda _, __: None, gate.wait)  # noqa: SLF001 - nobody else can
    try:
        yield
    finally:
        gate.set()


async def written(log: SqliteLog) -> None:
    """Wait until the file has every row."""
    await log._rows.flushed()  # noqa: SLF001 - else the clock says when


def ids(page: Page) -> list[str]:
    return [row["id"] for row in orjson.loads(page.rows)]


async def test_l4_no_read_waits_for_rows_to_be_written(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    with held_keeper(log):
        await log.commit(unit("thr-1", sent("msg-2", "second")))
        log._rows.flush()  # noqa: SLF001 - it is under way from here on
        await log.commit(unit("thr-2", created(), sent("msg-3")))
        of_thread = Query((Where("thread", "=", "thr-1"),), "position")
        assert ids(await log.rows("messages", of_thread)) == ["msg-1", "msg-2"]
        assert ids(await log.rows("messages", Query(text="second"))) == ["msg-2"]
        assert (await log.rows("threads", Query((Where("sent", ">", 1),)))).total == 1
        assert ids(await log.rows("threads", Query(order_by="last", descending=True))) == ["thr-2", "thr-1"]
        assert [e.position for e in await log.read(wanted=EventFilter(("thr-1",)))] == [1, 2, 3]
        assert orjson.loads(await log.row("messages", "msg-3") or b"")["payload"] == {"text": "hello"}
        assert (await log.rows("messages", Query(at=2))).total == 1


async def test_many_rows_are_written_before_a_list_of_all_is_read(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MANY_ROWS", 2)
    for number in range(4):
        await log.commit(unit(f"thr-{number}", created(), sent(f"msg-{number}")))
    with held_keeper(log):
        of_thread = Query((Where("thread", "=", "thr-1"),))
        assert ids(await log.rows("messages", of_thread)) == ["msg-1"]
        listing = asyncio.ensure_future(log.rows("messages", Query()))
        for _ in range(10):
            await turn()
        assert not listing.done()
    assert (await listing).total == 4


async def test_rows_are_written_without_being_read(log: SqliteLog) -> None:
    """A commit that comes while a flush is under way has its rows written after it, though nothing more comes."""
    with held_keeper(log):
        await log.commit(unit("thr-1", created()))
        log._rows.flush()  # noqa: SLF001 - it is under way from here on
        await log.commit(unit("thr-2", created()))
        log._rows._tick()  # noqa: SLF001 - its time has come, and nothing can be done
    while log._rows.heads.indexed < log.head:  # noqa: SLF001 - how far the file is
        await turn()


async def test_l4_what_names_rows_by_its_text_is_written_first(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "needle")))
    await written(log)
    await log.commit(unit("thr-2", created(), sent("msg-2", "needle")))
    assert ids(await log.rows("threads", Query(text="needle"))) == ["thr-1", "thr-2"]


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which pages are read, in the order of their attempts."""
    names: list[str] = []

    def noted(connection: Connection, *arguments: Any) -> Page:
        names.append(threading.current_thread().name)
        return read_page(connection, *arguments)

    monkeypatch.setattr(rows, READ_PAGE, noted)
    return names


async def test_a_page_is_read_at_once(log: SqliteLog, readers: list[str]) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await log.rows("messages", Query())
    assert readers == [IN_THE_LOOP]


@pytest.mark.parametrize("limit", ["QUICK_SECONDS", "WAIT_SECONDS"])
async def test_a_page_that_takes_time_is_read_in_another_thread(
    log: SqliteLog, readers: list[str], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(beside, limit, -1.0)
    monkeypatch.setattr(beside, "LOOK_STEPS", 1)
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    assert ids(await log.rows("messages", Query())) == ["msg-1"]
    assert readers == [IN_THE_LOOP, "log-reader"]
    assert await log.private_row("threads", "thr-1") is not None


async def test_a_search_of_texts_never_holds_up_the_loop(log: SqliteLog, readers: list[str]) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await log.rows("messages", Query(text="hello"))
    await log.rows("threads", Query(text="hello"))
    assert readers == ["log-reader", "log-reader"]


async def test_l4_a_read_that_takes_time_sees_all_as_it_was_at_one_moment(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def late(connection: Connection, *arguments: Any) -> Page:
        gate.wait()
        return read_page(connection, *arguments)

    monkeypatch.setattr(rows, READ_PAGE, late)
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    reading = asyncio.ensure_future(log.rows("messages", Query(text="hello")))
    await turn()
    await log.commit(unit("thr-1", sent("msg-2")))
    await written(log)
    gate.set()
    assert ids(await reading) == ["msg-1"]


async def test_l4_reads_that_take_time_wait_for_each_other_and_not_for_ever(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    pages = await asyncio.gather(*(log.rows("messages", Query(text="hello")) for _ in range(20)))
    assert [page.total for page in pages] == [1] * 20


async def test_l8_a_read_waits_while_every_connection_is_closed(
    log: SqliteLog, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    loop, gate, renew = asyncio.get_running_loop(), threading.Event(), getattr(Crew, RENEW_LOG)
    begun = asyncio.Event()

    def held(*arguments: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        gate.wait()
        return renew(*arguments)

    monkeypatch.setattr(Crew, RENEW_LOG, held)
    plan.fail_commits = {2: "SQLITE_IOERR"}
    back: asyncio.Future[int] = loop.create_future()
    log.on_lost = back.set_result
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-2")))
    await begun.wait()
    reading = asyncio.ensure_future(log.rows("messages", Query()))
    for _ in range(10):
        await turn()
    assert not reading.done()
    gate.set()
    assert ids(await reading) == ["msg-1"]
    assert await back == 2


async def test_many_looks_into_the_past_at_once_hold_few_threads(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    hired: list[Worker] = []
    gate = threading.Event()

    def hire_counted(*arguments: Any) -> Worker:
        hired.append(Worker(*arguments))
        return hired[-1]

    monkeypatch.setattr("organism.log.crew.Worker", hire_counted)
    looking = [asyncio.ensure_future(log._crew.apart(lambda _: gate.wait())) for _ in range(5 * LONG_LOOKS)]  # noqa: SLF001 - nobody else can
    await turn()
    at_once = len(hired)
    gate.set()
    assert all(await asyncio.gather(*looking))
    assert (at_once, len(hired)) == (LONG_LOOKS, len(looking))
