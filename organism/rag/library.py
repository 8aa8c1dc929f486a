"""The library of one tenant: indices of documents, which are changed one after the other and searched at any time.

A change goes this way: what the index is now → vectors of the new texts → staged in the store, unseen → the fact, which
names the generation → what it replaced is deleted. A crash before the fact leaves the old documents, after it the new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import orjson
import structlog

from organism.errors import (
    InvalidField,
    LibraryDamaged,
    LibraryUnavailable,
    NotFound,
    OrganismError,
    StalePosition,
    Stopping,
)
from organism.events.record import Actor
from organism.events.vocabulary import DocumentsChanged, Event, IndexCreated, IndexDeleted
from organism.model.commands import HOST_PROGRAM, Idempotency
from organism.model.ids import stream_of_index
from organism.model.redact import Redactor
from organism.rag import documents, store
from organism.rag.documents import Document, Filter
from organism.rag.index import Graphs
from organism.rag.search import Hit, Mode, Question, Searcher
from organism.rag.store import InForce, Listed, Matrix, Span, Staging, Store, Version
from organism.views.views import Query, Row, ViewStore

MOST_INDICES_READ: Final = 500
_MODEL: Final = "indices"
_log = structlog.get_logger("organism")
T = TypeVar("T")


class Embedded(Protocol):
    """Texts as vectors."""

    @property
    def vectors(self) -> Matrix:
        """A vector for each text."""


class Embeddings(Protocol):
    """Makes vectors of texts, by the models that the configuration names."""

    @property
    def default(self) -> str:
        """The model of an index that names none."""

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        """A vector for each text. Raises ``InvalidField`` if there is no such model, ``Upstream``."""


class Recorder(Protocol):
    """Writes facts to the tenant's log."""

    async def settled(self) -> None:
        """Return once everything that was decided is on disk, or lost."""

    async def answered(self, once: Idempotency) -> bool:
        """Whether what the key names was done."""

    async def record(self, stream: str, fact: Event, actor: Actor, once: Idempotency | None) -> None:
        """Write the fact, and that the key was used. Raises an ``OrganismError``."""


