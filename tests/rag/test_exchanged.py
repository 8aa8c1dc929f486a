"""What somebody exchanged in the library's file, digests and checksums with it: the log has another one, and tells."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from organism.errors import LibraryDamaged
from organism.rag.documents import Document, digest_of, text_digest_of
from organism.rag.library import By
from organism.rag.verify import library_damage
from organism.sqlite.driver import Connection, Pysqlite
from organism.testing import Running
from tests.cli.command import organism as command
from tests.rag.libraries import ALL, content, organism, texts

OLD = {"a": "the tower stands", "b": "the park is large"}
ADD = """
INSERT INTO documents (id, index_id, ordinal, added, removed, at, text_digest, salt, digest, metadata, text)
SELECT ?, index_id, ordinal, added, removed, at, text_digest, salt, digest, metadata, text FROM documents LIMIT 1
"""


def library_file(data: Path) -> Path:
    return data / "tenants/default/library.sqlite"


def exchange(connection: Connection, row: str, text: str) -> None:
    """Put a text of one's own, under a digest and a salt that fit it, into the row of a document."""
    salt = os.urandom(16)
    digest = digest_of(salt, Document(row, text, {"of": row}))
    change = "UPDATE documents SET text = ?, salt = ?, digest = ? WHERE id = ?"
    connection.execute(change, (text, salt, digest, row))


def exchange_with_text_digest(connection: Connection, row: str, text: str) -> None:
    exchange(connection, row, text)
    connection.execute("UPDATE vectors SET text_digest = ? WHERE rowid = 1", (text_digest_of(text),))
    connection.execute("UPDATE documents SET text_digest = ? WHERE id = ?", (text_digest_of(text), row))


def swap(connection: Connection) -> None:
    """Each document under the id of the other."""
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        connection.execute("UPDATE documents SET id = ? WHERE id = ?", (new, old))


def add(connection: Connection, document_id: str) -> None:
    connection.execute(ADD, (document_id,))
    exchange(connection, document_id, "the tower never stood")


def replace_by_another(connection: Connection) -> None:
    connection.execute("DELETE FROM documents WHERE id = 'a'")
    add(connection, "c")


DOCUMENTS: dict[str, Callable[[Connection], object]] = {
    "a text": lambda file: file.execute("UPDATE documents SET text = 'the tower fell' WHERE id = 'a'"),
    "a text and its digest": lambda file: exchange(file, "a", "the tower fell"),
    "a text, its digest and its place among vectors": lambda file: exchange_with_text_digest(file, "a", "it fell"),
    "metadata": lambda file: file.execute("UPDATE documents SET metadata = '{}' WHERE id = 'a'"),
    "ids": swap,
    "the text whose vector finds it": lambda file: file.execute(
        "UPDATE documents SET text_digest = (SELECT text_digest FROM documents WHERE id = 'b') WHERE id = 'a'"
    ),
    "a document by another one": replace_by_another,
}
VECTORS: dict[str, str] = {
    "a vector": "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE rowid = 1",
    "the vectors of two texts": "UPDATE vectors SET (vector, checksum) ="
    " (SELECT vector, checksum FROM vectors AS other WHERE other.rowid = 3 - vectors.rowid)",
}


async def filled(data: Path) -> Path:
    async with organism(data) as o:
        await o.tenant.library.replace("x", texts(**OLD), None, By())
    return library_file(data)


async def verified(data: Path) -> str:
    """What ``organism log verify`` says of damage; empty if all is whole."""
    ran = await command("log", "verify", "--data", data)
    assert (ran.code == 0) is (not ran.err)
    return ran.err


async def refuses_searches(o: Running, *modes: str) -> None:
    for mode in modes:
        for words in ("tower", "park"):
            with pytest.raises(LibraryDamaged):
                await o.tenant.library.query("x", words, 5, mode, {})  # type: ignore[arg-type]  # one of them


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_what_was_exchanged_in_the_file_is_reported_by_each_read_and_by_verify(tmp_path: Path, name: str) -> None:
    file = await filled(tmp_path)
    assert await verified(tmp_path) == ""
    with closing(Pysqlite().connect(str(file))) as connection:
        DOCUMENTS[name](connection)
    assert "index 'x', document 'a'" in await verified(tmp_path)
    async with organism(tmp_path) as o:
        library = o.tenant.library
        await refuses_searches(o, "keyword", "vector", "hybrid")
        if name != "the text whose vector finds it":
            with pytest.raises(LibraryDamaged):
                await library.document("x", "a")
            with pytest.raises(LibraryDamaged):
                await library.documents("x", ALL)
        await library.replace("x", texts(**OLD), None, By())
        assert await content(library, "x") == OLD
    assert await verified(tmp_path) == ""


