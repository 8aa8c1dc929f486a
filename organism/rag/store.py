"""The store of one tenant's library: one SQLite file with the documents, their vectors and their words.

A row shows in the generations from ``added`` to before ``removed``. Which generation of an index is in force, the log
alone says: a change is staged here first, unseen; then its fact is written; then what it removed is deleted.

Documents are compared with the digests that the log has. Vectors, which it does not have, are sealed by a key that
comes from the log's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
import orjson
from numpy.typing import NDArray

from organism.errors import LibraryDamaged, LibraryUnavailable, StalePosition
from organism.rag.digests import Digests
from organism.rag.documents import Document, digest_of, text_digest_of
from organism.rag.words import indexed
from organism.sqlite.driver import (
    Connection,
    Failure,
    Pysqlite,
    in_memory,
    json_text,
    set_up,
    statements,
    truncate_wal,
)
from organism.sqlite.thread import ConnectionThread

T = TypeVar("T")
LIBRARY_FILE: Final = "library.sqlite"
LIBRARY: Final = "library"
"""What its key is for."""
LAYOUT: Final = 4
LAYOUT_OF_SEALS: Final = 3
PRIVATE_FILE: Final = 0o600
SEAL_BYTES: Final = 8
"""What fits into an integer of SQLite: whoever guesses asks the server each time."""
LEAST_IDF: Final = 1e-6
"""What FTS5 takes for a word that at least half of the texts have."""
PORTION_ROWS: Final = 256
"""So many vectors are copied at a time: what holds the interpreter's lock stays short."""
_SQL: Final = statements("rag", "store.sql")

Rows = NDArray[np.int64]
Matrix = NDArray[np.float32]
"""A vector a row."""
Vector = NDArray[np.float32]


class InForce(NamedTuple):
    """An index as of a generation, and the digests that the log has of its documents; None compares with nothing."""

    index_id: str
    generation: int
    digests: Digests | None = None

    @property
    def place(self) -> tuple[str, int]:
        """By which statements find its rows."""
        return self.index_id, self.generation


class Expected(NamedTuple):
    """An index as the log has it."""

    generation: int
    model: str
    digests: Digests

    def is_met_by(self, staged: int, count: int) -> bool:
        """Whether a store that staged this generation last, and has so many documents, is not from before it."""
        return count == len(self.digests) and (not count or staged >= self.generation)


class Damage(NamedTuple):
    """What a start found: the indices that lack documents, and of others the documents that are not as written."""

    incomplete: set[str]
    changed: dict[str, set[str]]


class SavedGraph(NamedTuple):
    """A graph in a file: the model of its vectors, how many numbers each has, and the SHA-256 of the file."""

    model: str
    dim: int
    digest: str


class Span(NamedTuple):
    """``limit`` documents behind the place ``after``, without the first ``offset``."""

    after: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document as it is added."""

    document: Document
    salt: bytes
    digest: str
    text_digest: str


class Embedded(NamedTuple):
    """Vectors of texts by a model, by the texts' digests."""

    model: str
    vectors: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Staging:
    """A change of an index that is in force as of ``current``: what shows from ``generation`` on.

    ``removed`` are ids of documents; None: all. ``embedded`` has the vectors of all added texts.
    """

    index_id: str
    current: int
    generation: int
    at: int
    added: Sequence[Version] = ()
    removed: Sequence[str] | None = ()
    embedded: Embedded | None = None


