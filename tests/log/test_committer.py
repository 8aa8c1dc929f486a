"""Commits by another process: nothing is promised otherwise, whatever becomes of that process."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2

from organism.errors import CommitUnknown, Fenced
from organism.log import committer as committer_file
from organism.log import committers, disk
from organism.log.commits import Commits
from organism.log.committing import MOST_BYTES
from organism.log.driver import Failure, Pysqlite
from organism.log.log import EventFilter
from organism.log.opening import Claimant, Options
from organism.log.place import Anchor
from organism.log.sqlite import SqliteLog
from tests.log.apsw_driver import ApswDriver
from tests.log.engines import MODELS, FixedClock, as_tuples, created, found_out, open_durable, sent, turn, unit
from tests.log.faulty import FaultyDriver, Plan
from tests.log.projecting import MODELS_AT, committer_of, committing, committing_pid, opened, place_of


@pytest.fixture
def by_the_thread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the commits that this process writes itself."""
    sizes: list[int] = []
    write = Commits.write

    def noted(commits: Any, commit: Any) -> None:
        sizes.append(commit.size)
        write(commits, commit)

    monkeypatch.setattr(Commits, "write", noted)
    return sizes


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """A log that has a process to commit."""
    made = await opened(tmp_path / "log")
    await committing(made)
    yield made
    await made.close()


def on_the_disk(log: SqliteLog) -> int:
    """The first position of the last unit, as another process finds it."""
    with closing(dbapi2.connect(str(log._parts.crew._connector.place.log))) as connection:  # noqa: SLF001 - where it lies
        return int(connection.execute("SELECT max(first) FROM units").fetchone()[0] or 0)


async def test_many_commits_between_two_looks_have_a_process_begun_and_few_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "USED_WAL_BYTES", 0)
    monkeypatch.setattr(committers, "MANY_COMMITS", 8)
    log = await opened(tmp_path / "log")
    look = log._disk._pause  # noqa: SLF001 - the clock says when
    for number in range(7):
        await log.commit(unit(f"thr-{number}", created()))
    look()
    few = committer_of(log)._working  # noqa: SLF001 - the log shows it to nobody
    for number in range(8):
        await log.commit(unit(f"thr-{number}", sent(f"msg-{number}")))
    look()
    assert few is None
    while not committer_of(log).is_ready:
        await turn()
    await log.close()


