"""The store of one tenant's library: one SQLite file with the documents, their vectors and their words.

A row shows in the generations from ``added`` to before ``removed``. Which generation of an index is in force, the log
alone says: a change is staged here first, unseen; then its fact is written; then what it removed is deleted.

Documents are compared with the digests that the log has. Vectors, which it does not have, are sealed by a key that
comes from the log's.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from zlib import crc32

import orjson

from organism.errors import LibraryDamaged, LibraryUnavailable, StalePosition
from organism.rag.digests import Digests
from organism.rag.documents import Document, digest_of, text_digest_of
from organism.rag.words import indexed
from organism.sqlite.async_connection import PORTION_ROWS, AsyncConnection, Row
from organism.sqlite.driver import Connection, Failure, Pysqlite, in_memory, json_text, set_up, statements
from organism.sqlite.thread import ConnectionThread

if TYPE_CHECKING:
    from organism.rag.vectors import Matrix, Rows

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
_SQL: Final = statements("rag", "store.sql")


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
    """The file, with connections that write, read and search it; ``path`` None: in memory, with one for all."""

    def __init__(self, path: Path | None, driver: Pysqlite) -> None:
        self._path, self._driver = path, driver
        self._failures: tuple[type[Exception], ...] = (*driver.errors, OSError)
        self._writing = self._reading = self._searching = asyncio.Lock()
        if path is None:
            memory = in_memory()
            self._writer = self._reader = AsyncConnection(lambda: memory)
            self._searcher = ConnectionThread("library-search", lambda: memory, driver, self._explained)
        else:
            self._reading, self._searching = asyncio.Lock(), asyncio.Lock()
            self._writer, self._reader = AsyncConnection(self._to_write), AsyncConnection(self._to_read)
            self._searcher = ConnectionThread("library-search", self._to_read, driver, self._explained)

    async def write(self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """``work(connection, *arguments)``, after what came before it, and to its end also if the caller is cancelled.

        Raises ``LibraryDamaged``, ``LibraryUnavailable``.
        """
        return await to_its_end(self._locked(self._writing, work, self._writer, *arguments))

    async def read(self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """The same with the connection that reads; a caller that is cancelled ends it."""
        return await self._locked(self._reading, work, self._reader, *arguments)

    async def search(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same in the searching thread, for what has numbers between its statements."""
        async with self._searching:
            return await to_its_end(self._searcher.submit(work, *arguments))

    async def close(self) -> None:
        """Close all connections, after what was begun."""
        async with self._searching:
            await self._searcher.stop()
        async with self._reading:
            await self._reader.close()
        async with self._writing:
            await self._writer.close()

    async def _locked(self, lock: asyncio.Lock, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        async with lock:
            try:
                return await work(*arguments)
            except self._failures as error:
                raise self._explained(error) from error

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
        elif isinstance(error, self._failures):
            reason = error.strerror if isinstance(error, OSError) else error
            explained = LibraryUnavailable(f"The library's file cannot be used now: {reason}.")
        else:
            return error
        explained.__cause__ = error
        return explained


async def to_its_end(act: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Do it whole, also if the caller is cancelled meanwhile."""
    acting = asyncio.ensure_future(act)
    try:
        return await asyncio.shield(acting)
    except asyncio.CancelledError:
        await asyncio.wait({acting})
        if not acting.cancelled():
            acting.exception()  # its caller has left
        raise


# -- writing


async def open_tables(connection: AsyncConnection, indices: Mapping[str, Expected], key: bytes) -> Damage:
    """Make the tables if there are none, drop what no fact names, and compare the rest with the log.

    Raises ``LibraryDamaged`` for a file that cannot be read here.
    """
    ((layout,),) = await connection.rows(_SQL["layout"])
    if layout > LAYOUT:
        raise LibraryDamaged(f"The library's file has the layout {layout} of a newer version; this one knows {LAYOUT}.")
    ((found,),) = await connection.rows(_SQL["check"])
    if found != "ok":
        raise LibraryDamaged(f"The library's file is damaged: {found}.")
    if layout == 0:
        if await connection.rows(_SQL["tables"]):
            raise LibraryDamaged("The library's file is a database of another kind.")
        await connection.rows(_SQL["journal"])
    else:
        try:
            await connection.rows(_SQL["check_words"])
        except Pysqlite.errors:
            await connection.rows(_SQL["make_words"])
    async with connection.transaction():
        await _lay_out(connection, layout, indices, key)
        await connection.rows(_SQL["drop_models"], (json_text([each.model for each in indices.values()]),))
        known = {index_id for (index_id,) in await connection.rows(_SQL["indices"])}
        for index_id in known | indices.keys():
            await _sweep(connection, index_id, indices[index_id].generation if index_id in indices else 0)
        for index_id, each in indices.items():
            await connection.rows(_SQL["drop_unknown"], (index_id, json_text(list(each.digests))))
        await connection.rows(_SQL["forget_settled"])
        await connection.rows(_SQL["forget_indices"], (json_text(list(indices)),))
    await connection.truncate_wal()
    return await _damage(connection, indices)


async def _lay_out(connection: AsyncConnection, layout: int, indices: Mapping[str, Expected], key: bytes) -> None:
    """Make the tables, or make those of an earlier layout what they are now."""
    if layout == 0:
        await _execute_all(connection, *(name for name in _SQL if name.startswith("create_")))
    elif layout == 1:
        await _take_over_layout_1(connection, indices, key)
    elif layout == 2:  # noqa: PLR2004 - the second layout
        await _take_over_layout_2(connection, key)
    if 0 < layout < LAYOUT:
        await _take_over_layout_3(connection)
    await connection.rows(_SQL["set_layout"])


async def _damage(connection: AsyncConnection, indices: Mapping[str, Expected]) -> Damage:
    whole = {index_id: (staged, count) for index_id, staged, count in await connection.rows(_SQL["whole"])}
    incomplete = {index_id for index_id, each in indices.items() if not each.is_met_by(*whole.get(index_id, (0, 0)))}
    changed: dict[str, set[str]] = {}
    for index_id in indices.keys() - incomplete:
        each = indices[index_id]
        found = await changed_documents(connection, InForce(index_id, each.generation, each.digests))
        if found:
            changed[index_id] = found
    return Damage(incomplete, changed)


async def changed_documents(connection: AsyncConnection, index: InForce) -> set[str]:
    """The ids of those documents of the index that are not as the log has them."""
    changed: set[str] = set()
    async with aclosing(connection.portions(_SQL["all_documents"], index.place)) as portions:
        async for rows in portions:
            changed |= await asyncio.to_thread(_changed, index, rows)
    return changed


def _changed(index: InForce, rows: Sequence[Row]) -> set[str]:
    changed = set()
    for *row, text_digest in rows:
        try:
            is_whole = text_digest_of(_document(index, row).text) == text_digest  # else it has another text's vector
        except LibraryDamaged:
            is_whole = False
        if not is_whole:
            changed.add(row[0])
    return changed


async def damage_of(connection: AsyncConnection, index: InForce, model: str, key: bytes) -> list[tuple[str, str]]:
    """Documents of the index, each with what is wrong with it or with its vector by the model."""
    digests = index.digests or {}
    there = {document_id for (document_id,) in await connection.rows(_SQL["ids"], index.place)}
    changed = await changed_documents(connection, index)
    found = [(document_id, "it is missing") for document_id in sorted(digests.keys() - there)]
    found += [(document_id, "no event names it, it was added") for document_id in sorted(there - digests.keys())]
    found += [
        (document_id, "it is not as the log has it; write it again, or delete it")
        for document_id in sorted(changed & digests.keys())
    ]
    ((layout,),) = await connection.rows(_SQL["layout"])
    if layout < LAYOUT_OF_SEALS:  # its vectors are sealed by the next start
        return found
    async with aclosing(connection.portions(_SQL["all_vectors"], (*index.place, model))) as portions:
        async for rows in portions:
            found += [
                (document_id, "its vector was changed; write it again")  # one that is missing is made by the server
                for document_id, text_digest, vector, checksum in rows
                if vector is not None and seal_of(key, text_digest, model, vector) != checksum
            ]
    return found


def seal_of(key: bytes, text_digest: str, model: str, vector: bytes) -> int:
    """Proves that the vector was written here, for this text and by this model."""
    seal = blake2b(f"{text_digest} {model} ".encode(), key=key, digest_size=SEAL_BYTES)
    seal.update(vector)
    return int.from_bytes(seal.digest(), signed=True)


def _seal_of_graph(key: bytes, index_id: str, graph: SavedGraph) -> str:
    return blake2b(json_text([index_id, *graph]).encode(), key=key, digest_size=SEAL_BYTES).hexdigest()


async def _take_over_layout_1(connection: AsyncConnection, indices: Mapping[str, Expected], key: bytes) -> None:
    """In the first layout a document had its vector itself, and nothing said which generation was staged last."""
    await _execute_all(
        connection, "create_vectors", "create_generations", "from_1_graphs", "create_graphs", "from_1_by_text"
    )
    for text_digest, model, vector in await connection.rows(_SQL["from_1_vectors"]):
        await _keep(connection, Embedded(model, {text_digest: vector}), key)
    for index_id, each in indices.items():
        await connection.rows(_SQL["set_staged"], (index_id, each.generation))
    await _execute_all(
        connection, "from_1_settled", "from_1_model", "from_1_vector", "create_by_text", "create_vectors_deleted"
    )


async def _take_over_layout_2(connection: AsyncConnection, key: bytes) -> None:
    """In the second layout a vector had a plain checksum, and the file of a graph a plain digest."""
    await connection.rows(_SQL["from_2_graphs"])
    after = 0
    while rows := await connection.rows(_SQL["from_2_vectors"], (after, PORTION_ROWS)):
        sealed = (
            (seal_of(key, text_digest, model, vector), row)
            for row, text_digest, model, vector, checksum in rows
            if crc32(vector) == checksum
        )
        await connection.execute_many(_SQL["from_2_seal"], sealed)
        after = rows[-1][0]


async def _take_over_layout_3(connection: AsyncConnection) -> None:
    """In the third layout the index of words had the texts as they are; ``make_words`` does the rest meanwhile."""
    await _execute_all(connection, "from_3_words", "from_3_added", "from_3_deleted", "from_3_index")
    await _execute_all(connection, "create_indexed_texts", *(name for name in _SQL if name.startswith("create_words")))
    await connection.rows(_SQL["make_words"])


async def make_words(connection: AsyncConnection, after: int) -> int | None:
    """Index texts behind a row as this version does it, where they are not; gives the last row, None at the end."""
    rows = await connection.rows(_SQL["words_behind"], (after, PORTION_ROWS))
    if wrong := await asyncio.to_thread(_other_words, rows):
        async with connection.transaction():
            await connection.execute_many(_SQL["set_words"], wrong)
        await connection.truncate_wal()
    return rows[-1][0] if rows else None


async def count_without_words(connection: AsyncConnection) -> int:
    """How many texts are indexed as an earlier layout did it; all of them, if the file is of such a layout."""
    ((layout,),) = await connection.rows(_SQL["layout"])
    ((count,),) = await connection.rows(_SQL["count_texts" if layout < LAYOUT else "count_without_words"])
    return int(count)


def _other_words(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return [(made, row) for row, text, words in rows if (made := _words_of(text)) != words]


def _words_of(text: str) -> str:
    made = indexed(text)
    return made if made != text else ""


async def _execute_all(connection: AsyncConnection, *names: str) -> None:
    for name in names:
        await connection.rows(_SQL[name])


async def stage(connection: AsyncConnection, staging: Staging, key: bytes) -> None:
    """Write what will show in the generation; what an earlier change staged that never came into force goes."""
    async with connection.transaction():
        await _sweep(connection, staging.index_id, staging.current)
        await connection.rows(_SQL["set_staged"], (staging.index_id, staging.generation))
        if staging.removed is None:
            await connection.rows(_SQL["remove_all"], (staging.generation, staging.index_id))
        written = [version.document.id for version in staging.added]
        replaced = json_text([*(staging.removed or ()), *written])
        await connection.rows(_SQL["remove"], (staging.generation, staging.index_id, replaced))
        await connection.execute_many(_SQL["add"], await asyncio.to_thread(_rows_of, staging))
        if staging.embedded is not None:
            await _keep(connection, staging.embedded, key)


def _rows_of(staging: Staging) -> list[Row]:
    rows = []
    for each in staging.added:
        document = each.document
        what = (staging.index_id, document.id, staging.generation, staging.at, each.text_digest)
        texts = (each.salt, each.digest, json_text(document.metadata), document.text, _words_of(document.text))
        rows.append((*what, *texts))
    return rows


async def settle(connection: AsyncConnection, index_id: str, generation: int) -> None:
    """The generation is in force: delete what was removed, from the files too."""
    async with connection.transaction():
        await _delete_removed(connection, index_id, generation)
    await connection.truncate_wal()


async def name_graphs(connection: AsyncConnection, saved: Mapping[str, SavedGraph], key: bytes) -> None:
    """These graphs are of the vectors that the store has: no row gets another text, and no row's number comes again."""
    async with connection.transaction():
        rows = [(index_id, *graph, _seal_of_graph(key, index_id, graph)) for index_id, graph in saved.items()]
        await connection.execute_many(_SQL["set_graph"], rows)


async def saved_graphs(connection: AsyncConnection, key: bytes) -> dict[str, SavedGraph]:
    """The graphs that were saved, by the ids of their indices; one that is not named as it was is left out."""
    found = {index_id: (SavedGraph(*graph), seal) for index_id, *graph, seal in await connection.rows(_SQL["graphs"])}
    return {
        index_id: graph for index_id, (graph, seal) in found.items() if seal == _seal_of_graph(key, index_id, graph)
    }


async def embedded(
    connection: AsyncConnection, model: str, text_digests: Sequence[str], key: bytes
) -> dict[str, bytes]:
    """The vectors of those texts that the model embedded before; one that is not as it was written is left out."""
    found = await connection.rows(_SQL["embedded"], (model, json_text(text_digests)))
    return await asyncio.to_thread(_whole, found, model, key)


def _whole(found: Sequence[Row], model: str, key: bytes) -> dict[str, bytes]:
    return {
        text_digest: vector
        for text_digest, vector, checksum in found
        if seal_of(key, text_digest, model, vector) == checksum
    }


async def keep(connection: AsyncConnection, made: Embedded, key: bytes) -> None:
    """Keep vectors of texts that documents have."""
    async with connection.transaction():
        await _keep(connection, made, key)


async def _keep(connection: AsyncConnection, made: Embedded, key: bytes) -> None:
    await connection.execute_many(_SQL["keep_vector"], await asyncio.to_thread(_sealed, made, key))


def _sealed(made: Embedded, key: bytes) -> list[Row]:
    return [
        (text_digest, made.model, vector, seal_of(key, text_digest, made.model, vector))
        for text_digest, vector in made.vectors.items()
    ]


async def _sweep(connection: AsyncConnection, index_id: str, current: int) -> None:
    """Undo what never came into force, and end what a change that did left undone."""
    await connection.rows(_SQL["drop_unnamed"], (index_id, current))
    await connection.rows(_SQL["keep_unnamed"], (index_id, current))
    await _delete_removed(connection, index_id, current)


async def _delete_removed(connection: AsyncConnection, index_id: str, generation: int) -> None:
    await connection.rows(_SQL["settle"], (index_id, generation))
    await connection.rows(_SQL["set_settled"], (index_id, generation))


# -- reading, each by statements of their own: what a generation shows does not change, until it is over


@asynccontextmanager
async def in_force(connection: AsyncConnection, index: InForce) -> AsyncIterator[None]:
    """What is read inside has the generation whole. Raises ``StalePosition`` at its end if that is over by then."""
    yield
    _refuse_if_over(index, await connection.rows(_SQL["settled"], (index.index_id,)))


def _refuse_if_over(index: InForce, settled: Sequence[Row]) -> None:
    if any(generation > index.generation for (generation,) in settled):
        raise StalePosition(f"The generation {index.generation} of {index.index_id!r} is over.")


async def document(connection: AsyncConnection, index: InForce, document_id: str) -> Document | None:
    """One document, None if there is none."""
    async with in_force(connection, index):
        rows = await connection.rows(_SQL["document"], (index.index_id, document_id, index.generation))
    for row in rows:
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


async def page(connection: AsyncConnection, index: InForce, span: Span) -> Listed:
    """Documents in their order."""
    async with in_force(connection, index):
        rows = await connection.rows(_SQL["page"], (*index.place, span.after, span.limit, span.offset))
        ((before, count),) = await connection.rows(_SQL["before"], (*index.place, span.after))
    _check_count(index, count)
    found = await asyncio.to_thread(lambda: [_document(index, row[:-1]) for row in rows])
    return Listed(found, before + span.offset, rows[-1][-1] if rows else span.after)


async def text_bytes(connection: AsyncConnection, index: InForce) -> int:
    """The size of all texts."""
    async with in_force(connection, index):
        ((size,),) = await connection.rows(_SQL["size"], index.place)
    return int(size)


async def unembedded(connection: AsyncConnection, index: InForce, model: str, limit: int) -> list[str]:
    """Texts of an index that the model has not embedded. Raises ``LibraryDamaged``."""
    async with in_force(connection, index):
        found = await connection.rows(_SQL["unembedded"], (*index.place, model, limit))
    if await asyncio.to_thread(_has_other_texts, found):  # their vectors would find no text
        raise LibraryDamaged(f"Documents of the index {index.index_id!r} are not as they were written.")
    return [text for text, _ in found]


def _has_other_texts(found: Sequence[Row]) -> bool:
    return any(text_digest_of(text) != text_digest for text, text_digest in found)


async def count_unembedded(connection: AsyncConnection, index: InForce, model: str) -> int:
    """How many documents of an index have texts that the model has not embedded."""
    async with in_force(connection, index):
        ((count,),) = await connection.rows(_SQL["count_unembedded"], (*index.place, model))
    return int(count)


# -- searching, in a thread of its own: with a thread's switch between two statements a search is a fifth slower


@contextmanager
def snapshot(connection: Connection, index: InForce) -> Iterator[None]:
    """What is read inside is of one state, which has the generation whole. Raises ``StalePosition`` if that is over."""
    connection.execute("BEGIN")
    try:
        _refuse_if_over(index, connection.execute(_SQL["settled"], (index.index_id,)).fetchall())
        yield
    finally:
        connection.execute("COMMIT")


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
    import numpy as np

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


# -- documents


def _document(index: InForce, row: Sequence[Any]) -> Document:
    """The document of a row, whose digest is that which the log has. Raises ``LibraryDamaged``."""
    document_id, text, metadata, salt, digest = row
    logged = digest if index.digests is None else index.digests.get(document_id)
    try:
        document = Document(document_id, text, orjson.loads(metadata))
        if digest_of(salt, document) == logged:
            return document
    except (ValueError, TypeError):
        pass
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
    import numpy as np

    rows: Rows = np.fromiter((row for (row,) in found), dtype=np.int64)
    rows.sort()
    return rows


def _kinds(value: Any) -> tuple[str, str]:
    """The JSON types of SQLite that such a value has."""
    if isinstance(value, bool) or value is None:
        name = {True: "true", False: "false", None: "null"}[value]
        return name, name
    return ("text", "text") if isinstance(value, str) else ("integer", "real")
