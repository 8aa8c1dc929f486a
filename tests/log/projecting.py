"""What the tests share of processes beside the log's: a log with one, and looks at what only the log knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from organism.log.committer import Committer
from organism.log.connect import Connector
from organism.log.driver import Pysqlite
from organism.log.hired import Hired
from organism.log.opening import Options
from organism.log.place import Place
from organism.log.projection import Projection
from organism.log.projector import Projector
from organism.log.sqlite import SqliteLog
from organism.log.views import load_row
from tests.log.engines import MODELS, FixedClock, turn

MODELS_AT = "tests.log.engines:MODELS"


def projector_of(log: SqliteLog) -> Projector:
    found = log._rows.writers._projector  # noqa: SLF001 - the log shows it to nobody
    assert found is not None
    return found


def committer_of(log: SqliteLog) -> Committer:
    found = log._disk.committers._committer  # noqa: SLF001 - as above
    assert found is not None
    return found


def pid_of(log: SqliteLog) -> int:
    """That of the process that writes rows."""
    return _pid(projector_of(log))


def committing_pid(log: SqliteLog) -> int:
    """That of the process that commits."""
    return _pid(committer_of(log))


async def ready(log: SqliteLog) -> None:
    """Wait for the process that writes rows, begun if there is none."""
    await _ready(projector_of(log))


async def committing(log: SqliteLog) -> None:
    """Wait for the process that commits, begun if there is none."""
    await _ready(committer_of(log))


def _pid(hired: Hired) -> int:
    process = hired._process  # noqa: SLF001 - as above
    assert process is not None
    return process.pid


async def _ready(hired: Hired) -> None:
    hired._rests_until = 0.0  # noqa: SLF001 - no test waits by the clock
    hired.hire()
    while not hired.is_ready:
        await turn()


async def written(log: SqliteLog) -> None:
    """Wait until the file has every row."""
    await log._rows.flushed()  # noqa: SLF001 - else the clock says when


def flush(log: SqliteLog) -> None:
    log._rows.flush()  # noqa: SLF001 - as above


async def opened(place: Path, driver: Pysqlite | None = None) -> SqliteLog:
    options = Options(driver=driver or Pysqlite(), models_at=MODELS_AT)
    return await SqliteLog.open(place, MODELS, FixedClock(), options)


@asynccontextmanager
async def projected(place: Path, driver: Pysqlite | None = None) -> AsyncIterator[SqliteLog]:
    """A log whose rows another process writes."""
    log = await opened(place, driver)
    await ready(log)
    try:
        yield log
    finally:
        await log.close()


def place_of(log: SqliteLog) -> Connector:
    """Another process's way to the files."""
    return Connector(Pysqlite(), Place(log._parts.crew._connector.place.directory))  # noqa: SLF001 - where it lies


def another(log: SqliteLog) -> Projection:
    """What the process does, done here."""
    return Projection(place_of(log), MODELS, log._parts.truth.epoch)  # noqa: SLF001 - it is given the epoch too


def in_the_file(log: SqliteLog, thread: str) -> Any:
    """A thread's row as it is written."""
    with closing(place_of(log).to_read()) as connection:
        return load_row(connection, "threads", thread)