async def test_none_is_begun_while_the_wal_is_made_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros that were written over what another process has just committed would lose it."""
    monkeypatch.setattr(committers, "MANY_COMMITS", 1)
    log = await opened(tmp_path / "log")
    await log.commit(unit("thr-1", created()))
    log._disk._pause()  # noqa: SLF001 - the clock says when
    assert committer_of(log)._working is None  # noqa: SLF001 - as above
    await log.close()


@pytest.mark.parametrize(
    "options", [Options(), Options(driver=ApswDriver(), models_at=MODELS_AT)], ids=["models", "driver"]
)
async def test_a_log_that_may_begin_no_process_commits_itself(tmp_path: Path, options: Options) -> None:
    log = await SqliteLog.open(tmp_path / "log", MODELS, FixedClock(), options)
    log._disk.committers.look()  # noqa: SLF001 - the clock says when
    assert log._disk.committers._committer is None  # noqa: SLF001 - the log shows it to nobody
    await log.close()


async def test_what_it_commits_is_on_the_disk_when_it_is_known_and_chained_to_the_rest(
    log: SqliteLog, by_the_thread: list[int], tmp_path: Path
) -> None:
    for number in range(20):
        log.append(unit(f"thr-{number}", created()))
        last = await log.commit(unit(f"thr-{number}", sent(f"msg-{number}")))
        assert on_the_disk(log) == last
    assert by_the_thread == []
    assert (await log.verify()).damage == ()
    held = as_tuples(await log.read(wanted=EventFilter(content=True)))
    await log.close()
    again = await open_durable(tmp_path / "log")
    assert as_tuples(await again.read(wanted=EventFilter(content=True))) == held
    assert (await again.verify()).position == 40
    await again.close()


async def test_a_commit_that_would_fill_the_pipe_is_written_here(log: SqliteLog, by_the_thread: list[int]) -> None:
    await log.commit(unit("thr-1", created()))
    await log.commit(unit("thr-1", sent("msg-large", "x" * MOST_BYTES)))
    await log.commit(unit("thr-1", sent("msg-small")))
    assert len(by_the_thread) == 1
    assert by_the_thread[0] > MOST_BYTES
    assert (await log.verify()).damage == ()
    assert log.head == 3


async def test_one_that_stands_still_holds_up_no_more_than_its_commit(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created()))
    os.kill(committing_pid(log), signal.SIGSTOP)
    waiting = asyncio.ensure_future(log.commit(unit("thr-1", sent("msg-1", "x" * (MOST_BYTES // 4)))))
    for _ in range(50):
        await turn()
    row = await log.private_row("threads", "thr-1")
    assert row is not None
    assert row["sent"] == 0
    assert not waiting.done()
    os.kill(committing_pid(log), signal.SIGCONT)
    assert await waiting == 2


@pytest.mark.parametrize("is_written", [False, True])
async def test_one_that_dies_leaves_the_question_to_the_disk(log: SqliteLog, is_written: bool) -> None:  # noqa: FBT001 - a parameter
    lost: list[int] = []
    log.on_lost = lost.append
    await log.commit(unit("thr-1", created()))
    if is_written:
        committer = committer_of(log)
        committer._loop.remove_reader(committer._answers)  # noqa: SLF001 - what it says is heard by nobody
        committed = asyncio.ensure_future(log.commit(unit("thr-1", sent("msg-1"))))
        while on_the_disk(log) < 2:
            await turn()
        os.kill(committing_pid(log), signal.SIGKILL)
        committer._ended.set_result(None)  # noqa: SLF001 - as the end of its output does
    else:
        os.kill(committing_pid(log), signal.SIGSTOP)
        committed = asyncio.ensure_future(log.commit(unit("thr-1", sent("msg-1"))))
        while not committer_of(log)._waiting:  # noqa: SLF001 - the log shows it to nobody
            await turn()
        os.kill(committing_pid(log), signal.SIGKILL)
    with pytest.raises(CommitUnknown, match="The process that commits is gone"):
        await committed
    await found_out(log)
    assert lost == [1 + is_written]
    assert log.head == 1 + is_written
    await log.commit(unit("thr-1", sent("msg-2")))
    assert (await log.verify()).damage == ()
    await committing(log)
    assert await log.commit(unit("thr-1", sent("msg-3"))) == 3 + is_written


async def test_one_that_dies_with_nothing_to_do_costs_nothing(log: SqliteLog, by_the_thread: list[int]) -> None:
    await log.commit(unit("thr-1", created()))
    os.kill(committing_pid(log), signal.SIGKILL)
    while committer_of(log).is_ready:
        await turn()
    assert await log.commit(unit("thr-1", sent("msg-1"))) == 2
    assert len(by_the_thread) == 1


async def test_a_disk_without_room_is_what_it_is_without_it(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created()))
    resource.prlimit(committing_pid(log), resource.RLIMIT_FSIZE, (1, 1))
    with pytest.raises(CommitUnknown, match=r"The disk said: (disk I/O error|database or disk is full)"):
        await log.commit(unit("thr-1", sent("msg-1")))
    await found_out(log)
    assert await log.commit(unit("thr-1", sent("msg-2"))) == 2
    assert (await log.verify()).damage == ()


async def test_one_whose_log_was_taken_over_writes_no_more(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created()))
    connector = place_of(log)
    with closing(connector.to_log()) as connection:
        head = log._disk.head  # noqa: SLF001 - the log shows it to nobody
        truth = Claimant(connector, log._disk.key, Anchor(head.position, head.hash)).claim(connection, 0)  # noqa: SLF001 - as above
    assert truth.position == 1
    with pytest.raises(Fenced):
        await log.commit(unit("thr-1", sent("msg-1")))
    assert on_the_disk(log) == 1


async def test_a_life_that_begins_sees_the_commit_that_the_last_one_left_under_way(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what is verified and the new epoch nobody writes: else the next commit would have its positions."""
    await log.commit(unit("thr-1", created()))
    connector = place_of(log)
    verified = Claimant._verified  # noqa: SLF001 - what comes before the epoch

    def and_one_more(claimant: Claimant, connection: Any, since: int) -> Any:
        state = verified(claimant, connection, since)
        with closing(Pysqlite().connect(str(connector.place.log))) as late:
            late.execute("PRAGMA busy_timeout = 1")
            with pytest.raises(dbapi2.OperationalError) as refused:
                late.execute("INSERT INTO units (first, digest, body) VALUES (2, x'', x'')")
        assert Pysqlite().failure(refused.value) is Failure.BUSY
        return state

    monkeypatch.setattr(Claimant, "_verified", and_one_more)
    with closing(connector.to_log()) as connection:
        head = log._disk.head  # noqa: SLF001 - the log shows it to nobody
        Claimant(connector, log._disk.key, Anchor(head.position, head.hash)).claim(connection, 0)  # noqa: SLF001 - as above
    with pytest.raises(Fenced):
        await log.commit(unit("thr-1", sent("msg-1")))


