"""Rows that another process writes: nothing that is read differs, whatever becomes of that process."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.errors import CommitUnknown
from organism.log import row_writers
from organism.log.driver import Failure, Pysqlite
from organism.log.folds import Folds
from organism.log.log import Query
from organism.log.sqlite import SqliteLog
from organism.log.views import load_row
from tests.log.engines import created, found_out, open_durable, sent, turn, unit
from tests.log.faulty import FaultyDriver, Plan
from tests.log.projecting import (
    another,
    flush,
    in_the_file,
    opened,
    pid_of,
    projected,
    projector_of,
    ready,
    written,
)


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process is asked for a single unit's rows."""
    monkeypatch.setattr(row_writers, "FEW_UNITS", 1)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    async with projected(tmp_path / "log") as made:
        yield made


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each fold of this process took."""
    counts: list[int] = []
    fold = Folds._fold  # noqa: SLF001 - it is what a fold costs

    def counted(folds: Any, owed: Any) -> None:
        counts.append(len(owed))
        fold(folds, owed)

    monkeypatch.setattr(Folds, "_fold", counted)
    return counts


async def test_a_flush_of_many_units_has_a_process_begun_and_one_of_few_none(tmp_path: Path) -> None:
    log = await opened(tmp_path / "log")
    projector = projector_of(log)
    for number in range(row_writers.MANY_UNITS - 2):
        log.append(unit(f"thr-{number}", created()))
    await log.commit(unit("thr-few", created()))
    await written(log)
    few = projector._working  # noqa: SLF001 - the log shows it to nobody
    for number in range(row_writers.MANY_UNITS):
        log.append(unit(f"thr-{number}", sent(f"msg-{number}")))
    await written(log)
    assert few is None
    while not projector.is_ready:
        await turn()
    await log.close()


async def test_few_rows_are_written_here_though_there_is_another_process(
    log: SqliteLog, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writers, "FEW_UNITS", 2)
    await log.commit(unit("thr-1", created()))
    await written(log)
    assert folded == [1]
    log.append(unit("thr-1", sent("msg-1")))
    await log.commit(unit("thr-1", sent("msg-2")))
    await written(log)
    assert folded == [1]
    assert in_the_file(log, "thr-1")["sent"] == 2


async def test_what_nobody_reads_is_folded_in_the_other_process_alone(log: SqliteLog, folded: list[int]) -> None:
    await log.commit(unit("thr-first", created()))
    await written(log)
    for number in range(300):
        log.append(unit(f"thr-{number}", created(), sent(f"msg-{number}")))
    await log.commit(unit("thr-last", created(), sent("msg-last")))
    await written(log)
    assert folded == []
    assert (await log.rows("messages", Query())).total == 301
    assert await log.private_row("threads", "thr-7") == {"id": "thr-7", "first": 16, "sent": 1, "last": 17} | {
        "_seen": ["thread_created", "message_sent"]
    }
    assert folded == []


async def test_l4_rows_are_read_as_they_are_while_the_other_process_stands_still(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    await log.commit(unit("thr-1", sent("msg-2")))
    os.kill(pid_of(log), signal.SIGSTOP)
    flush(log)
    await log.commit(unit("thr-1", sent("msg-3")))
    await log.commit(unit("thr-2", created()))
    held = [await log.rows("messages", Query(order_by="position")), await log.rows("threads", Query())]
    row = await log.private_row("threads", "thr-1")
    past = asyncio.ensure_future(log.rows("threads", Query(at=4)))
    os.kill(pid_of(log), signal.SIGCONT)
    await written(log)
    assert held == [await log.rows("messages", Query(order_by="position")), await log.rows("threads", Query())]
    assert row == await log.private_row("threads", "thr-1")
    assert row is not None
    assert row["sent"] == 3
    assert [thread["sent"] for thread in orjson.loads((await past).rows)] == [3]


async def test_no_event_is_folded_into_a_row_that_has_it_already(log: SqliteLog) -> None:
    """The rows are written and nobody here knows it yet: what is read meanwhile rests on the rows before them."""
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    await log.commit(unit("thr-1", sent("msg-2")))
    flush(log)
    while in_the_file(log, "thr-1")["sent"] < 2:
        pass  # the loop stands still, so that it cannot hear that they are written
    row = await log.private_row("threads", "thr-1")
    assert row is not None
    assert row["sent"] == 2


async def test_one_that_dies_with_its_work_done_has_nothing_done_twice(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    await log.commit(unit("thr-1", sent("msg-2")))
    os.kill(pid_of(log), signal.SIGSTOP)
    flush(log)
    for _ in another(log).steps(log.head):
        pass
    os.kill(pid_of(log), signal.SIGKILL)
    await written(log)
    assert in_the_file(log, "thr-1")["sent"] == 2
    await log.commit(unit("thr-1", sent("msg-3")))
    await written(log)
    again = log._parts.crew.still(load_row, "threads", "thr-1")  # noqa: SLF001 - what a fold begins with
    assert again is not None
    assert again["sent"] == 3, "rows are read as they are again"


async def test_who_waits_for_rows_gets_them_though_their_writer_dies(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "needle")))
    os.kill(pid_of(log), signal.SIGSTOP)
    searching = asyncio.ensure_future(log.rows("threads", Query(text="needle")))
    await turn()
    os.kill(pid_of(log), signal.SIGKILL)
    assert (await searching).total == 1


async def test_a_disk_without_room_ends_it_and_is_the_logs_own_matter(
    log: SqliteLog, capfd: pytest.CaptureFixture[str]
) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    resource.prlimit(pid_of(log), resource.RLIMIT_FSIZE, (1, 1))
    await log.commit(unit("thr-1", sent("msg-2")))
    await written(log)
    assert in_the_file(log, "thr-1")["sent"] == 2
    assert not projector_of(log).is_ready
    assert capfd.readouterr().err == ""


async def test_what_the_log_wrote_itself_meanwhile_is_not_folded_into_its_rows_again(tmp_path: Path) -> None:
    """It has begun and read how far the rows are, and is not ready yet: until then the log writes them itself."""
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    projection = another(log)
    await log.commit(unit("thr-1", sent("msg-2")))
    await written(log)
    for _ in projection.steps(log.head):
        pass
    assert in_the_file(log, "thr-1")["sent"] == 2
    await log.commit(unit("thr-1", sent("msg-3")))
    for _ in projection.steps(log.head):
        pass
    assert in_the_file(log, "thr-1")["sent"] == 3
    await log.close()


@pytest.mark.parametrize("is_in_flight", [False, True])
async def test_the_log_writes_its_rows_itself_when_the_other_process_dies(log: SqliteLog, is_in_flight: bool) -> None:  # noqa: FBT001 - a parameter
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    await log.commit(unit("thr-1", sent("msg-2")))
    if is_in_flight:
        os.kill(pid_of(log), signal.SIGSTOP)
        flush(log)
        await log.commit(unit("thr-1", sent("msg-3")))
    os.kill(pid_of(log), signal.SIGKILL)
    await written(log)
    await log.commit(unit("thr-1", sent("msg-4")))
    await written(log)
    row = await log.private_row("threads", "thr-1")
    assert row is not None
    assert row["sent"] == 3 + is_in_flight
    assert log._rows.heads.indexed == log.head  # noqa: SLF001 - how far the file is


async def test_one_that_has_just_ended_is_not_begun_again_at_once(log: SqliteLog) -> None:
    os.kill(pid_of(log), signal.SIGKILL)
    while projector_of(log).is_ready:
        await turn()
    projector_of(log).hire()
    assert projector_of(log)._working is None  # noqa: SLF001 - the log shows it to nobody


async def test_rows_of_a_life_that_is_over_are_not_taken(tmp_path: Path) -> None:
    """A process that outlives its log for a moment cannot write into the file of the next one."""
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await written(log)
    late = another(log)
    await log.commit(unit("thr-1", sent("msg-2")))
    await log.close()
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", sent("msg-3")))
    with pytest.raises(Pysqlite.errors[0]) as refused:
        list(late.steps(log.head))
    assert Pysqlite().failure(refused.value) is Failure.FENCED
    row = await log.private_row("threads", "thr-1")
    assert row is not None
    assert row["sent"] == 3
    await log.close()


async def test_it_is_gone_before_the_disk_is_looked_at_anew(tmp_path: Path) -> None:
    plan = Plan(fail_commits={2: "SQLITE_IOERR"})
    async with projected(tmp_path / "log", FaultyDriver(plan)) as log:
        await log.commit(unit("thr-1", created(), sent("msg-1")))
        with pytest.raises(CommitUnknown):
            await log.commit(unit("thr-1", sent("msg-2")))
        assert log._recovering is not None  # noqa: SLF001 - it is told to nobody
        while not log.available:
            await turn()
        assert projector_of(log)._process is None  # noqa: SLF001 - as above
        await found_out(log)
        await ready(log)
        await log.commit(unit("thr-1", sent("msg-3")))
        await written(log)
        row = await log.private_row("threads", "thr-1")
        assert row is not None
        assert row["sent"] == 2


async def test_it_ends_with_its_log_and_leaves_one_file_of_each(tmp_path: Path) -> None:
    async with projected(tmp_path / "log") as log:
        pid = pid_of(log)
        await log.commit(unit("thr-1", created()))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not [path.name for path in (tmp_path / "log").iterdir() if path.name.endswith(("-wal", "-shm"))]


async def test_it_gets_no_key_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORGANISM_TOKEN", "not-for-others")
    async with projected(tmp_path / "log") as log:
        environment = Path(f"/proc/{pid_of(log)}/environ")
        assert b"not-for-others" not in await asyncio.to_thread(environment.read_bytes)