class Store:
    """The file, a thread that writes it, and a thread that reads it; ``path`` None: in memory, with one thread."""

    def __init__(self, path: Path | None, driver: Pysqlite) -> None:
        self._path, self._driver = path, driver
        if path is None:
            memory = in_memory()
            self._writer = ConnectionThread("library", lambda: memory, driver, self._explained)
            self._reader = self._writer
        else:
            self._writer = ConnectionThread("library-writer", self._to_write, driver, self._explained)
            self._reader = ConnectionThread("library-reader", self._to_read, driver, self._explained)

    async def write(self, work: Callable[..., T], *arguments: Any) -> T:
        """``work(connection, *arguments)`` in the writing thread. Raises ``LibraryDamaged``, ``LibraryUnavailable``."""
        return await self._writer.submit(work, *arguments)

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same in the reading thread."""
        return await self._reader.submit(work, *arguments)

    async def close(self) -> None:
        """End the threads."""
        if self._reader is not self._writer:
            await self._reader.stop()
        await self._writer.stop()

    def _to_write(self) -> Connection:
        assert self._path is not None  # noqa: S101 - one in memory has no such connection; narrows the type
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        return set_up(self._driver.connect(str(self._path)), "PRAGMA synchronous = FULL")

    def _to_read(self) -> Connection:
        return set_up(self._driver.connect(str(self._path)), "PRAGMA query_only = ON")

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, self._driver.errors) and self._driver.failure(error) is Failure.DAMAGED:
            explained: Exception = LibraryDamaged(f"The library's file cannot be read: {error}.")
        elif isinstance(error, (*self._driver.errors, OSError)):
            reason = error.strerror if isinstance(error, OSError) else error
            explained = LibraryUnavailable(f"The library's file cannot be used now: {reason}.")
        else:
            return error
        explained.__cause__ = error
        return explained


# -- writing


def open_tables(connection: Connection, indices: Mapping[str, Expected], key: bytes) -> Damage:
    """Make the tables if there are none, drop what no fact names, and compare the rest with the log.

    Raises ``LibraryDamaged`` for a file that cannot be read here.
    """
    ((layout,),) = connection.execute(_SQL["layout"])
    if layout > LAYOUT:
        raise LibraryDamaged(f"The library's file has the layout {layout} of a newer version; this one knows {LAYOUT}.")
    ((found,),) = connection.execute(_SQL["check"])
    if found != "ok":
        raise LibraryDamaged(f"The library's file is damaged: {found}.")
    if layout == 0:
        if connection.execute(_SQL["tables"]).fetchone() is not None:
            raise LibraryDamaged("The library's file is a database of another kind.")
        connection.execute(_SQL["journal"])
    else:
        try:
            connection.execute(_SQL["check_words"])
        except Pysqlite.errors:
            connection.execute(_SQL["make_words"])
    with _transaction(connection):
        _lay_out(connection, layout, indices, key)
        connection.execute(_SQL["drop_models"], (json_text([each.model for each in indices.values()]),))
        known = {index_id for (index_id,) in connection.execute(_SQL["indices"])}
        for index_id in known | indices.keys():
            _sweep(connection, index_id, indices[index_id].generation if index_id in indices else 0)
        for index_id, each in indices.items():
            connection.execute(_SQL["drop_unknown"], (index_id, json_text(list(each.digests))))
        connection.execute(_SQL["forget_settled"])
        connection.execute(_SQL["forget_indices"], (json_text(list(indices)),))
    truncate_wal(connection)
    return _damage(connection, indices)


def _lay_out(connection: Connection, layout: int, indices: Mapping[str, Expected], key: bytes) -> None:
    """Make the tables, or make those of an earlier layout what they are now."""
    if layout == 0:
        _execute_all(connection, *(name for name in _SQL if name.startswith("create_")))
    elif layout == 1:
        _take_over_layout_1(connection, indices, key)
    elif layout == 2:  # noqa: PLR2004 - the second layout
        _take_over_layout_2(connection, key)
    if 0 < layout < LAYOUT:
        _take_over_layout_3(connection)
    connection.execute(_SQL["set_layout"])


def _damage(connection: Connection, indices: Mapping[str, Expected]) -> Damage:
    whole = {index_id: (staged, count) for index_id, staged, count in connection.execute(_SQL["whole"])}
    incomplete = {index_id for index_id, each in indices.items() if not each.is_met_by(*whole.get(index_id, (0, 0)))}
    changed = {
        index_id: set(changed_documents(connection, InForce(index_id, each.generation, each.digests)))
        for index_id, each in indices.items()
        if index_id not in incomplete
    }
    return Damage(incomplete, {index_id: ids for index_id, ids in changed.items() if ids})


def changed_documents(connection: Connection, index: InForce) -> Iterator[str]:
    """The ids of those documents of the index that are not as the log has them."""
    for *row, text_digest in connection.execute(_SQL["all_documents"], index.place):
        try:
            is_whole = text_digest_of(_document(index, row).text) == text_digest  # else it has another text's vector
        except LibraryDamaged:
            is_whole = False
        if not is_whole:
            yield row[0]


def damage_of(connection: Connection, index: InForce, model: str, key: bytes) -> Iterator[tuple[str, str]]:
    """Documents of the index, each with what is wrong with it or with its vector by the model."""
    digests = index.digests or {}
    there = {document_id for (document_id,) in connection.execute(_SQL["ids"], index.place)}
    yield from ((document_id, "it is missing") for document_id in digests.keys() - there)
    yield from ((document_id, "no event names it, it was added") for document_id in there - digests.keys())
    for document_id in changed_documents(connection, index):
        if document_id in digests:
            yield document_id, "it is not as the log has it; write it again, or delete it"
    ((layout,),) = connection.execute(_SQL["layout"])
    if layout < LAYOUT_OF_SEALS:  # its vectors are sealed by the next start
        return
    for document_id, text_digest, vector, checksum in connection.execute(_SQL["all_vectors"], (*index.place, model)):
        if vector is not None and seal_of(key, text_digest, model, vector) != checksum:
            yield document_id, "its vector was changed; write it again"  # one that is missing is made by the server


def seal_of(key: bytes, text_digest: str, model: str, vector: bytes) -> int:
    """Proves that the vector was written here, for this text and by this model."""
    seal = blake2b(f"{text_digest} {model} ".encode(), key=key, digest_size=SEAL_BYTES)
    seal.update(vector)
    return int.from_bytes(seal.digest(), signed=True)


def _seal_of_graph(key: bytes, index_id: str, graph: SavedGraph) -> str:
    return blake2b(json_text([index_id, *graph]).encode(), key=key, digest_size=SEAL_BYTES).hexdigest()


def _take_over_layout_1(connection: Connection, indices: Mapping[str, Expected], key: bytes) -> None:
    """In the first layout a document had its vector itself, and nothing said which generation was staged last."""
    _execute_all(connection, "create_vectors", "create_generations", "from_1_graphs", "create_graphs", "from_1_by_text")
    for text_digest, model, vector in connection.execute(_SQL["from_1_vectors"]).fetchall():
        _keep(connection, Embedded(model, {text_digest: vector}), key)
    for index_id, each in indices.items():
        connection.execute(_SQL["set_staged"], (index_id, each.generation))
    _execute_all(
        connection, "from_1_settled", "from_1_model", "from_1_vector", "create_by_text", "create_vectors_deleted"
    )


def _take_over_layout_2(connection: Connection, key: bytes) -> None:
    """In the second layout a vector had a plain checksum, and the file of a graph a plain digest."""
    connection.execute(_SQL["from_2_graphs"])
    after = 0
    while rows := connection.execute(_SQL["from_2_vectors"], (after, PORTION_ROWS)).fetchall():
        for row, text_digest, model, vector, checksum in rows:
            if crc32(vector) == checksum:
                connection.execute(_SQL["from_2_seal"], (seal_of(key, text_digest, model, vector), row))
        after = rows[-1][0]


def _take_over_layout_3(connection: Connection) -> None:
    """In the third layout the index of words had the texts as they are; ``make_words`` does the rest meanwhile."""
    _execute_all(connection, "from_3_words", "from_3_added", "from_3_deleted", "from_3_index")
    _execute_all(connection, "create_indexed_texts", *(name for name in _SQL if name.startswith("create_words")))
    connection.execute(_SQL["make_words"])


def make_words(connection: Connection, after: int) -> int | None:
    """Index texts behind a row as this version does it, where they are not; gives the last row, None at the end."""
    rows = connection.execute(_SQL["words_behind"], (after, PORTION_ROWS)).fetchall()
    wrong = [(made, row) for row, text, words in rows if (made := _words_of(text)) != words]
    if wrong:
        with _transaction(connection):
            for each in wrong:
                connection.execute(_SQL["set_words"], each)
        truncate_wal(connection)
    return rows[-1][0] if rows else None


def count_without_words(connection: Connection) -> int:
    """How many texts are indexed as an earlier layout did it; all of them, if the file is of such a layout."""
    ((layout,),) = connection.execute(_SQL["layout"])
    ((count,),) = connection.execute(_SQL["count_texts" if layout < LAYOUT else "count_without_words"])
    return int(count)


def _words_of(text: str) -> str:
    made = indexed(text)
    return made if made != text else ""


def _execute_all(connection: Connection, *names: str) -> None:
    for name in names:
        connection.execute(_SQL[name])


def stage(connection: Connection, staging: Staging, key: bytes) -> None:
    """Write what will show in the generation; what an earlier change staged that never came into force goes."""
    with _transaction(connection):
        _sweep(connection, staging.index_id, staging.current)
        connection.execute(_SQL["set_staged"], (staging.index_id, staging.generation))
        if staging.removed is None:
            connection.execute(_SQL["remove_all"], (staging.generation, staging.index_id))
        written = [version.document.id for version in staging.added]
        replaced = json_text([*(staging.removed or ()), *written])
        connection.execute(_SQL["remove"], (staging.generation, staging.index_id, replaced))
        for each in staging.added:
            document = each.document
            what = (staging.index_id, document.id, staging.generation, staging.at, each.text_digest)
            texts = (each.salt, each.digest, json_text(document.metadata), document.text, _words_of(document.text))
            connection.execute(_SQL["add"], (*what, *texts))
        if staging.embedded is not None:
            _keep(connection, staging.embedded, key)


def settle(connection: Connection, index_id: str, generation: int) -> None:
    """The generation is in force: delete what was removed, from the files too."""
    with _transaction(connection):
        _delete_removed(connection, index_id, generation)
    truncate_wal(connection)


def name_graphs(connection: Connection, saved: Mapping[str, SavedGraph], key: bytes) -> None:
    """These graphs are of the vectors that the store has: no row gets another text, and no row's number comes again."""
    with _transaction(connection):
        for index_id, graph in saved.items():
            connection.execute(_SQL["set_graph"], (index_id, *graph, _seal_of_graph(key, index_id, graph)))


