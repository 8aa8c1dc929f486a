"""Who writes the rows when something gives way: nobody waits for ever, and nobody holds up the loop."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop
from pysqlite3 import dbapi2

from organism.log import folds, row_writers, views
from organism.log.folds import AT_ONCE, Folds
from tests.log.engines import created, open_durable, sent, turn, unit
from tests.log.projecting import another, flush, in_the_file, pid_of, projected, projector_of, written

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process is asked for a single unit's rows."""
    monkeypatch.setattr(row_writers, "FEW_UNITS", 1)


async def _ask_the_unreachable(place: Path) -> None:
    async with projected(place) as log:
        process = projector_of(log)._process  # noqa: SLF001 - the log shows it to nobody
        assert process is not None
        assert process.stdin is not None
        os.kill(process.pid, signal.SIGSTOP)  # else it may be gone before it is asked
        process.stdin.close()
        await turn()
        await log.commit(unit("thr-1", created(), sent("msg-1")))
        assert projector_of(log).is_ready, "that it goes is not known yet"
        flush(log)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
        await written(log)
        assert in_the_file(log, "thr-1")["sent"] == 1


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_one_that_cannot_be_asked_any_more_is_done_without(tmp_path: Path, run: Run) -> None:
    run(_ask_the_unreachable(tmp_path / "log"))


def _fail(_folds: Folds, _owed: Any) -> None:
    raise KeyError("a fold of ours has a fault")


async def test_a_fold_that_fails_keeps_no_log_from_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await open_durable(tmp_path / "log")
    monkeypatch.setattr(Folds, "_fold", _fail)
    await log.commit(unit("thr-1", created()))
    with pytest.raises(KeyError):
        flush(log)
    await written(log)
    await log.close()


async def test_nor_does_one_that_fails_when_the_other_process_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with projected(tmp_path / "log") as log:
        os.kill(pid_of(log), signal.SIGSTOP)
        await log.commit(unit("thr-1", created()))
        flush(log)
        monkeypatch.setattr(Folds, "_fold", _fail)
        working = projector_of(log)._working  # noqa: SLF001 - the log shows it to nobody
        assert working is not None
        os.kill(pid_of(log), signal.SIGKILL)
        with pytest.raises(KeyError):
            await working
        await written(log)


async def test_a_read_of_much_that_is_owed_lets_the_loop_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    portions: list[int] = []
    fold = Folds._fold  # noqa: SLF001 - it is what holds up the loop

    def counted(whose: Folds, owed: Any) -> None:
        portions.append(len(owed))
        fold(whose, owed)

    async with projected(tmp_path / "log") as log:
        await log.commit(unit("thr-0", created()))
        await written(log)
        os.kill(pid_of(log), signal.SIGSTOP)
        for number in range(9 * AT_ONCE):
            log.append(unit("thr-1", sent(f"msg-{number}")))
        await log.commit(unit("thr-1", created()))
        monkeypatch.setattr(Folds, "_fold", counted)
        turns = 0

        async def turning() -> None:
            nonlocal turns
            while True:
                turns += 1
                await turn()

        beside = asyncio.ensure_future(turning())
        row = await log.private_row("threads", "thr-1")
        beside.cancel()
        os.kill(pid_of(log), signal.SIGCONT)
        assert row is not None
        assert row["sent"] == 9 * AT_ONCE
        assert max(portions) <= AT_ONCE
        assert turns >= 3


async def test_units_are_packed_while_the_other_process_is_there_and_nobody_reads(tmp_path: Path) -> None:
    async with projected(tmp_path / "log") as log:
        found: list[tuple[bool, bool]] = []

        async def look(*, by: Callable[[], Coroutine[Any, Any, Any]]) -> None:
            await log.commit(unit("thr-1", created()))
            await by()
            folds = log._rows.folds  # noqa: SLF001 - the log shows it to nobody
            found.append((folds.is_helped, folds.is_asking))

        await look(by=partial(written, log))
        await look(by=partial(log.private_row, "threads", "thr-1"))
        await look(by=partial(written, log))
        await log._rows.writers.alone()  # noqa: SLF001 - as above
        await look(by=partial(written, log))
        assert found == [(True, False), (True, True), (True, False), (False, True)]


async def test_what_waits_for_another_process_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "MOST_UNREAD", 2 * AT_ONCE)
    async with projected(tmp_path / "log") as log:
        await log.commit(unit("thr-0", created()))
        await written(log)
        os.kill(pid_of(log), signal.SIGSTOP)
        for number in range(40):
            for each in range(100):
                log.append(unit("thr-1", sent(f"msg-{number}-{each}")))
            await log.commit(unit("thr-1", created()))
            await turn()
        waiting = log._rows.folds.owed.count()  # noqa: SLF001 - what is in memory
        os.kill(pid_of(log), signal.SIGCONT)
        await written(log)
        assert waiting <= 2 * AT_ONCE + 101
        assert in_the_file(log, "thr-1")["sent"] == 4000


async def test_ctrl_c_is_the_logs_own_matter(tmp_path: Path) -> None:
    async with projected(tmp_path / "log") as log:
        os.kill(pid_of(log), signal.SIGINT)
        await log.commit(unit("thr-1", created(), sent("msg-1")))
        await written(log)
        assert projector_of(log).is_ready
        assert in_the_file(log, "thr-1")["sent"] == 1


@pytest.mark.parametrize("is_another", [False, True])
async def test_whoever_writes_rows_moves_them_out_of_the_wal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_another: bool,  # noqa: FBT001 - a parameter
) -> None:
    monkeypatch.setattr(views, "FULL_WAL_BYTES", 0)
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    if is_another:
        projection = another(log)
        for _ in projection.steps(log.head):
            pass
        projection.tidy()
    else:
        await written(log)
    copy = tmp_path / "without-its-wal.sqlite"
    await asyncio.to_thread(shutil.copyfile, tmp_path / "log" / "views.sqlite", copy)
    with closing(dbapi2.connect(str(copy))) as connection:
        assert connection.execute("SELECT position FROM views_meta").fetchone() == (log.head,)
    await log.close()
