"""The library of one tenant: indices of documents, which are changed one after the other and searched at any time.

A change goes this way: what the index is now → vectors of the new texts → staged in the store, unseen → the fact, which
names the generation → what it replaced is deleted. A crash before the fact leaves the old documents, after it the new.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

import orjson
import structlog
from msgspec import Struct
from msgspec.structs import replace as struct_replace

from organism.errors import (
    Fault,
    FileUnreadable,
    InvalidField,
    LibraryDamaged,
    LibraryUnavailable,
    LogDamaged,
    NotFound,
    OrganismError,
    PreviewStale,
    StalePosition,
    Stopping,
)
from organism.events import vocabulary as events
from organism.events.record import Actor, Record
from organism.model import words
from organism.model.commands import HOST_PROGRAM, Idempotency
from organism.model.ids import stream_of_index
from organism.model.redact import Redactor
from organism.rag import documents, store
from organism.rag.digests import Digests, LoggedDigests
from organism.rag.documents import Document, Filter
from organism.rag.files import MOST_NAME_BYTES, Kind, Unreadable, is_file_name, prefix_of
from organism.rag.index import Graphs
from organism.rag.isolated_reader import read_pieces
from organism.rag.question import Hit, Mode, Question
from organism.rag.store import Damage, Expected, InForce, Listed, Span, Staging, Store, Version
from organism.sqlite.driver import Connection
from organism.views.library import INDICES, LibraryIndex, StoredIndex
from organism.views.views import Query, ViewStore, all_rows, rows_of

if TYPE_CHECKING:
    from organism.rag.search import Searcher
    from organism.rag.vectors import Vector

_log = structlog.get_logger("organism")
T = TypeVar("T")
EMBEDDED_AT_ONCE: Final = 16
"""How many texts the background embeds at once: after each portion the progress is shown, and survives a crash."""
LONGEST_PAUSE_SECONDS: Final = 60


class Embedded(Protocol):
    """Texts as vectors."""

    @property
    def vectors(self) -> Iterable[Vector]:
        """A vector for each text."""


class Embeddings(Protocol):
    """Makes vectors of texts, by the models that the configuration names."""

    @property
    def default(self) -> str:
        """The model of an index that names none."""

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        """A vector for each text. Raises ``InvalidField`` if there is no such model, ``Upstream``."""


class Recorder(Protocol):
    """Writes facts to the tenant's log, and reads them."""

    @property
    def library_key(self) -> bytes:
        """The key that seals what the library stores and the log does not."""

    async def facts(self, stream: str, after: int) -> Sequence[Record[events.Event]]:
        """Facts of a stream after a position, in order; none once there are no more."""

    async def settled(self) -> None:
        """Return once everything that was decided is on disk, or lost."""

    async def answered(self, once: Idempotency) -> bool:
        """Whether what the key names was done."""

    async def record(self, stream: str, fact: events.Event, by: By) -> None:
        """Write the fact, and that the key was used. Raises an ``OrganismError``."""


@dataclass(frozen=True, slots=True)
class By:
    """Who changes the library: an actor, or the handling of the message ``cause``; and under which idempotency key.

    With a ``version`` the change is refused if that is no longer the current one: see ``Library.version``.
    """

    actor: Actor = HOST_PROGRAM
    once: Idempotency | None = None
    cause: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Embedding:
    """How far an index is embedded: how many of its documents have vectors by its model, and what failed last."""

    index_id: str
    embedding_model: str
    doc_count: int
    embedded: int
    error: str | None


class File(NamedTuple):
    """A file that is to become documents."""

    name: str
    kind: Kind
    data: bytes


class Work(Struct, frozen=True):
    """What goes on in the background: how many of an index's documents have vectors by its model, or by a new one."""

    kind: Literal["embed", "reembed"]
    done: words.Count
    total: words.Count


OnWork = Callable[[str], None]
"""Called with the id of an index whose work has moved."""


