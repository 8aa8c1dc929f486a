"""APSW in the place of the shipped driver: one exclusive connection, over whatever file system a test puts below it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw

from organism.log.driver import Connection, Failure, Parameters, failure_of


class ApswConnection:
    """APSW's connection in the shape of the seam."""

    def __init__(self, path: str, vfs: str | None) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        self._connection = apsw.Connection(f"file:{path}?mode=rw", flags=flags, vfs=vfs)
        self._connection.set_busy_timeout(2000)

    def execute(self, sql: str, parameters: Parameters = (), /) -> Any:
        return self._connection.execute(sql, tuple(parameters))

    def interrupt(self) -> None:
        self._connection.interrupt()

    def set_progress_handler(self, handler: Callable[[], bool] | None, steps: int, /) -> None:
        self._connection.set_progress_handler(handler, steps)

    def close(self) -> None:
        with suppress(apsw.Error):  # of a file system of the tests' own
            self._connection.close(force=True)


class ApswDriver:
    """A driver that is exclusive: WAL without shared memory."""

    errors: tuple[type[Exception], ...] = (apsw.Error,)
    exclusive = True

    def __init__(self, vfs: str | None = None) -> None:
        self._vfs = vfs

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        return ApswConnection(path, self._vfs)

    def failure(self, error: Exception) -> Failure:
        code = getattr(error, "result", None)
        name = apsw.mapping_result_codes.get(code, "") if isinstance(code, int) else ""
        return failure_of(str(name), str(error))