async def test_it_moves_the_wal_into_the_database(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    size = log._parts.crew._connector.place.log.stat().st_size  # noqa: SLF001 - where it lies
    monkeypatch.setattr(disk, "FULL_WAL_BYTES", 0)
    by_thread: list[Commits] = []
    monkeypatch.setattr(Commits, "checkpoint", by_thread.append)
    await log.commit(unit("thr-1", sent("msg-1", "x" * 100_000)))
    await log.commit(unit("thr-1", sent("msg-2")))
    assert by_thread == []
    assert log._parts.crew._connector.place.log.stat().st_size > size + 100_000  # noqa: SLF001 - as above


async def test_a_checkpoint_that_is_lost_with_a_commit_is_looked_into_once(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.commit(unit("thr-1", created()))
    regained: list[Exception] = []
    regain = disk.Disk.regain

    async def noted(whose: Any, error: Exception) -> Any:
        regained.append(error)
        return await regain(whose, error)

    monkeypatch.setattr(disk.Disk, "regain", noted)
    os.kill(committing_pid(log), signal.SIGSTOP)
    log._disk._checkpoint()  # noqa: SLF001 - the clock says when
    committed = asyncio.ensure_future(log.commit(unit("thr-1", sent("msg-1"))))
    while len(committer_of(log)._waiting) < 2:  # noqa: SLF001 - the log shows it to nobody
        await turn()
    os.kill(committing_pid(log), signal.SIGKILL)
    with pytest.raises(CommitUnknown):
        await committed
    await found_out(log)
    assert len(regained) == 1
    assert await log.commit(unit("thr-1", sent("msg-2"))) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_all_processes_is_the_logs_own_matter(log: SqliteLog, number: signal.Signals) -> None:
    os.kill(committing_pid(log), number)
    assert await log.commit(unit("thr-1", created())) == 1
    assert committer_of(log).is_ready


async def test_it_leaves_when_it_was_not_needed_for_a_while(log: SqliteLog, by_the_thread: list[int]) -> None:
    committer = committer_of(log)
    pid = committing_pid(log)
    committer._stay()  # noqa: SLF001 - the clock says when
    assert committer.is_ready
    committer._needed_at -= committer_file.LEAVE_SECONDS  # noqa: SLF001 - no test waits by the clock
    committed = asyncio.ensure_future(log.commit(unit("thr-1", created())))
    while not committer._waiting:  # noqa: SLF001 - as above
        await turn()
    committer._stay()  # noqa: SLF001 - as above
    is_leaving = not committer.is_ready
    assert await committed == 1, "what it is at it ends"
    assert is_leaving
    while committer._process is not None:  # noqa: SLF001 - the log shows it to nobody
        await turn()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert by_the_thread == []
    assert await log.commit(unit("thr-1", sent("msg-1"))) == 2
    assert len(by_the_thread) == 1


async def test_one_that_is_let_go_while_it_begins_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await opened(tmp_path / "log")
    committer = committer_of(log)
    seen: list[bool] = []
    begun = committer._begun  # noqa: SLF001 - when it says that it is ready

    def noted(result: Any, error: Exception | None) -> None:
        begun(result, error)
        seen.append(committer.is_ready)

    monkeypatch.setattr(committer, "_begun", noted)
    committer.hire()
    await log._disk.committers.alone()  # noqa: SLF001 - the log does so at its end
    assert seen == [False]
    await log.close()


async def test_none_is_begun_until_the_disk_was_looked_at_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committers, "MANY_COMMITS", 0)
    log = await opened(tmp_path / "log")
    whose = log._disk.committers  # noqa: SLF001 - the log shows it to nobody
    await whose.alone()
    whose.look()
    alone = committer_of(log)._working  # noqa: SLF001 - as above
    whose.together()
    whose.look()
    assert alone is None
    assert committer_of(log)._working is not None  # noqa: SLF001 - as above
    await log.close()


async def test_it_is_gone_before_the_disk_is_looked_at_anew(tmp_path: Path) -> None:
    log = await opened(tmp_path / "log", FaultyDriver(Plan(fail_commits={1: "SQLITE_IOERR"})))
    await committing(log)
    await log.commit(unit("thr-1", created()))
    with pytest.raises(CommitUnknown):  # it is too large for the process
        await log.commit(unit("thr-1", sent("msg-1", "x" * MOST_BYTES)))
    while not log.available:
        await turn()
    assert committer_of(log)._process is None  # noqa: SLF001 - the log shows it to nobody
    await found_out(log)
    await log.close()


async def test_it_ends_with_its_log_and_leaves_one_file(tmp_path: Path) -> None:
    log = await opened(tmp_path / "log")
    await committing(log)
    pid = committing_pid(log)
    await log.commit(unit("thr-1", created()))
    await log.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not [path.name for path in (tmp_path / "log").iterdir() if path.name.endswith(("-wal", "-shm"))]


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_one_that_cannot_be_begun_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_the_thread: list[int]
) -> None:
    log = await opened(tmp_path / "log")
    committer = committer_of(log)
    monkeypatch.setattr(committer, "_command", ("/nowhere/python",))
    handles = open_handles()
    committer.hire()
    while committer._working is not None:  # noqa: SLF001 - the log shows it to nobody
        await turn()
    assert await log.commit(unit("thr-1", created())) == 1
    assert len(by_the_thread) == 1
    assert open_handles() == handles
    await log.close()