def saved_graphs(connection: Connection, key: bytes) -> dict[str, SavedGraph]:
    """The graphs that were saved, by the ids of their indices; one that is not named as it was is left out."""
    found = {index_id: (SavedGraph(*graph), seal) for index_id, *graph, seal in connection.execute(_SQL["graphs"])}
    return {
        index_id: graph for index_id, (graph, seal) in found.items() if seal == _seal_of_graph(key, index_id, graph)
    }


def embedded(connection: Connection, model: str, text_digests: Sequence[str], key: bytes) -> dict[str, bytes]:
    """The vectors of those texts that the model embedded before; one that is not as it was written is left out."""
    found = connection.execute(_SQL["embedded"], (model, json_text(text_digests))).fetchall()
    return {
        text_digest: vector
        for text_digest, vector, checksum in found
        if seal_of(key, text_digest, model, vector) == checksum
    }


def keep(connection: Connection, made: Embedded, key: bytes) -> None:
    """Keep vectors of texts that documents have."""
    with _transaction(connection):
        _keep(connection, made, key)


def _keep(connection: Connection, made: Embedded, key: bytes) -> None:
    for text_digest, vector in made.vectors.items():
        checksum = seal_of(key, text_digest, made.model, vector)
        connection.execute(_SQL["keep_vector"], (text_digest, made.model, vector, checksum))


