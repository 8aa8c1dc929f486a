"""The WAL of a log that is written stays small while others read it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from organism.log.directory import LogDirectory
from organism.log.offline import copy_log, verify_directory
from organism.log.sqlite import SqliteLog
from organism.sqlite.driver import Connection, Parameters, Pysqlite
from tests.log.engines import AGENTS, MESSAGES, THREADS, created, open_durable, sent, unit

MOST_BYTES = 32 << 20
TEXT = "x" * 200_000


async def write(log: SqliteLog, number_of_bytes: int) -> None:
    """Commit messages of this size in all, one after the other."""
    for _ in range(number_of_bytes // (2 * len(TEXT))):  # each text is there as JSON and as XML
        await log.commit(unit(f"thr-{log.head}", created(), sent(f"msg-{log.head}", TEXT)))


def size(place: Path) -> int:
    return (place / "log.sqlite-wal").stat().st_size


class Gate:
    """Where a thread waits until it may go on."""

    def __init__(self) -> None:
        self.came, self.opened = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()

    def wait(self) -> None:
        self._loop.call_soon_threadsafe(self.came.set)
        self.opened.wait()


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    """A gate that is open at the end, so that no thread is left behind."""
    made = Gate()
    yield made
    made.opened.set()


async def test_verify_does_not_keep_the_wal_of_a_server_from_being_reset(tmp_path: Path, gate: Gate) -> None:
    log = await open_durable(tmp_path)
    await write(log, 1 << 20)

    def fold(rows: dict[str, Any], records: Any) -> None:
        gate.wait()
        MESSAGES.fold(rows, records)

    models = (replace(MESSAGES, fold=fold), THREADS, AGENTS)
    verifying = asyncio.ensure_future(asyncio.to_thread(verify_directory, tmp_path, models=models))
    await gate.came.wait()
    await write(log, MOST_BYTES + (8 << 20))
    assert size(tmp_path) <= MOST_BYTES
    gate.opened.set()
    found = await verifying
    assert (found.damage, found.position < log.head) == ((), True)
    await log.close()


class GatedConnection:
    """A connection that waits at the gate before it copies contents."""

    def __init__(self, connection: Connection, gate: Gate) -> None:
        self._connection, self._gate = connection, gate
        self.close, self.set_progress_handler = connection.close, connection.set_progress_handler

    def execute(self, sql: str, parameters: Parameters = (), /) -> Any:
        if sql.startswith("INSERT INTO main.content"):
            self._gate.wait()
        return self._connection.execute(sql, parameters)


class GatedDriver(Pysqlite):
    """The shipped driver, with such connections."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        return GatedConnection(super().connect(path, read_only=read_only), self._gate)


async def test_a_backup_does_not_keep_the_wal_of_a_server_from_being_reset(tmp_path: Path, gate: Gate) -> None:
    place, copy = tmp_path / "log", tmp_path / "copy"
    copy.mkdir()
    log = await open_durable(place)
    await write(log, 1 << 20)
    copied = log.head
    files = LogDirectory(place, driver=GatedDriver(gate))
    copying = asyncio.ensure_future(
        asyncio.to_thread(asyncio.run, copy_log(files, LogDirectory(copy), "library.sqlite", ()))
    )
    await gate.came.wait()
    await write(log, MOST_BYTES + (8 << 20))
    assert size(place) <= MOST_BYTES
    await log.erase("thr-1", 0)  # by an event that comes after what is copied
    gate.opened.set()
    await copying
    found = verify_directory(copy)
    assert (found.damage, found.position >= copied) == ((), True)
    await log.close()


async def test_a_wal_that_a_reader_let_grow_is_emptied_when_it_has_ended(tmp_path: Path) -> None:
    log = await open_durable(tmp_path)
    await write(log, 1 << 20)
    with closing(Pysqlite().connect(str(tmp_path / "log.sqlite"))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM units").fetchall()
        while size(tmp_path) < 16 << 20:
            await write(log, 1 << 20)
    await write(log, 2 << 20)
    assert size(tmp_path) < 16 << 20
    await log.close()
