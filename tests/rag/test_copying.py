"""The library's file and its log are copied as of one moment, whatever happens between the two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from organism.log.directory import LogDirectory
from organism.log.offline import copy_log
from organism.rag.library import By
from organism.rag.store import LIBRARY_FILE
from organism.sqlite.driver import Connection, Cursor, Parameters, Pysqlite
from organism.views.library import INDICES
from tests.rag.libraries import content, organism, texts


class Interrupted(Pysqlite):
    """Calls ``between`` once, when the library's snapshot is about to be taken, or just after."""

    def __init__(self, between: Callable[[], object], *, is_after: bool) -> None:
        self.between: Callable[[], object] | None = between
        self.is_after = is_after

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        connection = super().connect(path, read_only=read_only)
        return Watched(connection, self) if path.endswith(f"/data/tenants/default/{LIBRARY_FILE}") else connection


class Watched:
    """Its connection to the library."""

    def __init__(self, connection: Connection, driver: Interrupted) -> None:
        self._connection = connection
        self._driver = driver
        self._has_begun = False

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor:
        rows = self._connection.execute(sql, parameters)
        is_due = self._has_begun if self._driver.is_after else sql == "BEGIN"
        self._has_begun |= sql == "BEGIN"
        if is_due and self._driver.between is not None:
            between, self._driver.between = self._driver.between, None
            between()
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        self._connection.close()


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_change_while_the_copy_begins_is_in_both_or_in_neither(tmp_path: Path, is_after: bool) -> None:  # noqa: FBT001 - given by name
    loop, copy = asyncio.get_running_loop(), tmp_path / "copy/tenants/default"
    copy.mkdir(parents=True)
    async with organism(tmp_path / "data") as o:
        library = o.tenant.library
        await library.replace("x", texts(a="the tower stands", b="the park is large"), None, By())

        def change() -> None:
            patch = library.patch("x", "a", "the tower was closed", None, By())
            asyncio.run_coroutine_threadsafe(patch, loop).result()

        files = LogDirectory(tmp_path / "data/tenants/default", driver=Interrupted(change, is_after=is_after))
        await copy_log(files, LogDirectory(copy), LIBRARY_FILE, tuple(INDICES.types))
    async with organism(tmp_path / "copy") as o:
        assert await content(o.tenant.library, "x") == {"a": "the tower was closed", "b": "the park is large"}