def _sweep(connection: Connection, index_id: str, current: int) -> None:
    """Undo what never came into force, and end what a change that did left undone."""
    connection.execute(_SQL["drop_unnamed"], (index_id, current))
    connection.execute(_SQL["keep_unnamed"], (index_id, current))
    _delete_removed(connection, index_id, current)


def _delete_removed(connection: Connection, index_id: str, generation: int) -> None:
    connection.execute(_SQL["settle"], (index_id, generation))
    connection.execute(_SQL["set_settled"], (index_id, generation))


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(*Pysqlite.errors, OSError):  # some failures have done it
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


# -- reading, each over one state of the file


@contextmanager
def snapshot(connection: Connection, index: InForce) -> Iterator[None]:
    """What is read inside is of one state, which has the generation whole. Raises ``StalePosition`` if that is over."""
    connection.execute("BEGIN")
    try:
        settled = connection.execute(_SQL["settled"], (index.index_id,)).fetchone()
        if settled is not None and settled[0] > index.generation:
            raise StalePosition(f"The generation {index.generation} of {index.index_id!r} is over.")
        yield
    finally:
        connection.execute("COMMIT")


def document(connection: Connection, index: InForce, document_id: str) -> Document | None:
    """One document, None if there is none."""
    with snapshot(connection, index):
        row = connection.execute(_SQL["document"], (index.index_id, document_id, index.generation)).fetchone()
    if row is not None:
        return _document(index, row)
    if document_id in (index.digests or ()):
        raise LibraryDamaged(f"The document {document_id[:140]!r} of the library is missing.")
    return None


