"""Which SQLite the log stands on: the driver's own, not Python's."""

from __future__ import annotations

from typing import Final

from pysqlite3 import dbapi2

SQLITE_VERSION: Final[str] = dbapi2.sqlite_version
