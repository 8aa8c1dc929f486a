"""The store shows a generation as it was staged, until what it had is gone; who reads then begins again."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from organism.errors import StalePosition
from organism.model.redact import Redactor
from organism.rag import store
from organism.rag.documents import Document, digest_of, text_digest_of
from organism.rag.index import Graphs
from organism.rag.library import By, Library
from organism.rag.store import Damage, Expected, InForce, Span, Staging, Store, Version
from organism.sqlite.driver import Pysqlite
from organism.views.views import Page, Query, R, ReadModel, Sums, ViewStore
from tests.rag.layouts import make_second
from tests.rag.libraries import WORDS, content, organism, texts

ALL = Span(0, 0, 100)
KEY = b"a key"
WHOLE = Damage(set(), {})
FIRST_LAYOUT = Path(__file__).parents[1] / "golden" / "library-1.sqlite"


def version(document: Document) -> Version:
    salt = os.urandom(16)
    return Version(document, salt, digest_of(salt, document), text_digest_of(document.text))


def staging(generation: int, current: int, *given: Document, removed: list[str] | None = None) -> Staging:
    return Staging("x", current, generation, 0, [version(each) for each in given], removed)


async def ids(files: Store, generation: int) -> list[str]:
    listed = await files.read(store.page, InForce("x", generation), ALL)
    return [each.id for each in listed.documents]


async def test_a_generation_shows_what_was_staged_for_it(tmp_path: Path) -> None:
    files = Store(tmp_path / "library.sqlite", Pysqlite())
    assert await files.write(store.open_tables, {}, KEY) == WHOLE
    await files.write(store.stage, staging(3, 0, *texts(a="one", b="two")), KEY)
    assert (await ids(files, 0), await ids(files, 3)) == ([], ["a", "b"])
    await files.write(store.stage, staging(5, 3, *texts(b="new", c="three"), removed=["a"]), KEY)
    assert (await ids(files, 3), await ids(files, 5)) == (["a", "b"], ["b", "c"])
    await files.write(store.settle, "x", 5)
    assert await ids(files, 5) == ["b", "c"]
    with pytest.raises(StalePosition):
        await ids(files, 3)
    await files.close()


async def test_what_never_came_into_force_is_undone(tmp_path: Path) -> None:
    files = Store(tmp_path / "library.sqlite", Pysqlite())
    await files.write(store.open_tables, {}, KEY)
    first = staging(1, 0, *texts(a="one", b="two"))
    await files.write(store.stage, first, KEY)
    await files.write(store.stage, staging(2, 1, *texts(b="lost"), removed=["a"]), KEY)
    await files.write(store.stage, staging(2, 1, *texts(c="three"), removed=[]), KEY)
    assert await ids(files, 2) == ["a", "b", "c"]
    await files.close()
    again = Store(tmp_path / "library.sqlite", Pysqlite())
    indices = {"x": Expected(1, "plain", {each.document.id: each.digest for each in first.added})}
    assert await again.write(store.open_tables, indices, KEY) == WHOLE
    assert (await ids(again, 1), await ids(again, 2)) == (["a", "b"], ["a", "b"])
    assert await again.write(store.open_tables, {}, KEY) == WHOLE
    await again.close()


async def test_a_change_whose_caller_leaves_is_written_whole(tmp_path: Path) -> None:
    files = Store(tmp_path / "library.sqlite", Pysqlite())
    await files.write(store.open_tables, {}, KEY)
    writing = asyncio.ensure_future(files.write(store.stage, staging(1, 0, *texts(a="one", b="two")), KEY))
    await asyncio.wait({writing}, timeout=0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await ids(files, 1) == ["a", "b"]
    await files.close()


@pytest.mark.parametrize("name", ["library.sqlite", None])
async def test_a_close_waits_for_what_was_begun(tmp_path: Path, name: str | None) -> None:
    files = Store(None if name is None else tmp_path / name, Pysqlite())
    await files.write(store.open_tables, {}, KEY)
    writing = asyncio.ensure_future(files.write(store.stage, staging(1, 0, *texts(a="one", b="two")), KEY))
    reading = asyncio.ensure_future(ids(files, 0))
    searching = asyncio.ensure_future(files.search(store.idfs, ["one"]))
    await asyncio.wait({writing, reading, searching}, timeout=0)
    await files.close()
    await writing
    assert (await reading, len(await searching)) == ([], 1)


def digests_in(file: Path) -> dict[str, dict[str, str]]:
    """The digests that a file has, as its log would have them."""
    found: dict[str, dict[str, str]] = {}
    with Pysqlite().reading(file) as connection:
        for index_id, document_id, digest in connection.execute("SELECT index_id, id, digest FROM documents"):
            found.setdefault(index_id, {})[document_id] = digest
    return found


async def test_a_file_of_the_second_layout_is_taken_over_and_its_vectors_are_sealed(tmp_path: Path) -> None:
    files = Store(tmp_path / "library.sqlite", Pysqlite())
    await files.write(store.open_tables, {}, KEY)
    vectors = {text_digest_of(text): text.encode() for text in ("one", "two")}
    given = staging(1, 0, *texts(a="one", b="two"))
    await files.write(store.stage, replace(given, embedded=store.Embedded("plain", vectors)), KEY)
    await files.close()
    with closing(Pysqlite().connect(str(tmp_path / "library.sqlite"))) as connection:
        make_second(connection)
        connection.execute("UPDATE vectors SET checksum = ? WHERE vector = ?", (crc32(b"one"), b"one"))
    again = Store(tmp_path / "library.sqlite", Pysqlite())
    digests = {each.document.id: each.digest for each in given.added}
    assert await again.write(store.open_tables, {"x": Expected(1, "plain", digests)}, KEY) == WHOLE
    assert await again.read(store.embedded, "plain", list(vectors), KEY) == vectors
    assert await again.read(store.embedded, "plain", list(vectors), b"another key") == {}
    await again.close()


async def test_a_file_of_the_first_layout_is_taken_over(tmp_path: Path) -> None:
    shutil.copy(FIRST_LAYOUT, tmp_path / "library.sqlite")
    files = Store(tmp_path / "library.sqlite", Pysqlite())
    digests = digests_in(tmp_path / "library.sqlite")
    indices = {
        name: Expected(generation, model, digests[name])
        for name, generation, model in (("x", 1, "plain"), ("y", 2, "plain"), ("z", 3, "other"))
    }
    assert await files.write(store.open_tables, indices, KEY) == WHOLE
    listed = await files.read(store.page, InForce("x", 1), ALL)
    assert [(each.id, each.text) for each in listed.documents] == [("a", "the tower"), ("b", "the park")]
    park = text_digest_of("the park")
    for model, vector in (("plain", [0, 1]), ("other", [1, 1, 0])):
        assert await files.read(store.embedded, model, [park], KEY) == {park: np.array(vector, "<f4").tobytes()}
    await files.write(store.stage, staging(5, 1, *texts(b="new"), removed=[]), KEY)
    assert await ids(files, 5) == ["a", "b"]
    await files.close()


class Late:
    """Rows of which the first that is asked for is an old one."""

    def __init__(self, views: ViewStore, old: Any) -> None:
        self._views = views
        self._old: Any = old

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        return await self._views.row(model, key, at)

    async def rows(self, model: str, query: Query) -> Page:
        return await self._views.rows(model, query)

    async def sums(self, model: str, sums: Sums) -> list[tuple[Any, ...]]:
        return await self._views.sums(model, sums)

    async def private_row(self, model: ReadModel[R], key: str) -> R | None:
        old, self._old = self._old, None
        return old or await self._views.private_row(model, key)

    async def live_rows(self, model: ReadModel[R], at: int | None = None) -> Sequence[R]:
        return await self._views.live_rows(model, at)


READS: dict[str, Callable[[Library], Any]] = {
    "a document": lambda library: library.document("x", "b"),
    "a list": lambda library: library.documents("x", ALL),
    "a query": lambda library: library.query("x", "the bridge", 5, "hybrid", {}),
    "a query by words": lambda library: library.query("x", "bridge", 5, "keyword", {}),
}


@pytest.mark.parametrize("read", READS)
async def test_a_read_that_a_change_overtakes_begins_again(tmp_path: Path, read: str) -> None:
    async with organism(tmp_path) as o:
        library = o.tenant.library
        await library.replace("x", texts(a="the tower", b="the park"), None, By())
        old = await library.index("x")
        await library.replace("x", texts(b="the bridge"), None, By())
        late = Library(
            *(Store(tmp_path / "tenants/default/library.sqlite", Pysqlite()), Late(o.views, old), WORDS),
            graphs=Graphs(None, None),
            recorder=o.tenant,
            head=lambda: o.log.head,
            now_us=lambda: 0,
            random_bytes=os.urandom,
            redactor=Redactor(),
        )
        assert await READS[read](late) == await READS[read](library)
        await late.close()
        assert await content(library, "x") == {"b": "the bridge"}
