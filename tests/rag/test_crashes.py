"""A crash, or a disk that fails, at any statement of a change: the documents are the old ones or the new ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from organism.errors import OrganismError
from organism.rag.library import By, Library
from organism.sqlite.driver import Connection, Cursor, Parameters, Pysqlite
from tests.flows.disk import BrokenDisk, Disk, Fault
from tests.rag.libraries import content, organism, texts

OLD = {"a": "the tower stands", "b": "the park is large", "c": "a street of shops"}
NEW = {"b": "the park was closed", "d": "a bridge over water"}
Change = Callable[[Library], Awaitable[object]]
CHANGES: dict[str, tuple[Change, dict[str, str] | None]] = {
    "replace": (lambda library: library.replace("x", texts(**NEW), "other", By()), NEW),
    "append": (lambda library: library.append("x", texts(**NEW), None, By()), {**OLD, **NEW}),
    "patch": (lambda library: library.patch("x", "b", NEW["b"], None, By()), {**OLD, "b": NEW["b"]}),
    "delete a document": (lambda library: library.delete_document("x", "a", By()), {"b": OLD["b"], "c": OLD["c"]}),
    "delete the index": (lambda library: library.delete_index("x", By()), None),
}


class Cut(Pysqlite):
    """A disk that fails, for good, after so many statements that write."""

    errors: tuple[type[Exception], ...] = (*Pysqlite.errors, BrokenDisk)

    def __init__(self) -> None:
        self.left: int | None = None

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        return Cutting(super().connect(path, read_only=read_only), self)


class Cutting:
    """One of its connections."""

    def __init__(self, connection: Connection, disk: Cut) -> None:
        self._connection = connection
        self._disk = disk

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor:
        disk = self._disk
        if disk.left is not None and not sql.startswith(("SELECT", "WITH")):
            if disk.left == 0:
                raise BrokenDisk("it is cut")
            disk.left -= 1
        return self._connection.execute(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        self._connection.close()


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHANGES)
async def test_a_crash_at_any_statement_leaves_the_old_or_the_new(tmp_path: Path, name: str) -> None:
    change, new = CHANGES[name]
    seen: list[dict[str, str] | None] = []
    for statements in range(100):
        disk, data = Cut(), tmp_path / str(statements)
        async with organism(data, disk) as o:
            await o.tenant.library.replace("x", texts(**OLD), None, By())
            await o.tenant.library.replace("y", texts(e="the park"), None, By())
            disk.left = statements
            try:
                await change(o.tenant.library)
                ended = True
            except OrganismError:
                ended = False
            await o.crash()
        async with organism(data) as o:
            seen.append(await content(o.tenant.library, "x"))
            assert seen[-1] == new or not ended
            assert await content(o.tenant.library, "y") == {"e": "the park"}
            await o.tenant.library.append("x", texts(f="one more"), None, By())
            assert await content(o.tenant.library, "x") == {**(seen[-1] or {}), "f": "one more"}
        if disk.left:
            break
    assert seen[0] == OLD
    assert seen[-1] == new
    assert all(each in (OLD, new) for each in seen)
    assert seen.index(new) >= 3  # it is staged before its fact


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("name", CHANGES)
async def test_a_fact_whose_commit_fails_is_there_or_not(tmp_path: Path, name: str, fault: Fault) -> None:
    change, new = CHANGES[name]
    disk = Disk()
    async with organism(tmp_path, disk) as o:
        library = o.tenant.library
        await library.replace("x", texts(**OLD), None, By())
        disk.fail(fault)
        with pytest.raises(OrganismError) as refused:
            await change(library)
        assert refused.value.status == 503
        disk.mend()
        async for _ in o.log.follow(o.log.head):
            if o.tenant.writable() is not None:
                break
        now = OLD if fault is Fault.BEFORE else new
        assert await content(library, "x") == now
        await library.append("x", texts(f="one more"), None, By())
        assert await content(library, "x") == {**(now or {}), "f": "one more"}
