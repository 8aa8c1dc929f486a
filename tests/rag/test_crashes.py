"""A crash, or a disk that fails, at any statement of a change: the documents are the old ones or the new ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from organism.errors import OrganismError
from organism.events.vocabulary import DocumentsChanged
from organism.rag.library import By, Library
from organism.sqlite.driver import Connection, Cursor, Parameters, Pysqlite
from tests.flows.disk import BrokenDisk, Disk, Fault
from tests.rag.libraries import content, organism, texts

OLD = {"a": "the tower stands", "b": "the park is large", "c": "a street of shops"}
NEW = {"b": "the park was closed", "d": "a bridge over water"}
Change = Callable[[Library], Awaitable[object]]
State = tuple[str, dict[str, str]] | None
"""The embedding model of an index, and its documents."""

WITHOUT_A = {"b": OLD["b"], "c": OLD["c"]}
CHANGES: dict[str, tuple[Change, State]] = {
    "replace": (lambda library: library.replace("x", texts(**NEW), "other", By()), ("other", NEW)),
    "append": (lambda library: library.append("x", texts(**NEW), None, By()), ("plain", {**OLD, **NEW})),
    "patch": (lambda library: library.patch("x", "b", NEW["b"], None, By()), ("plain", {**OLD, "b": NEW["b"]})),
    "delete a document": (lambda library: library.delete_document("x", "a", By()), ("plain", WITHOUT_A)),
    "delete the index": (lambda library: library.delete_index("x", By()), None),
    "re-embed": (lambda library: library.reembed("x", "other", By()), ("other", OLD)),
}


async def state(library: Library, index_id: str) -> State:
    """All that there is of the index; what tells of it agrees."""
    found = await content(library, index_id)
    return None if found is None else ((await library.index(index_id)).public.embedding_model, found)


def with_one_more(before: State) -> State:
    model, documents = before or ("plain", {})
    return model, {**documents, "f": "one more"}


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
        self._count(sql)
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, given: Iterable[Parameters], /) -> None:
        for parameters in given:
            self.execute(sql, parameters)

    def _count(self, sql: str) -> None:
        disk = self._disk
        if disk.left is not None and not sql.startswith(("SELECT", "WITH")):
            if disk.left == 0:
                raise BrokenDisk("it is cut")
            disk.left -= 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        self._connection.close()


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHANGES)
async def test_a_crash_at_any_statement_leaves_the_old_or_the_new(tmp_path: Path, name: str) -> None:
    change, new = CHANGES[name]
    old: State = ("plain", OLD)
    seen: list[State] = []
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
            seen.append(await state(o.tenant.library, "x"))
            assert seen[-1] == new or not ended
            assert await content(o.tenant.library, "y") == {"e": "the park"}
            await o.tenant.library.append("x", texts(f="one more"), None, By())
            assert await state(o.tenant.library, "x") == with_one_more(seen[-1])
        if disk.left:
            break
    assert seen[0] == old
    assert seen[-1] == new
    assert all(each in (old, new) for each in seen)
    assert seen.index(new) >= 3  # it is staged before its fact


@pytest.mark.thorough
async def test_a_crash_amid_a_confirmed_write_leaves_it_undone_or_done_once(tmp_path: Path) -> None:
    call = {"index_id": "x", "doc_id": "a"}
    was_done: list[bool] = []
    for statements in range(0, 100, 2):
        disk, data = Cut(), tmp_path / str(statements)
        async with organism(data, disk) as o:
            await o.tenant.library.replace("x", texts(**OLD), None, By())
            (asked,) = (await o.inject("rag_doc_delete", call, wait=True)).replies
            confirmed = {**call, "confirm_token": asked["confirm_token"]}
            disk.left = statements
            with suppress(OrganismError):
                sent = await o.inject("rag_doc_delete", confirmed)
                while o.tenant.writable() is not None and not await o.tenant.ended(sent.thread_id, 0.05):
                    pass
            await o.crash()
        async with organism(data) as o:
            open_threads = list(o.tenant.pump.state.folded.threads)
            assert all([await o.tenant.ended(thread, 10) for thread in open_threads])
            was_done.append("a" not in (await content(o.tenant.library, "x") or {}))
            (again,) = (await o.inject("rag_doc_delete", confirmed, wait=True)).replies
            assert again == {"deleted": True} if not was_done[-1] else again["code"] == "confirm_used"
            assert await content(o.tenant.library, "x") == WITHOUT_A
            facts = [each.event.deleted for each in await o.records(DocumentsChanged)]
            assert facts == [("a",)]
        if disk.left:
            break
    assert was_done[0] is False
    assert was_done[-1] is True
    assert was_done == sorted(was_done)


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
        now: State = ("plain", OLD) if fault is Fault.BEFORE else new
        assert await state(library, "x") == now
        await library.append("x", texts(f="one more"), None, By())
        assert await state(library, "x") == with_one_more(now)