@dataclass(frozen=True, slots=True)
class By:
    """Who changes the library, and under which idempotency key, if any."""

    actor: Actor = HOST_PROGRAM
    once: Idempotency | None = None


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
        self._searcher = Searcher(graphs)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._damage = ""
        self._is_closed = False
        self._incomplete: set[str] = set()

    async def open(self) -> None:
        """Make the store ready, and drop what no fact names. A damaged one refuses whatever is asked of it."""
        indices = await self._indices()
        generations = {row["id"]: row["_generation"] for row in indices}
        try:
            counts = await self._store.write(store.open_tables, generations)
            saved = await self._store.read(store.saved_graphs)
        except (LibraryDamaged, LibraryUnavailable) as damage:
            self._damage = damage.message
        else:
            self._incomplete = {row["id"] for row in indices if counts.get(row["id"], 0) != row["doc_count"]}
            await asyncio.to_thread(self._graphs.load, {each: saved[each] for each in generations if each in saved})
        if self._damage or self._incomplete:
            _log.error("library_damaged", error=self._damage, indices=sorted(self._incomplete))

    async def close(self) -> None:
        """End what runs."""
        if self._is_closed:
            return
        self._is_closed = True
        saved = await self._graphs.close()
        if saved:
            with suppress(OrganismError):  # they will be made again
                await self._store.write(store.name_graphs, saved)
        await self._store.close()

    async def _indices(self) -> list[Row]:
        """All that there are."""
        found: list[Row] = []
        page = await self._views.rows(_MODEL, Query(order_by="position", limit=MOST_INDICES_READ))
        while page.count:
            found += [await self.index(row["id"]) for row in orjson.loads(page.rows)]
            page = await self._views.rows(_MODEL, Query(order_by="position", limit=MOST_INDICES_READ, after=page.last))
        return found

    # -- reading

    async def index(self, index_id: str) -> Row:
        """The index, with its generation. Raises ``NotFound``."""
        row = await self._views.private_row(_MODEL, index_id)
        if row is None:
            raise NotFound(f"There is no index {index_id[:140]!r}.")
        return row

    async def indices(self, offset: int, limit: int) -> tuple[list[Row], int]:
        """Indices as the API shows them, oldest first, and how many there are."""
        page = await self._views.rows(_MODEL, Query(order_by="position", offset=offset, limit=limit))
        return orjson.loads(page.rows), page.total

    async def document(self, index_id: str, document_id: str) -> Document:
        """One document. Raises ``NotFound``."""
        found: Document | None = await self._read(index_id, lambda row: (store.document, _in_force(row), document_id))
        if found is None:
            raise NotFound(f"There is no document {document_id[:140]!r} in the index {index_id!r}.")
        return found

    async def documents(self, index_id: str, span: Span) -> tuple[Listed, int]:
        """Documents of the index in their order, and how many there are in all. Raises ``NotFound``."""
        count = 0

        def asked(row: Row) -> tuple[Any, ...]:
            nonlocal count
            count = row["doc_count"]
            return store.page, _in_force(row), span

        return await self._read(index_id, asked), count

    async def present(self, index_id: str, ids: Sequence[str]) -> set[str]:
        """Which of these documents there are; none, if there is no such index."""
        try:
            found: set[str] = await self._read(index_id, lambda row: (store.present, _in_force(row), ids))
        except NotFound:
            return set()
        return found

    async def text_bytes(self, index_id: str) -> int:
        """The size of all texts of the index. Raises ``NotFound``."""
        size: int = await self._read(index_id, lambda row: (store.text_bytes, _in_force(row)))
        return size

    async def query(self, index_id: str, text: str, top_k: int, mode: Mode, wanted: Filter) -> tuple[list[Hit], str]:
        """The best hits, the best first, and the model that the index is of. Raises ``NotFound``, ``InvalidField``."""
        documents.check_query(text, wanted)
        model, vector = "", None
        while True:
            row = await self.index(index_id)
            if mode != "keyword" and row["embedding_model"] != model:
                model = row["embedding_model"]
                vector = (await self._embeddings.embed(model, [text])).vectors[0]
            question = Question(_in_force(row), mode, text, vector, top_k, wanted)
            try:
                return await self._in_store(index_id, self._searcher.search, question), row["embedding_model"]
            except StalePosition:
                continue

    async def _read(self, index_id: str, asked: Callable[[Row], tuple[Any, ...]]) -> Any:
        """A read of the store as of the generation in force: ``asked`` gives the function and its arguments."""
        while True:
            row = await self.index(index_id)
            try:
                return await self._in_store(index_id, *asked(row))
            except StalePosition:  # a change came into force meanwhile
                continue

    async def _in_store(self, index_id: str, work: Callable[..., T], *arguments: Any) -> T:
        self._refuse_if_damaged()
        if index_id in self._incomplete:
            raise LibraryDamaged(f"Documents of the index {index_id!r} are missing. Replace all of them, or delete it.")
        return await self._store.read(work, *arguments)

    def _refuse_if_damaged(self) -> None:
        if self._is_closed:
            raise Stopping
        if self._damage:
            raise LibraryDamaged(self._damage)

    # -- changing

    async def replace(self, index_id: str, given: Sequence[Document], model: str | None, by: By) -> Row:
        """Make these the documents of the index, which begins if there is none. Gives the index as it then is."""
        documents.check_id(index_id, "/index_id")
        await asyncio.to_thread(documents.check, given)
        return await self._changed(index_id, by, lambda row: self._written(row, index_id, given, model, is_all=True))

    async def append(self, index_id: str, given: Sequence[Document], model: str | None, by: By) -> Row:
        """Add these documents, or put them in the place of those with their ids; the index may begin with them."""
        documents.check_id(index_id, "/index_id")
        await asyncio.to_thread(documents.check, given)
        return await self._changed(index_id, by, lambda row: self._written(row, index_id, given, model, is_all=False))

    async def patch(
        self, index_id: str, document_id: str, text: str | None, metadata: Mapping[str, Any] | None, by: By
    ) -> Document:
        """Replace what is given. Raises ``NotFound``."""

        async def change(row: Row | None) -> _Change:
            old = await self.document(index_id, document_id)
            new = replace(old, text=old.text if text is None else text)
            new = replace(new, metadata=old.metadata if metadata is None else metadata)
            documents.check_one(new)
            return await self._written(row, index_id, [new], None, is_all=False)

        await self._changed(index_id, by, change)
        return await self.document(index_id, document_id)

    async def delete_document(self, index_id: str, document_id: str, by: By) -> bool:
        """Delete one document; gives whether there was one. Raises ``NotFound`` if there is no index."""
        was_there = True  # what its key names was done

        async def change(row: Row | None) -> _Change | None:
            nonlocal was_there
            index = _there(row, index_id)
            was_there = bool(await self._in_store(index_id, store.present, _in_force(index), [document_id]))
            if not was_there:
                return None
            staging = self._staging(index_id, row, removed=[document_id])
            changed = DocumentsChanged(index_id, staging.generation, index["doc_count"] - 1, deleted=(document_id,))
            return _Change(staging, changed)

        await self._changed(index_id, by, change)
        return was_there

    async def delete_index(self, index_id: str, by: By) -> None:
        """Delete the index with its documents. Raises ``NotFound``."""

        async def change(row: Row | None) -> _Change:
            _there(row, index_id)
            staging = self._staging(index_id, row, removed=None)
            return _Change(staging, IndexDeleted(index_id, staging.generation))

        await self._changed(index_id, by, change)

    async def _written(
        self, row: Row | None, index_id: str, given: Sequence[Document], model: str | None, *, is_all: bool
    ) -> _Change:
        """The change that writes these documents; if ``is_all``, no others stay."""
        chosen = self._model_of(row, model, is_all=is_all)
        versions = await self._versions(chosen, given)
        written = {each.document.id: each.digest for each in versions}
        staging = self._staging(index_id, row, added=versions, removed=None if is_all else ())
        generation = staging.generation
        if row is None:
            return _Change(staging, IndexCreated(index_id, generation, chosen, written))
        if is_all:
            other = chosen if chosen != row["embedding_model"] else ""
            said = DocumentsChanged(index_id, generation, len(written), written, replaced=True, embedding_model=other)
            return _Change(staging, said)
        there = await self._in_store(index_id, store.present, _in_force(row), list(written))
        count = row["doc_count"] + len(written.keys() - there)
        return _Change(staging, DocumentsChanged(index_id, generation, count, written))

    def _model_of(self, row: Row | None, model: str | None, *, is_all: bool) -> str:
        """The model of an index is that of its first documents. Raises ``InvalidField``."""
        pinned: str | None = row["embedding_model"] if row is not None else None
        if pinned is not None and model not in {None, pinned} and not is_all:
            raise InvalidField(
                f"The index is of the embedding model {pinned!r}; came {model!r}. Replace all of its documents to "
                "give it another.",
                param="/embedding_model",
            )
        return model or pinned or self._embeddings.default

    async def _versions(self, model: str, given: Sequence[Document]) -> list[Version]:
        """The documents with their vectors; what the model embedded before is not embedded again."""
        self._refuse_if_damaged()
        clean = await asyncio.to_thread(self._concealed, given)
        digests = await asyncio.to_thread(lambda: {each.text: documents.text_digest_of(each.text) for each in clean})
        known = await self._store.read(store.embedded, model, list(digests.values()))
        new = [text for text, digest in digests.items() if digest not in known]
        if new:
            vectors = (await self._embeddings.embed(model, new)).vectors
            made = [np.asarray(vector, "<f4").tobytes() for vector in vectors]
            known |= {digests[text]: vector for text, vector in zip(new, made, strict=True)}
        salts = [self._random_bytes(documents.SALT_BYTES) for _ in clean]
        sealed = await asyncio.to_thread(lambda: list(map(documents.digest_of, salts, clean)))
        return [
            Version(each, salt, digest, model, digests[each.text], known[digests[each.text]])
            for each, salt, digest in zip(clean, salts, sealed, strict=True)
        ]

    def _concealed(self, given: Sequence[Document]) -> list[Document]:
        """The documents without this installation's live secrets."""
        mask, mask_bytes = self._redactor.masked, self._redactor.masked_bytes
        return [
            Document(each.id, mask(each.text), orjson.loads(mask_bytes(orjson.dumps(each.metadata)))) for each in given
        ]

    def _staging(
        self, index_id: str, row: Row | None, *, added: Sequence[Version] = (), removed: Sequence[str] | None = ()
    ) -> Staging:
        current = row["_generation"] if row is not None else 0
        return Staging(index_id, current, self._head() + 1, self._now_us(), added, removed)

    async def _changed(self, index_id: str, by: By, change: Callable[[Row | None], Awaitable[_Change | None]]) -> Row:
        """Change the index as ``change`` says, one change after the other; what its key names is done once."""
        lock = self._locks.setdefault(index_id, asyncio.Lock())
        async with lock:
            await self._recorder.settled()  # an earlier change, whose caller has left, may not be on disk yet
            if by.once is None or not await self._recorder.answered(by.once):
                made = await change(await self._views.private_row(_MODEL, index_id))
                if made is not None:
                    self._refuse_if_damaged()
                    await self._store.write(store.stage, made.staging)
                    await self._recorder.record(stream_of_index(index_id), made.fact, by.actor, by.once)
                    await self._settle(index_id, made.staging.generation)
                    if made.staging.removed is None:
                        self._incomplete.discard(index_id)
                    if isinstance(made.fact, IndexDeleted):
                        await self._store.read(self._searcher.forget, index_id)
            return await self._views.private_row(_MODEL, index_id) or {}

    async def _settle(self, index_id: str, generation: int) -> None:
        """Delete what the generation replaced; if that fails, the next change does it, or the next start."""
        try:
            await self._store.write(store.settle, index_id, generation)
        except OrganismError as error:
            _log.warning("library_not_settled", index=index_id, error=str(error))


@dataclass(frozen=True, slots=True)
class _Change:
    staging: Staging
    fact: Event


def _there(row: Row | None, index_id: str) -> Row:
    if row is None:
        raise NotFound(f"There is no index {index_id[:140]!r}.")
    return row


def _in_force(row: Row) -> InForce:
    return InForce(row["id"], row["_generation"])
