"""L6 and V3, and what lies in a log's directory."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import stat
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.errors import LogDamaged, LogHeld, OrganismError, StalePosition
from organism.events.entity import Entity
from organism.log.directory import LogDirectory
from organism.log.log import EventFilter
from organism.log.sqlite import Options, SqliteLog
from organism.sqlite.driver import Pysqlite
from organism.views.views import Query, ReadModel, fold_each
from tests.log.engines import (
    AGENT_KEYS,
    MESSAGES,
    MODELS,
    START_US,
    THREADS,
    FixedClock,
    created,
    handled,
    killed,
    open_durable,
    sent,
    unit,
    views,
)


async def fill(place: Path, models: tuple[ReadModel, ...] = MODELS) -> list[bytes]:
    """A few rows of every kind; gives the pages as they were."""
    log = await open_durable(place, models=models)
    for number in range(20):
        thread = f"thr-{number % 7}"
        log.append(unit(thread, created(), sent(f"msg-{number:02}", to=f"agent-{number % 3}")))
        await log.commit(unit(thread, handled(f"msg-{number:02}", f"agent-{number % 3}")))
    await log.commit(unit("thr-1", killed()))
    found = await pages(log)
    await log.close()
    return found


async def pages(log: SqliteLog) -> list[bytes]:
    """All rows of all models."""
    return [(await views(log).rows(model.name, Query(limit=1000))).rows for model in MODELS]


# L6


async def test_l6_a_second_opener_is_told_who_holds_the_log(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    with pytest.raises(LogHeld, match=rf"process {os.getpid()} since \d+-\d\d-\d\d \d\d:\d\d:\d\d UTC"):
        await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created()))
    await log.close()
    again = await open_durable(tmp_path / "log")
    assert again.head == 1
    await again.close()


async def test_l6_a_place_that_could_not_be_opened_is_let_go(tmp_path: Path) -> None:
    await fill(tmp_path / "log")
    (tmp_path / "log" / "key").rename(tmp_path / "key")
    with pytest.raises(LogDamaged):
        await open_durable(tmp_path / "log")
    (tmp_path / "key").rename(tmp_path / "log" / "key")
    await (await open_durable(tmp_path / "log")).close()


async def test_a_log_of_a_newer_layout_is_refused_and_left_alone(tmp_path: Path) -> None:
    await fill(tmp_path / "log")
    database = Pysqlite().connect(str(tmp_path / "log" / "log.sqlite"))
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LogDamaged, match="layout 99"):
        await open_durable(tmp_path / "log")


# V3


def stored_rows(place: Path) -> list[tuple[Any, ...]]:
    """Every version of every row, and the index of streams, as the file holds them."""
    with closing(Pysqlite().connect(str(place / "log.sqlite"))) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        tables = [name for name in sorted(names) if name.startswith(("rows_", "kept_", "streams"))]
        return [(name, *row) for name in tables for row in database.execute(f"SELECT * FROM {name} ORDER BY 1, 2")]  # noqa: S608 - names of our own tables


async def test_v3_every_version_of_a_row_is_byte_equal_when_it_is_made_again(tmp_path: Path) -> None:
    pages_before = await fill(tmp_path / "log")
    before = stored_rows(tmp_path / "log")
    with closing(Pysqlite().connect(str(tmp_path / "log" / "log.sqlite"))) as database:
        database.execute("DELETE FROM models")
        database.execute("UPDATE rows_threads SET public = x'7b7d'")
        database.execute("DELETE FROM streams")
    log = await open_durable(tmp_path / "log")
    assert await pages(log) == pages_before
    await log.close()
    assert stored_rows(tmp_path / "log") == before
    assert len(before) > 40


class Seen(Entity):
    """An agent, in another form than before."""

    name: str
    last: int


async def test_v3_rows_are_made_again_when_a_model_is_another_one(tmp_path: Path) -> None:
    place = tmp_path / "log"
    await fill(place)
    last = fold_each(AGENT_KEYS, lambda key, row, record: Seen(key, record.position))
    newer = ReadModel("agents", 2, AGENT_KEYS, last, Seen)
    log = await open_durable(place, models=(MESSAGES, THREADS, newer))
    assert await views(log).row("agents", "agent-1") == b'{"name":"agent-1","last":60}'
    await log.close()
    log = await open_durable(place, models=(MESSAGES,))
    assert (await views(log).rows("messages", Query())).total == 20
    await log.close()


async def test_snapshots_stay_when_a_model_is_another_one(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    await log.save_snapshot("pump", await log.commit(unit("thr-1", created())), b"kept")
    await log.close()
    log = await open_durable(tmp_path / "log", models=(MESSAGES,))
    assert await log.load_snapshot("pump") == (1, b"kept")
    await log.close()


# The directory


async def test_a_new_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        log = await open_durable(tmp_path / "a" / "log")
        await log.commit(unit("thr-1", created()))
        await views(log).rows("threads", Query())
        place = tmp_path / "a" / "log"
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()}
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert {"log.sqlite", "log.sqlite-wal", "log.sqlite-shm", "anchor", "key", "lock"} <= set(modes)
        assert set(modes.values()) == {0o600}
        await log.close()
    finally:
        os.umask(mask)


async def test_the_key_may_lie_elsewhere(tmp_path: Path) -> None:
    options = Options(key_path=tmp_path / "keys" / "log.key")
    (tmp_path / "keys").mkdir()
    log = await SqliteLog.open(tmp_path / "log", FixedClock(), MODELS, options)
    await log.commit(unit("thr-1", created()))
    await log.close()
    assert not (tmp_path / "log" / "key").exists()
    assert (tmp_path / "keys" / "log.key").exists()
    with pytest.raises(LogDamaged, match="must hold the key"):
        await open_durable(tmp_path / "log")
    again = await SqliteLog.open(tmp_path / "log", FixedClock(), MODELS, options)
    assert again.head == 1
    await again.close()


async def test_a_new_log_does_not_overwrite_the_key_of_another(tmp_path: Path) -> None:
    options = Options(key_path=tmp_path / "log.key")
    log = await SqliteLog.open(tmp_path / "log", FixedClock(), MODELS, options)
    await log.close()
    key = options.key_path.read_bytes() if options.key_path else b""
    for place in (tmp_path / "new", tmp_path / "new", tmp_path / "log"):
        if place.name == "log":
            for name in ("log.sqlite", "anchor"):
                (place / name).unlink()
        with pytest.raises(LogDamaged, match="is new: it may be the key of another log"):
            await SqliteLog.open(place, FixedClock(), MODELS, options)
    assert (tmp_path / "log.key").read_bytes() == key


async def test_a_log_that_was_begun_and_not_made_is_gone_on_with_under_its_key(tmp_path: Path) -> None:
    place = LogDirectory(tmp_path / "log")
    place.path.mkdir()
    begun = place.create_key(os.urandom)
    key = place.key_path.read_bytes()
    log = await open_durable(place.path)
    assert (log.head, log.timeline, place.key_path.read_bytes()) == (0, begun.timeline, key)
    await log.close()


async def test_a_log_that_was_made_and_is_gone_is_not_begun_again_though_it_held_no_event(tmp_path: Path) -> None:
    await (await open_durable(tmp_path / "log")).close()
    (tmp_path / "log" / "log.sqlite").unlink()
    with pytest.raises(LogDamaged, match="missing or empty, and its anchor knows it"):
        await open_durable(tmp_path / "log")
    assert not (tmp_path / "log" / "log.sqlite").exists()


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("call", ["write", "pwrite", "fsync"])
async def test_a_death_at_any_write_of_a_new_log_leaves_one_that_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    calls = iter(range(1, 100))
    real = getattr(os, call)

    def dying(*arguments: Any) -> Any:
        if next(calls) == nth:
            raise OSError(errno.EIO, "the power is gone")
        return real(*arguments)

    with monkeypatch.context() as patched, suppress(OSError, OrganismError):
        patched.setattr(os, call, dying)
        await (await open_durable(tmp_path / "log")).close()
    again = await open_durable(tmp_path / "log")
    await again.commit(unit("thr-1", created()))
    await again.close()


async def test_l3_a_stream_and_its_row_go_on_after_a_stop(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    await log.close()
    log = await open_durable(tmp_path / "log")
    with pytest.raises(StalePosition):
        log.append(unit("thr-1", sent("msg-2"), expect={"thr-1": 0}))
    await log.commit(unit("thr-1", sent("msg-2"), expect={"thr-1": 2}))
    assert orjson.loads(await views(log).row("threads", "thr-1") or b"") == {
        "id": "thr-1",
        "first": 1,
        "sent": 2,
        "last": 3,
    }
    await log.close()


async def test_a_log_keeps_its_timeline_and_its_last_time(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    timeline = log.timeline
    await log.commit(unit("thr-1", created(), at=4711))
    await log.close()
    log = await open_durable(tmp_path / "log")
    assert (log.timeline, log.last_at, log.head) == (timeline, 4711, 1)
    await log.close()
    other = await open_durable(tmp_path / "other")
    assert other.timeline != timeline
    await other.close()


async def test_a_second_process_is_refused_within_a_second(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    program = (
        "import asyncio, sys, time\nfrom pathlib import Path\nfrom tests.log.engines import open_durable\n"
        "begun = time.monotonic()\n"
        "try:\n    asyncio.run(open_durable(Path(sys.argv[1])))\n"
        "except Exception as error:\n    print(type(error).__name__, time.monotonic() - begun < 1, error)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path / "log"), stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": "."}
    )
    output, _ = await process.communicate()
    assert output.decode().startswith(f"LogHeld True {tmp_path / 'log'} is held by process {os.getpid()}")
    await log.commit(unit("thr-1", created()))
    await log.close()


async def test_l6_a_second_try_and_a_look_in_the_same_process_let_nobody_else_in(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    with pytest.raises(LogHeld):
        await open_durable(tmp_path / "log")
    assert LogDirectory(tmp_path / "log").holder()
    assert (await in_a_child(tmp_path / "log", "print(LogDirectory(path).holder())")).startswith(
        f"process {os.getpid()}"
    )
    await log.close()
    assert await in_a_child(tmp_path / "log", "print(LogDirectory(path).holder())") == "None"


async def test_l6_a_fork_that_python_does_not_know_of_holds_nothing(tmp_path: Path) -> None:
    """As a library in C makes it: its parent has ended, and it goes on until it is killed here."""
    program = (
        "import ctypes, os\nLogDirectory(path).lock(lambda: 0)\nc = ctypes.PyDLL(None)\nchild = c.fork()\n"
        "if child:\n    print(child)\n    os.kill(os.getpid(), 9)\n"
        "[os.close(handle) for handle in (0, 1, 2)]\nc.pause()\n"
    )
    (tmp_path / "log").mkdir()
    child = os.pidfd_open(int(await in_a_child(tmp_path / "log", program)))
    try:
        await (await open_durable(tmp_path / "log")).close()
    finally:
        signal.pidfd_send_signal(child, signal.SIGKILL)
        os.close(child)


async def in_a_child(place: Path, program: str) -> str:
    """What a program prints that may use ``LogDirectory`` and ``path``, in another process."""
    head = "import pathlib, sys\nfrom organism.log.directory import LogDirectory\npath = pathlib.Path(sys.argv[1])\n"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-c", head + program, str(place)),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": "."},
    )
    output, _ = await process.communicate()
    return output.decode().strip()


async def test_l10_a_fork_is_one_after_a_stop(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1"), handled("msg-1")))
    await log.copy("thr-1", 2, "thr-2", START_US)
    await log.close()
    log = await open_durable(tmp_path / "log")
    assert [record.position for record in await log.read(wanted=EventFilter(("thr-2",)))] == [1, 2, 4]
    await log.close()