class Library:
    """One tenant's."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        files: Store,
        views: ViewStore,
        embeddings: Embeddings,
        *,
        graphs: Graphs,
        recorder: Recorder,
        head: Callable[[], int],
        now_us: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        redactor: Redactor,
    ) -> None:
        self._store = files
        self._views = views
        self._embeddings = embeddings
        self._recorder = recorder
        self._head = head
        self._now_us = now_us
        self._random_bytes = random_bytes
        self._redactor = redactor
        self._graphs = graphs
        self._key = recorder.library_key
        self._logged = LoggedDigests(recorder.facts)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._damage = ""
        self._is_closed = False
        self._incomplete: set[str] = set()
        self._altered: dict[str, set[str]] = {}
        self._background: set[asyncio.Future[None]] = set()
        self._unembedded: dict[str, None] = {}
        self._is_waiting = asyncio.Event()
        self._embedding: set[str] = set()
        self._reembedding: dict[str, str] = {}  # by the model that an index is to have
        self._subscribers: dict[OnWork, None] = {}
        self._failures: dict[str, tuple[int, str]] = {}  # how often embedding failed in a row, and why the last time

    @cached_property
    def _searcher(self) -> Searcher:
        """Made in the searching thread; without an index by the first search, since numpy takes 0.2 s and 15 MB."""
        from organism.rag.search import Searcher

        return Searcher(self._graphs, self._key)

    async def open(self) -> None:
        """Make the store ready, and drop what no fact names. A damaged one refuses every call."""
        indices: dict[str, Expected] = {}
        try:
            for row in await self._indices():
                digests = await self._logged.of(row)
                indices[row.public.id] = Expected(row.private.generation, row.public.embedding_model, digests)
            found: Damage = await self._store.write(store.open_tables, indices, self._key)
            self._incomplete, self._altered = set(found.incomplete), dict(found.changed)
            saved = await self._store.read(store.saved_graphs, self._key)
            if indices:  # its import holds the interpreter's lock for 20 ms and more at a time
                await self._store.search(lambda _: self._searcher)
        except (LibraryDamaged, LibraryUnavailable, LogDamaged) as damage:
            self._damage = damage.message
        else:
            fitting = {
                name: each for name, each in saved.items() if name in indices and each.model == indices[name].model
            }
            await asyncio.to_thread(self._graphs.load, fitting)
            for name in indices:
                self._embed_later(name)
        if self._damage or self._incomplete or self._altered:
            damaged = sorted({*self._incomplete, *self._altered})
            _log.error("library_damaged", error=self._damage, indices=damaged)

    def start(self) -> None:
        """Begin what runs in the background, once the tenant takes commands: embedding is in its budget."""
        if not self._damage:
            self._background |= {asyncio.ensure_future(each) for each in (self._make_words(), self._embed_waiting())}

    async def close(self) -> None:
        """End what runs."""
        if self._is_closed:
            return
        self._is_closed = True
        for each in self._background:
            each.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        saved = await self._graphs.close()
        if saved:
            with suppress(OrganismError):  # they will be made again
                await self._store.write(store.name_graphs, saved, self._key)
        await self._store.close()

    async def _indices(self) -> list[StoredIndex]:
        """All indices."""
        rows = await all_rows(self._views, INDICES.name, Query(order_by="position"), LibraryIndex)
        return [await self.index(row.id) for row in rows]

    async def _make_words(self) -> None:
        """Index again the texts that an earlier version indexed; searches go on meanwhile."""
        try:
            if count := await self._store.read(store.count_without_words):
                _log.info("library_words_begun", documents=count)
            after: int | None = 0
            while after is not None:
                after = await self._store.write(store.make_words, after)
            if count:
                _log.info("library_words_made", documents=count)
        except (LibraryDamaged, LibraryUnavailable) as error:  # the next start goes on
            _log.warning("library_words_not_made", error=str(error))

    def _embed_later(self, index_id: str) -> None:
        """Have the background embed what the index has without vectors."""
        self._unembedded[index_id] = None
        self._embedding.add(index_id)
        self._is_waiting.set()

    async def _embed_waiting(self) -> None:
        """Embed what is waiting, one index after the other; one that fails is tried again after a growing pause."""
        loop = asyncio.get_running_loop()
        while await self._is_waiting.wait():
            if not self._unembedded:
                self._is_waiting.clear()
                continue
            index_id = next(iter(self._unembedded))
            del self._unembedded[index_id]  # what comes from now on makes it wait again
            try:
                model = (await self.index(index_id)).public.embedding_model
                await self._embed_all(index_id, model, EMBEDDED_AT_ONCE)
            except (NotFound, LibraryDamaged):  # reported to those who ask for it
                self._embedded_all(index_id)
            except Exception as error:  # noqa: BLE001 - of whatever kind: the other indices wait for this task
                before, _ = self._failures.get(index_id, (0, ""))
                message = error.message if isinstance(error, OrganismError) else f"{type(error).__name__}: {error}"
                self._failures[index_id] = before + 1, message
                pause = min(1 << min(before, 6), LONGEST_PAUSE_SECONDS)
                _log.warning("library_not_embedded", index=index_id, error=message, again_in_seconds=pause)
                loop.call_later(pause, self._embed_later, index_id)
            else:
                self._embedded_all(index_id)

    def _embedded_all(self, index_id: str) -> None:
        """The background has nothing to embed in the index, unless more has come meanwhile."""
        self._failures.pop(index_id, None)
        if index_id not in self._unembedded:
            self._embedding.discard(index_id)
        self._work_moved(index_id)

    def subscribe(self, on_work: OnWork) -> None:
        """Call ``on_work`` whenever the work of an index has moved."""
        self._subscribers[on_work] = None

    def unsubscribe(self, on_work: OnWork) -> None:
        """Stop calling ``on_work``."""
        self._subscribers.pop(on_work, None)

    def _work_moved(self, index_id: str) -> None:
        for on_work in list(self._subscribers):
            on_work(index_id)

    # -- reading

    async def work(self, index: LibraryIndex) -> Work | None:
        """What goes on in the background for the index; None if nothing does, or its documents cannot be read."""
        kind: Literal["embed", "reembed"] = "reembed" if index.id in self._reembedding else "embed"
        model = self._reembedding.get(index.id, index.embedding_model)
        if kind == "embed" and index.id not in self._embedding:
            return None
        try:
            missing = await self._read(index.id, lambda in_force: (store.count_unembedded, in_force, model))
        except (NotFound, LibraryDamaged, LibraryUnavailable):
            return None
        return Work(kind, max(0, index.doc_count - missing), index.doc_count) if missing or kind == "reembed" else None

    async def embedding(self, index_id: str) -> Embedding:
        """How far the index is embedded. Raises ``NotFound``."""
        row = await self.index(index_id)
        model, count = row.public.embedding_model, row.public.doc_count
        missing = await self._read(index_id, lambda index: (store.count_unembedded, index, model))
        _, error = self._failures.get(index_id, (0, None)) if missing else (0, None)
        return Embedding(index_id, model, count, max(0, count - missing), error)

    async def index(self, index_id: str) -> StoredIndex:
        """The index, with its generation. Raises ``NotFound``."""
        row = await self._views.private_row(INDICES, index_id)
        if row is None:
            raise NotFound(f"There is no index {index_id[:140]!r}.")
        return row

    async def indices(self, offset: int, limit: int) -> tuple[list[LibraryIndex], int]:
        """Indices as the API shows them, oldest first, and how many there are."""
        page = await self._views.rows(INDICES.name, Query(order_by="position", offset=offset, limit=limit))
        return rows_of(page, LibraryIndex), page.total

    async def document(self, index_id: str, document_id: str) -> Document:
        """One document. Raises ``NotFound``."""
        found: Document | None = await self._read(index_id, lambda index: (store.document, index, document_id))
        if found is None:
            raise NotFound(f"There is no document {document_id[:140]!r} in the index {index_id!r}.")
        return found

    async def documents(self, index_id: str, span: Span) -> tuple[Listed, int]:
        """Documents of the index in their order, and how many there are in all. Raises ``NotFound``."""
        count = 0

        def asked(index: InForce) -> tuple[Any, ...]:
            nonlocal count
            count = len(index.digests or ())
            return store.page, index, span

        return await self._read(index_id, asked), count

    async def digests(self, index_id: str, ids: Sequence[str]) -> dict[str, str]:
        """The digest of each of these documents that there is; none, if there is no such index."""
        try:
            known = await self._digests(index_id)
        except NotFound:
            return {}
        return {document_id: known[document_id] for document_id in ids if document_id in known}

    async def version(self, index_id: str, ids: Sequence[str] | None = None) -> str:
        """Changes whenever one of these documents does; with None, whenever anything in the index does."""
        if ids is not None:
            return hashlib.sha256(orjson.dumps(sorted((await self.digests(index_id, ids)).items()))).hexdigest()
        row = await self._views.private_row(INDICES, index_id)
        return f"generation {row.private.generation}" if row is not None else "none"

    async def text_bytes(self, index_id: str) -> int:
        """The size of all texts of the index. Raises ``NotFound``."""
        size: int = await self._read(index_id, lambda index: (store.text_bytes, index))
        return size

    async def query(self, index_id: str, text: str, top_k: int, mode: Mode, wanted: Filter) -> tuple[list[Hit], str]:
        """The best hits, the best first, and the model that the index is of. Raises ``NotFound``, ``InvalidField``."""
        documents.check_query(text, wanted)
        model, vector = "", None
        while True:
            row = await self.index(index_id)
            if mode != "keyword" and row.public.embedding_model != model:
                model = row.public.embedding_model
                (vector,) = (await self._embeddings.embed(model, [text])).vectors
            try:
                question = Question(await self._in_force(row), mode, text, model, vector, top_k, wanted)
                if index_id in self._altered:  # a search cannot tell what it misses
                    raise LibraryDamaged(store.changed_message(min(self._altered[index_id])))
                return await self._store.search(self._found, question), row.public.embedding_model
            except StalePosition:
                continue

    def _found(self, connection: Connection, question: Question) -> list[Hit]:
        return self._searcher.search(connection, question)

    async def _read(self, index_id: str, asked: Callable[[InForce], tuple[Any, ...]]) -> Any:
        """A read of the store as of the generation in force: ``asked`` gives the function and its arguments."""
        while True:
            row = await self.index(index_id)
            try:
                return await self._store.read(*asked(await self._in_force(row)))
            except StalePosition:  # a change came into force meanwhile
                continue

    async def _in_force(self, row: StoredIndex) -> InForce:
        """The index as of its row. Raises ``StalePosition`` if it was changed since that, ``LibraryDamaged``."""
        self._refuse_if_damaged()
        if row.public.id in self._incomplete:
            raise LibraryDamaged(
                f"Documents of the index {row.public.id!r} are missing. Replace all of them, or delete it."
            )
        return InForce(row.public.id, row.private.generation, await self._logged.of(row))

    async def _digests(self, index_id: str) -> Digests:
        """The digests of the documents that the index has now. Raises ``NotFound``, ``LibraryDamaged``."""
        while True:
            row = await self.index(index_id)
            with suppress(StalePosition):
                return (await self._in_force(row)).digests or {}

    def _refuse_if_damaged(self) -> None:
        if self._is_closed:
            raise Stopping
        if self._damage:
            raise LibraryDamaged(self._damage)

    # -- changing

    async def replace(
        self, index_id: str, given: Sequence[Document], model: str | None, by: By, *, later: bool = False
    ) -> StoredIndex | None:
        """Make these the documents of the index, which begins if there is none. Gives the index as it then is.

        None if what the key names was done before, and the index deleted since. With ``later`` they are embedded in the
        background: see ``embedding``.
        """
        return await self._write(index_id, given, model, by, is_all=True, later=later)

    async def append(
        self, index_id: str, given: Sequence[Document], model: str | None, by: By, *, later: bool = False
    ) -> StoredIndex | None:
        """Add these documents, or put them in the place of those with their ids; the index may begin with them."""
        return await self._write(index_id, given, model, by, is_all=False, later=later)

    async def _write(  # noqa: PLR0913 - of its callers
        self, index_id: str, given: Sequence[Document], model: str | None, by: By, *, is_all: bool, later: bool
    ) -> StoredIndex | None:
        await asyncio.to_thread(self._check_new, index_id, given)
        change = partial(self._written, index_id, given, model, is_all=is_all, later=later)
        row = await self._changed(index_id, None if is_all else [each.id for each in given], by, change)
        if later:
            self._embed_later(index_id)
        return row

    def _check_new(self, index_id: str, given: Sequence[Document]) -> None:
        documents.check_id(index_id, "/index_id")
        documents.check(given)
        self._refuse_secrets([("/index_id", index_id), *documents.names_in(given)])

    def _refuse_secrets(self, names: Iterable[tuple[str, str]]) -> None:
        """Raise ``InvalidField`` for names that hold a live secret: the log would have them under other names."""
        fault = "a token or key of this server stands in a name"
        documents.refuse([Fault(place, fault) for place, name in names if self._redactor.holds_live(name)])

    async def put_file(self, index_id: str, file: File, model: str | None, by: By) -> tuple[StoredIndex | None, int]:
        """Put a file's pieces in the place of all documents that the index has of it; they are embedded later.

        Gives the index as it then is, None if there is none, and how many pieces the file has. Raises
        ``FileUnreadable``: then nothing is changed.
        """
        documents.check_id(index_id, "/index_id")
        name = file.name[:140]
        if not is_file_name(file.name):
            raise InvalidField(
                f"A file's name is 1 to {MOST_NAME_BYTES} bytes of printable text; came {name!r}.", param="query.name"
            )
        self._refuse_secrets([("/index_id", index_id), ("query.name", file.name)])
        try:
            pieces = await read_pieces(*file)
        except Unreadable as why:
            raise FileUnreadable(f"The file {name!r} was not taken: {why}.", details=(Fault("", str(why)),)) from why
        given = [Document(*piece) for piece in pieces]
        prefix = prefix_of(file.name)

        async def change(row: StoredIndex | None) -> _Change | None:
            known = await self._digests(index_id) if row is not None else {}
            gone = [each for each in known if each.startswith(prefix)]
            if not given and not gone:
                return None
            made = await self._written(index_id, given, model, row, is_all=False, later=True)
            if not isinstance(made.fact, events.DocumentsChanged):
                return made
            deleted = sorted(set(gone) - made.fact.written.keys())
            fact = struct_replace(made.fact, deleted=tuple(deleted), doc_count=made.fact.doc_count - len(deleted))
            return _Change(replace(made.staging, removed=deleted), fact)

        row = await self._changed(index_id, None, by, change)
        if row is not None:
            self._embed_later(index_id)
        return row, len(given)

    async def patch(
        self, index_id: str, document_id: str, text: str | None, metadata: Mapping[str, Any] | None, by: By
    ) -> Document:
        """Replace what is given. Raises ``NotFound``."""

        async def change(row: StoredIndex | None) -> _Change:
            old = await self.document(index_id, document_id)
            new_metadata = old.metadata if metadata is None else metadata
            new = Document(document_id, old.text if text is None else text, new_metadata)
            documents.check_one(new)
            self._refuse_secrets(documents.names_in([new], ""))
            return await self._written(index_id, [new], None, row, is_all=False, later=False)

        await self._changed(index_id, [document_id], by, change)
        return await self.document(index_id, document_id)

    async def delete_document(self, index_id: str, document_id: str, by: By) -> bool:
        """Delete one document; gives whether there was one. Raises ``NotFound`` if there is no index."""
        was_there = True  # what its key names was done

        async def change(row: StoredIndex | None) -> _Change | None:
            nonlocal was_there
            index = _there(row, index_id)
            was_there = document_id in await self._digests(index_id)
            if not was_there:
                return None
            staging = self._staging(index_id, row, removed=[document_id])
            changed = events.DocumentsChanged(
                index_id, staging.generation, index.public.doc_count - 1, deleted=(document_id,)
            )
            return _Change(staging, changed)

        await self._changed(index_id, [document_id], by, change)
        return was_there

    async def reembed(self, index_id: str, model: str, by: By) -> StoredIndex:
        """Give the index another embedding model; it is searched by the old one until all of its texts are embedded.

        Gives the index as it then is. What was embedded by a call that failed is not embedded again by the next one.
        Raises ``NotFound``, ``InvalidField``, ``Upstream``.
        """
        await self._embedded(model, ())  # there is such a model
        self._reembedding[index_id] = model
        try:
            return await self._reembedded(index_id, model, by)
        finally:
            self._reembedding.pop(index_id, None)
            self._work_moved(index_id)

    async def _reembedded(self, index_id: str, model: str, by: By) -> StoredIndex:
        await self._embed_all(index_id, model, documents.MOST_DOCUMENTS)

        async def change(row: StoredIndex | None) -> _Change | None:
            index = _there(row, index_id)
            if index.public.embedding_model == model:
                return None
            await self._embed_all(index_id, model, documents.MOST_DOCUMENTS)  # what has come meanwhile
            staging = self._staging(index_id, row)
            fact = events.DocumentsChanged(index_id, staging.generation, index.public.doc_count, embedding_model=model)
            return _Change(staging, fact)

        return _there(await self._changed(index_id, None, by, change), index_id)

    async def _embed_all(self, index_id: str, model: str, most: int) -> None:
        """Keep the model's vector of each text of the index, ``most`` at a time."""

        def asked(index: InForce) -> tuple[Any, ...]:
            return store.unembedded, index, model, most

        while texts := await self._read(index_id, asked):
            await self._store.write(store.keep, await self._embedded(model, texts), self._key)
            await self._store.search(lambda _: self._searcher.read_again(index_id))
            self._work_moved(index_id)

    async def delete_index(self, index_id: str, by: By) -> None:
        """Delete the index with its documents. Raises ``NotFound``."""

        async def change(row: StoredIndex | None) -> _Change:
            _there(row, index_id)
            staging = self._staging(index_id, row, removed=None)
            return _Change(staging, events.IndexDeleted(index_id, staging.generation))

        await self._changed(index_id, None, by, change)

    async def _written(  # noqa: PLR0913 - of its callers
        self,
        index_id: str,
        given: Sequence[Document],
        model: str | None,
        row: StoredIndex | None,
        *,
        is_all: bool,
        later: bool,
    ) -> _Change:
        """The change that writes these documents; with ``is_all``, it drops all others."""
        chosen = self._model_of(index_id, row, model, is_all=is_all)
        versions, embedded = await self._versions(chosen, given, later=later)
        written = {each.document.id: each.digest for each in versions}
        staging = self._staging(index_id, row, removed=None if is_all else ())
        staging = replace(staging, added=versions, embedded=embedded)
        generation = staging.generation
        if row is None:
            return _Change(staging, events.IndexCreated(index_id, generation, chosen, written))
        if is_all:
            other = chosen if chosen != row.public.embedding_model else ""
            said = events.DocumentsChanged(
                index_id, generation, len(written), written, replaced=True, embedding_model=other
            )
            return _Change(staging, said)
        there = await self._digests(index_id)
        count = row.public.doc_count + sum(document_id not in there for document_id in written)
        return _Change(staging, events.DocumentsChanged(index_id, generation, count, written))

    def _model_of(self, index_id: str, row: StoredIndex | None, model: str | None, *, is_all: bool) -> str:
        """The model of an index is that of its first documents. Raises ``InvalidField``."""
        pinned: str | None = row.public.embedding_model if row is not None else None
        if pinned is not None and model not in {None, pinned} and not is_all:
            raise InvalidField(
                f"The index is of the embedding model {pinned!r}; came {model!r}. `POST …/{index_id}/reembed` gives it "
                "another.",
                param="/embedding_model",
            )
        return model or pinned or self._embeddings.default

    async def _versions(
        self, model: str, given: Sequence[Document], *, later: bool
    ) -> tuple[list[Version], store.Embedded]:
        """The documents, and the vectors of their texts; what the model embedded before is not embedded again.

        With ``later`` the others have none yet.
        """
        self._refuse_if_damaged()
        clean = await asyncio.to_thread(self._concealed, given)
        digests = await asyncio.to_thread(lambda: {each.text: documents.text_digest_of(each.text) for each in clean})
        known = await self._store.read(store.embedded, model, list(digests.values()), self._key)
        new = [text for text, digest in digests.items() if digest not in known]
        known |= (await self._embedded(model, [] if later else new)).vectors
        salts = [self._random_bytes(documents.SALT_BYTES) for _ in clean]
        sealed = await asyncio.to_thread(lambda: list(map(documents.digest_of, salts, clean)))
        versions = [
            Version(each, salt, digest, digests[each.text])
            for each, salt, digest in zip(clean, salts, sealed, strict=True)
        ]
        return versions, store.Embedded(model, known)

    async def _embedded(self, model: str, texts: Sequence[str]) -> store.Embedded:
        """The model's vectors of the texts."""
        vectors = (await self._embeddings.embed(model, texts)).vectors
        made = (vector.astype("<f4").tobytes() for vector in vectors)
        return store.Embedded(model, dict(zip(map(documents.text_digest_of, texts), made, strict=True)))

    def _concealed(self, given: Sequence[Document]) -> list[Document]:
        """The documents without this installation's live secrets."""
        mask, mask_bytes = self._redactor.masked, self._redactor.masked_bytes
        return [
            Document(each.id, mask(each.text), orjson.loads(mask_bytes(orjson.dumps(each.metadata)))) for each in given
        ]

    def _staging(self, index_id: str, row: StoredIndex | None, *, removed: Sequence[str] | None = ()) -> Staging:
        current = row.private.generation if row is not None else 0
        return Staging(index_id, current, self._head() + 1, self._now_us(), removed=removed)

    async def _changed(
        self,
        index_id: str,
        ids: Sequence[str] | None,
        by: By,
        change: Callable[[StoredIndex | None], Awaitable[_Change | None]],
    ) -> StoredIndex | None:
        """Change the index, or these documents of it, as ``change`` says; what its key names is done once.

        Changes are made one after the other. Raises ``PreviewStale`` if it was made for another version than the
        current one.
        """
        lock = self._locks.setdefault(index_id, asyncio.Lock())
        async with lock:
            await self._recorder.settled()  # an earlier change, whose caller has left, may not be on disk yet
            if by.once is None or not await self._recorder.answered(by.once):
                if by.version and by.version != await self.version(index_id, ids):
                    raise PreviewStale
                made = await change(await self._views.private_row(INDICES, index_id))
                if made is not None:
                    await store.to_its_end(self._put_in_force(index_id, made, by))
            return await self._views.private_row(INDICES, index_id)

    async def _put_in_force(self, index_id: str, made: _Change, by: By) -> None:
        """Stage the change, write its fact, and delete what it replaced."""
        self._refuse_if_damaged()
        await self._store.write(store.stage, made.staging, self._key)
        await self._recorder.record(stream_of_index(index_id), made.fact, by)
        await self._settle(index_id, made.staging.generation)
        if made.staging.removed is None:
            self._incomplete.discard(index_id)
        self._forget_changed(index_id, made.staging)
        if isinstance(made.fact, events.IndexDeleted):
            self._logged.forget(index_id)
            await self._store.search(lambda _: self._searcher.forget(index_id))

    def _forget_changed(self, index_id: str, staging: Staging) -> None:
        """A damaged document was replaced or deleted."""
        changed = self._altered.get(index_id, set())
        changed -= {*(staging.removed or ()), *(each.document.id for each in staging.added)}
        if not changed or staging.removed is None:
            self._altered.pop(index_id, None)

    async def _settle(self, index_id: str, generation: int) -> None:
        """Delete what the generation replaced; if that fails, the next change does it, or the next start."""
        try:
            await self._store.write(store.settle, index_id, generation)
        except OrganismError as error:
            _log.warning("library_not_settled", index=index_id, error=str(error))


@dataclass(frozen=True, slots=True)
class _Change:
    staging: Staging
    fact: events.Event


def _there(row: StoredIndex | None, index_id: str) -> StoredIndex:
    if row is None:
        raise NotFound(f"There is no index {index_id[:140]!r}.")
    return row