@dataclass(frozen=True, slots=True)
class Listed:
    """Documents in their order; ``before`` of them lie before the first, ``last`` is the place of the last."""

    documents: Sequence[Document]
    before: int
    last: int


def page(connection: Connection, index: InForce, span: Span) -> Listed:
    """Documents in their order."""
    with snapshot(connection, index):
        rows = connection.execute(_SQL["page"], (*index.place, span.after, span.limit, span.offset)).fetchall()
        ((before, count),) = connection.execute(_SQL["before"], (*index.place, span.after))
    _check_count(index, count)
    found = [_document(index, row[:-1]) for row in rows]
    return Listed(found, before + span.offset, rows[-1][-1] if rows else span.after)


def text_bytes(connection: Connection, index: InForce) -> int:
    """The size of all texts."""
    with snapshot(connection, index):
        ((size,),) = connection.execute(_SQL["size"], index.place)
    return int(size)


def unembedded(connection: Connection, index: InForce, model: str, limit: int) -> list[str]:
    """Texts of an index that the model has not embedded. Raises ``LibraryDamaged``."""
    with snapshot(connection, index):
        found = connection.execute(_SQL["unembedded"], (*index.place, model, limit)).fetchall()
    if any(text_digest_of(text) != text_digest for text, text_digest in found):  # its vector would find no text
        raise LibraryDamaged(f"Documents of the index {index.index_id!r} are not as they were written.")
    return [text for text, _ in found]


def count_unembedded(connection: Connection, index: InForce, model: str) -> int:
    """How many documents of an index have texts that the model has not embedded."""
    with snapshot(connection, index):
        ((count,),) = connection.execute(_SQL["count_unembedded"], (*index.place, model))
    return int(count)


def rows_in_force(connection: Connection, index: InForce) -> Rows:
    """The rows of an index, rising. Raises ``LibraryDamaged``. Inside of a ``snapshot``."""
    rows = _sorted(connection.execute(_SQL["rows"], index.place))
    _check_count(index, len(rows))
    return rows


def rows_matching(connection: Connection, index: InForce, wanted: Mapping[str, Any]) -> Rows:
    """Those whose metadata say what the filter wants. Inside of a ``snapshot``."""
    conditions = json_text([[name, value, *_kinds(value)] for name, value in wanted.items()])
    return _sorted(connection.execute(_SQL["matching"], (*index.place, conditions)))


def rows_embedded(connection: Connection, rows: Rows, model: str) -> Rows:
    """Those of the rows, rising, whose texts the model has embedded. Inside of a ``snapshot``."""
    return _sorted(connection.execute(_SQL["rows_embedded"], (model, json_text(rows.tolist()))))


