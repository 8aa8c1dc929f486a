"""A damaged file of the library: the damage is reported, the organism works, and what can be repaired is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from organism.errors import LibraryDamaged
from organism.rag.library import By
from organism.sqlite.driver import Connection, Pysqlite
from tests.rag.libraries import WORDS, content, organism, texts

OLD = {"a": "the tower stands", "b": "the park is large"}


def library_file(data: Path) -> Path:
    return data / "tenants/default/library.sqlite"


async def filled(data: Path) -> Path:
    """A library with one index; gives its file, which is closed."""
    async with organism(data) as o:
        await o.tenant.library.replace("x", texts(**OLD), None, By())
    return library_file(data)


def changed(file: Path, *statements: str) -> None:
    connection: Connection = Pysqlite().connect(str(file))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def flip(file: Path) -> None:
    held = bytearray(file.read_bytes())
    for at in range(4096, len(held), 97):
        held[at] ^= 0x55
    file.write_bytes(held)


def foreign(file: Path) -> None:
    file.unlink()
    file.touch()
    changed(file, "CREATE TABLE documents (x)")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


WHOLE_FILE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:6000]),
    "bits flipped": flip,
    "foreign": lambda file: file.write_text("This is no database." * 500),
    "another's database": foreign,
    "newer": lambda file: changed(file, "PRAGMA user_version = 99"),
    "a folder": folder,
}


@pytest.mark.parametrize("kind", WHOLE_FILE)
async def test_a_damaged_file_refuses_what_is_asked_of_it_and_nothing_else(tmp_path: Path, kind: str) -> None:
    file = await filled(tmp_path)
    WHOLE_FILE[kind](file)
    before = file.read_bytes() if file.is_file() else b""
    async with organism(tmp_path) as o:
        library = o.tenant.library
        with pytest.raises(LibraryDamaged):
            await library.document("x", "a")
        with pytest.raises(LibraryDamaged):
            await library.query("x", "park", 5, "hybrid", {})
        with pytest.raises(LibraryDamaged):
            await library.append("x", texts(c="more"), None, By())
        with pytest.raises(LibraryDamaged):
            await library.delete_index("x", By())
        assert (await library.index("x")).public.doc_count == 2
        assert (await o.inject("greeter", {"name": "Dan"}, wait=True)).replies
    assert file.is_dir() or file.read_bytes() == before  # what is damaged is not overwritten


async def test_documents_that_are_missing_are_reported_until_they_come_again(tmp_path: Path) -> None:
    (await filled(tmp_path)).unlink()
    async with organism(tmp_path) as o:
        library = o.tenant.library
        with pytest.raises(LibraryDamaged, match="'x' are missing"):
            await content(library, "x")
        with pytest.raises(LibraryDamaged, match="'x' are missing"):
            await library.append("x", texts(c="more"), None, By())
        await library.replace("y", texts(c="another index"), None, By())
        await library.replace("x", texts(**OLD), None, By())
        assert await content(library, "x") == OLD
    async with organism(tmp_path) as o:
        assert await content(o.tenant.library, "x") == OLD


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE documents SET text = 'the tower falls' WHERE id = 'a'",
        "UPDATE documents SET metadata = '{}' WHERE id = 'a'",
        "UPDATE documents SET metadata = '{' WHERE id = 'a'",
        "UPDATE documents SET salt = x'00' WHERE id = 'a'",
    ],
)
async def test_a_document_that_was_changed_in_the_file_is_not_shown(tmp_path: Path, change: str) -> None:
    changed(await filled(tmp_path), change)
    async with organism(tmp_path) as o:
        with pytest.raises(LibraryDamaged, match="'a' of the library is not as it was written"):
            await o.tenant.library.document("x", "a")
        with pytest.raises(LibraryDamaged):
            await o.tenant.library.query("x", "tower", 5, "vector", {})
        assert (await o.tenant.library.document("x", "b")).text == OLD["b"]


async def test_a_vector_of_the_wrong_size_is_reported(tmp_path: Path) -> None:
    changed(await filled(tmp_path), "UPDATE vectors SET vector = x'00000000', checksum = 558161692")
    async with organism(tmp_path) as o:
        with pytest.raises(LibraryDamaged):
            await o.tenant.library.query("x", "tower", 5, "vector", {})
        assert (await o.tenant.library.query("x", "tower", 5, "keyword", {}))[0][0].document.id == "a"


async def test_a_vector_that_was_changed_in_the_file_is_reported_until_its_text_comes_again(tmp_path: Path) -> None:
    file = await filled(tmp_path)
    (vector,) = (await WORDS.embed("plain", [OLD["a"]])).vectors
    held = file.read_bytes()
    assert vector.tobytes() in held
    file.write_bytes(held.replace(vector.tobytes(), np.roll(vector, 1).tobytes()))
    async with organism(tmp_path) as o:
        library = o.tenant.library
        with pytest.raises(LibraryDamaged, match="not as they were written"):
            await library.query("x", "tower", 5, "vector", {})
        await library.append("x", texts(a=OLD["a"]), None, By())
        assert await content(library, "x") == OLD


async def test_an_older_file_with_as_many_documents_is_reported(tmp_path: Path) -> None:
    file = await filled(tmp_path)
    before = file.read_bytes()
    async with organism(tmp_path) as o:
        await o.tenant.library.patch("x", "a", "the tower fell", None, By())
    file.write_bytes(before)
    async with organism(tmp_path) as o:
        with pytest.raises(LibraryDamaged, match="'x' are missing"):
            await content(o.tenant.library, "x")


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What is in a cycle of references stays, as it does until the collector comes by."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
async def test_after_a_search_that_met_damage_later_changes_are_read(tmp_path: Path) -> None:
    changed(await filled(tmp_path), "UPDATE documents SET text = 'the tower falls' WHERE id = 'a'")
    async with organism(tmp_path) as o:
        with pytest.raises(LibraryDamaged):
            await o.tenant.library.query("x", "tower", 5, "hybrid", {})
        await o.tenant.library.append("x", texts(c="more"), None, By())
        assert (await o.tenant.library.document("x", "c")).text == "more"
