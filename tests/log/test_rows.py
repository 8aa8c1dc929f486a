"""In which thread rows are read, and what a read waits for (L4, L8)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from organism.errors import CommitUnknown
from organism.log.offline import verify_directory
from organism.log.rows.versions import GENERATION_ROWS
from organism.log.sqlite import SqliteLog
from organism.sqlite import reader
from organism.views.views import PAGE_ROWS, Page, Query, all_rows
from tests.flows.disk import Disk
from tests.log.engines import MODELS, THREADS, Message, created, open_durable, sent, turn, unit, views
from tests.log.faulty import FaultyDriver, Plan

IN_THE_LOOP = "MainThread"


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def log(tmp_path: Path, plan: Plan) -> AsyncIterator[SqliteLog]:
    opened = await open_durable(tmp_path / "log", FaultyDriver(plan))
    yield opened
    await opened.close()


def ids(page: Page) -> list[str]:
    return [row["id"] for row in orjson.loads(page.rows)]


@pytest.fixture
def readers(plan: Plan) -> list[str]:
    """The names of the threads in which pages are read, in the order of their attempts."""
    plan.page_threads = []
    return plan.page_threads


def beside(readers: list[str]) -> list[bool]:
    """Whether each page was read in another thread than the loop's."""
    return [name != IN_THE_LOOP for name in readers]


async def test_a_page_is_read_at_once(log: SqliteLog, readers: list[str]) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await views(log).rows("messages", Query())
    assert beside(readers) == [False]


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_all_rows_are_those_of_all_pages(log: SqliteLog, more: int) -> None:
    names = [f"msg-{number}" for number in range(2 * PAGE_ROWS + more)]
    await log.commit(unit("thr-1", created(), *(sent(name) for name in names)))
    found = await all_rows(views(log), "messages", Query(order_by="position", limit=3, offset=1), Message)
    assert [row.id for row in found] == names[1:]


@pytest.mark.parametrize("limit", ["QUICK_SECONDS", "WAIT_SECONDS"])
async def test_a_page_that_takes_time_is_read_in_another_thread(
    log: SqliteLog, readers: list[str], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(reader, limit, -1.0)
    monkeypatch.setattr(reader, "CLOCK_STEPS", 1)
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    assert ids(await views(log).rows("messages", Query())) == ["msg-1"]
    assert beside(readers) == [False, True]
    assert await views(log).private_row(THREADS, "thr-1") is not None


async def test_a_search_of_texts_never_holds_up_the_loop(log: SqliteLog, readers: list[str]) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await views(log).rows("messages", Query(text="hello"))
    await views(log).rows("threads", Query(text="hello"))
    assert beside(readers) == [True, True]


async def test_l8_a_read_waits_while_every_connection_is_closed(log: SqliteLog, plan: Plan) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    plan.fail_commits, plan.renewal = {2: "SQLITE_IOERR"}, threading.Event()
    back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    log.on_lost = back.set_result
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-2")))
    await turn()
    reading = asyncio.ensure_future(views(log).rows("messages", Query()))
    for _ in range(10):
        await turn()
    assert not reading.done()
    plan.renewal.set()
    assert ids(await reading) == ["msg-1"]
    assert await back == 2


async def test_rows_changed_over_and_over_before_a_commit_are_what_their_events_make_of_them(tmp_path: Path) -> None:
    """More of them wait for the disk than are remembered of what is written."""
    disk = Disk()
    log = await open_durable(tmp_path / "log", disk)
    threads = [f"thr-{number:04}" for number in range(GENERATION_ROWS + 100)]
    disk.hold()
    units = [unit(thread, created()) for thread in threads]
    units += [unit(thread, sent(f"msg-{at}-{thread}")) for at in range(3) for thread in threads]
    waiting = [asyncio.create_task(log.commit(one)) for one in units]
    await turn()
    disk.release()
    await asyncio.gather(*waiting)
    await log.close()
    assert verify_directory(tmp_path / "log", models=MODELS).damage == ()