def vectors(connection: Connection, rows: Rows, model: str, dim: int, key: bytes) -> Iterator[tuple[Rows, Matrix]]:
    """The model's vectors of rows that are embedded, by portions. Raises ``LibraryDamaged``. In a ``snapshot``."""
    for begin in range(0, len(rows), PORTION_ROWS):
        portion = rows[begin : begin + PORTION_ROWS]
        found = connection.execute(_SQL["vectors"], (model, json_text(portion.tolist()))).fetchall()
        whole = (each[1] for each in found if seal_of(key, each[0], model, each[1]) == each[2])
        joined = b"".join(whole)
        if len(found) != len(portion) or len(joined) != len(portion) * dim * 4:
            raise LibraryDamaged("Vectors of the index are not as they were written. Replace all of its documents.")
        yield portion, np.frombuffer(joined, dtype="<f4").reshape(len(portion), dim)


def rows_with_words(connection: Connection, terms: Sequence[str]) -> Iterator[list[tuple[int, float]]]:
    """(row, score) of what has any of the words, in any index, the best first. Inside of a ``snapshot``."""
    cursor = connection.execute(_SQL["with_words"], (_any_of(terms),)) if terms else ()
    portion: list[tuple[int, float]] = []
    for row in cursor:
        portion.append((row[0], row[1]))
        if len(portion) == PORTION_ROWS:
            yield portion
            portion = []
    yield portion


def scores_by_words(connection: Connection, terms: Sequence[str], rows: Sequence[int]) -> dict[int, float]:
    """The scores of those of the rows that have any of the words. Inside of a ``snapshot``."""
    if not terms or not rows:
        return {}
    return dict(connection.execute(_SQL["scores_by_words"], (_any_of(terms), json_text(rows))).fetchall())


def idfs(connection: Connection, terms: Sequence[str]) -> list[float]:
    """How telling FTS5 takes each of the words for, by how few of all texts have it. Inside of a ``snapshot``."""
    ((count,),) = connection.execute(_SQL["count_texts"])
    having = [each for term in terms for (each,) in connection.execute(_SQL["count_with_word"], (term,))]
    return [max(LEAST_IDF, math.log((count - each + 0.5) / (each + 0.5))) for each in having]


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(terms)


def found(connection: Connection, index: InForce, rows: Sequence[int]) -> list[Document]:
    """Documents of an index by their rows, in their order. Raises ``LibraryDamaged``. Inside of a ``snapshot``."""
    found = connection.execute(_SQL["found"], (json_text(rows),)).fetchall()  # an error must leave no cursor open
    by_row = {row: _document(index, rest) for row, *rest in found}
    if len(by_row) != len(rows):
        raise LibraryDamaged(f"Documents of the index {index.index_id!r} are missing.")
    return [by_row[row] for row in rows]


def _document(index: InForce, row: Sequence[Any]) -> Document:
    """The document of a row, whose digest is that which the log has. Raises ``LibraryDamaged``."""
    document_id, text, metadata, salt, digest = row
    logged = digest if index.digests is None else index.digests.get(document_id)
    with suppress(ValueError, TypeError):
        document = Document(document_id, text, orjson.loads(metadata))
        if digest_of(salt, document) == logged:
            return document
    raise LibraryDamaged(changed_message(document_id))


def changed_message(document_id: str) -> str:
    """What is said of a document that was changed."""
    return f"The document {document_id[:140]!r} of the library is not as it was written. Write it again, or delete it."


def _check_count(index: InForce, count: int) -> None:
    if index.digests is not None and len(index.digests) != count:
        raise LibraryDamaged(
            f"The index {index.index_id!r} has {count} documents in the library's file and {len(index.digests)} in "
            "the log. Replace all of its documents, or delete it."
        )


def _sorted(found: Any) -> Rows:
    rows: Rows = np.fromiter((row for (row,) in found), dtype=np.int64)
    rows.sort()
    return rows


def _kinds(value: Any) -> tuple[str, str]:
    """The JSON types of SQLite that such a value has."""
    if isinstance(value, bool) or value is None:
        name = {True: "true", False: "false", None: "null"}[value]
        return name, name
    return ("text", "text") if isinstance(value, str) else ("integer", "real")