@pytest.mark.parametrize("name", VECTORS)
async def test_a_vector_that_was_exchanged_is_reported_though_its_checksum_fits(tmp_path: Path, name: str) -> None:
    file = await filled(tmp_path)
    with closing(Pysqlite().connect(str(file))) as connection:
        connection.execute(VECTORS[name])
        if name == "a vector":
            ((vector,),) = connection.execute("SELECT vector FROM vectors WHERE rowid = 1").fetchall()
            connection.execute("UPDATE vectors SET checksum = ? WHERE rowid = 1", (crc32(vector),))
    assert "its vector was changed" in await verified(tmp_path)
    async with organism(tmp_path) as o:
        await refuses_searches(o, "vector", "hybrid")
        await o.tenant.library.append("x", texts(**OLD), None, By())
        assert await content(o.tenant.library, "x") == OLD
    assert await verified(tmp_path) == ""


async def test_an_older_version_of_one_document_is_reported(tmp_path: Path) -> None:
    file = await filled(tmp_path)
    with closing(Pysqlite().connect(str(file))) as connection:
        (old,) = connection.execute("SELECT text, salt, digest, metadata FROM documents WHERE id = 'a'").fetchall()
    async with organism(tmp_path) as o:
        await o.tenant.library.patch("x", "a", "the tower fell", None, By())
    with closing(Pysqlite().connect(str(file))) as connection:
        connection.execute("UPDATE documents SET (text, salt, digest, metadata) = (?, ?, ?, ?) WHERE id = 'a'", old)
    assert "index 'x', document 'a'" in await verified(tmp_path)
    async with organism(tmp_path) as o:
        with pytest.raises(LibraryDamaged):
            await o.tenant.library.document("x", "a")
        await o.tenant.library.append("x", texts(**OLD), None, By())
        assert await content(o.tenant.library, "x") == OLD


async def test_a_document_that_was_added_in_the_file_is_reported_by_verify_and_never_shown(tmp_path: Path) -> None:
    file = await filled(tmp_path)
    with closing(Pysqlite().connect(str(file))) as connection:
        add(connection, "c")
    assert "index 'x', document 'c': no event names it" in await verified(tmp_path)
    async with organism(tmp_path) as o:
        assert await content(o.tenant.library, "x") == OLD
    assert await verified(tmp_path) == ""


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("name", ["exchanged", "added", "deleted"])
async def test_what_is_exchanged_while_the_server_runs_is_reported_by_reads(
    tmp_path: Path, name: str, mode: str
) -> None:
    async with organism(tmp_path) as o:
        await o.tenant.library.replace("x", texts(**OLD), None, By())
        with closing(Pysqlite().connect(str(library_file(tmp_path)))) as connection:
            match name:
                case "exchanged":
                    exchange(connection, "a", "the tower fell")
                case "added":
                    add(connection, "c")
                case _:
                    connection.execute("DELETE FROM documents WHERE id = 'a'")
        with pytest.raises(LibraryDamaged):
            await o.tenant.library.query("x", "tower stood", 5, mode, {})  # type: ignore[arg-type]  # one of them


async def test_a_library_that_is_gone_is_reported_by_verify(tmp_path: Path) -> None:
    (await filled(tmp_path)).unlink()
    assert "index 'x': library.sqlite is missing" in await verified(tmp_path)
    damage = await library_damage(tmp_path / "tenants/default", None, "default")
    assert damage == ["index 'x': library.sqlite is missing"]


async def test_verify_finds_the_library_whole_beside_a_server_that_changes_it(tmp_path: Path) -> None:
    async with organism(tmp_path) as o:
        for number in range(5):
            await o.tenant.library.append(
                "x", texts(**{f"n{number}": f"text {number}", "a": f"again {number}"}), None, By()
            )
            assert await verified(tmp_path) == ""
        await o.tenant.library.delete_document("x", "a", By())
        await o.tenant.library.reembed("x", "other", By())
        assert await verified(tmp_path) == ""
        await o.tenant.library.delete_index("x", By())
        assert await verified(tmp_path) == ""
