"""``rag_query``, ``rag_index_list``, ``_describe``, ``rag_doc_list``, ``_get``: the library, for models.

Each searches or reads the library of its tenant alone, as a recorded step. Five more write it, ``rag_index_create``,
``_delete``, ``rag_doc_append``, ``_patch``, ``_delete``: a call shows what it would do, and acts when it is confirmed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import orjson
from msgspec.structs import asdict, replace
from pydantic import Field

from organism.config.settings import ShippedTool
from organism.errors import (
    ContextLengthExceeded,
    InvalidField,
    LibraryDamaged,
    LibraryUnavailable,
    NotFound,
    PreviewStale,
    RateLimitExceeded,
    Stopping,
    Upstream,
    UpstreamRefused,
)
from organism.model.commands import Idempotency
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.json_value import JsonObject
from organism.model.tool import Confirmed, Preview, Previewed, ToolError
from organism.pump.decide.respond import Recorded
from organism.rag.documents import ID_PATTERN, MOST_TOP_K, Document, check, check_one
from organism.rag.library import By, Library
from organism.rag.store import Span
from organism.tools.web import ToolFailure, as_step, clean, written_bytes
from organism.views.library import StoredIndex

MOST_BYTES: Final = 160 * 1024
"""How much text an answer may have, as XML: the rest of the documents is left out."""
MOST_INDICES: Final = 100
MOST_SHOWN: Final = 200
"""Characters of a text in a preview."""
MOST_SAMPLED: Final = 10
SECONDS: Final = 60.0

T = TypeVar("T")
IndexId = Annotated[str, Field(pattern=ID_PATTERN, description="The index's id, as rag_index_list gives it.")]
DocumentId = Annotated[str, Field(pattern=ID_PATTERN, description="The document's id.")]


@dataclass
class RagQuery:
    """Searches an index of documents and gives the passages that answer best, each with the id to cite it by."""

    index_id: IndexId
    query: Annotated[str, Field(min_length=1, max_length=2000, description="What is looked for, in words.")]
    top_k: Annotated[int, Field(ge=1, le=MOST_TOP_K, description="How many at most.")] = 5


@dataclass
class Passage:
    """A document that was found. The higher the score the better, within one answer."""

    id: str
    text: str
    metadata: JsonObject
    score: float


@dataclass
class RagPassages:
    """The passages, best first; none, if nothing was found."""

    index_id: str
    results: list[Passage]


@dataclass
class RagIndexList:
    """Lists the indices of documents that there are."""

    offset: Annotated[int, Field(ge=0, description="How many to pass over.")] = 0


@dataclass
class RagIndexDescribe:
    """Describes an index: how many documents it has, which model its vectors are of, since when there is it."""

    index_id: IndexId


@dataclass
class RagIndex:
    """An index."""

    id: str
    doc_count: int
    embedding_model: str
    created_at: str


@dataclass
class RagIndices:
    """Up to 100 indices, oldest first; ``total`` is how many there are."""

    indices: list[RagIndex]
    total: int


@dataclass
class RagDocList:
    """Lists the documents of an index with their texts, in order."""

    index_id: IndexId
    offset: Annotated[int, Field(ge=0, description="How many to pass over.")] = 0
    limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 20


@dataclass
class RagDocGet:
    """Gives one document of an index."""

    index_id: IndexId
    doc_id: DocumentId


@dataclass
class RagDocument:
    """A document."""

    id: str
    text: str
    metadata: JsonObject


@dataclass
class RagDocuments:
    """The documents, as many as there is room for; ``total`` is how many the index has."""

    index_id: str
    documents: list[RagDocument]
    total: int


@dataclass
class NewDocument:
    """A document that is written."""

    id: DocumentId
    text: str
    metadata: Annotated[JsonObject, Field(description='What else is known of it, such as {"lang": "de"}.')] = field(
        default_factory=dict
    )


@dataclass
class RagIndexCreate:
    """Makes these the documents of an index; those that it had are dropped. It is previewed, then confirmed."""

    index_id: IndexId
    documents: list[NewDocument]
    confirm_token: str = ""


@dataclass
class RagDocAppend:
    """Adds documents to an index, in the place of those with their ids. It is previewed, then confirmed."""

    index_id: IndexId
    documents: list[NewDocument]
    confirm_token: str = ""


@dataclass
class RagDocPatch:
    """Replaces the text, the metadata or both of a document. It is previewed, then confirmed."""

    index_id: IndexId
    doc_id: DocumentId
    text: Annotated[str | None, Field(description="The new text.")] = None
    metadata: Annotated[JsonObject | None, Field(description="The new metadata, all of it.")] = None
    confirm_token: str = ""


@dataclass
class RagDocDelete:
    """Deletes a document from an index. It is previewed, then confirmed."""

    index_id: IndexId
    doc_id: DocumentId
    confirm_token: str = ""


@dataclass
class RagIndexDelete:
    """Deletes an index with all of its documents. It is previewed, then confirmed."""

    index_id: IndexId
    confirm_token: str = ""


@dataclass
class RagIngested:
    """So many documents were written, and the index has so many."""

    index_id: str
    ingested: int
    doc_count: int


@dataclass
class RagDeleted:
    """Whether there was something to delete."""

    deleted: bool


_of_library = partial(ShippedTool, timeout_s=SECONDS + 5)
_of_reading = partial(_of_library, scope="rag:read", effect="pure")
_of_texts = partial(_of_reading, brings_outside_text=True)
_of_writing = partial(_of_library, scope="rag:write", confirm=True, effect="idempotent")

TOOLS: Final = (
    _of_texts(name="rag_query", payload_class=RagQuery, replies=(RagPassages,)),
    _of_reading(name="rag_index_list", payload_class=RagIndexList, replies=(RagIndices,)),
    _of_reading(name="rag_index_describe", payload_class=RagIndexDescribe, replies=(RagIndex,)),
    _of_texts(name="rag_doc_list", payload_class=RagDocList, replies=(RagDocuments,)),
    _of_texts(name="rag_doc_get", payload_class=RagDocGet, replies=(RagDocument,)),
    _of_writing(name="rag_index_create", payload_class=RagIndexCreate, replies=(RagIngested,)),
    _of_writing(name="rag_doc_append", payload_class=RagDocAppend, replies=(RagIngested,)),
    _of_writing(name="rag_doc_patch", payload_class=RagDocPatch, replies=(RagDocument,)),
    _of_writing(name="rag_doc_delete", payload_class=RagDocDelete, replies=(RagDeleted,)),
    _of_writing(name="rag_index_delete", payload_class=RagIndexDelete, replies=(RagDeleted,)),
)


class LibraryTools:
    """The tools' handlers for one tenant."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def query(self, payload: RagQuery, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            hits, _ = await self._library.query(payload.index_id, payload.query, payload.top_k, "hybrid", {})
            shown = zip(fitting(hit.document for hit in hits), hits, strict=False)
            return {
                "index_id": payload.index_id,
                "results": [{**document, "score": hit.score} for document, hit in shown],
            }

        def reply(index_id: str, results: list[dict[str, Any]]) -> RagPassages:
            return RagPassages(index_id, [Passage(**_with_object(each)) for each in results])

        return await _as_step(metadata, "query", found, reply)

    async def index_list(self, payload: RagIndexList, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            rows, total = await self._library.indices(payload.offset, MOST_INDICES)
            return {"indices": [asdict(row) for row in rows], "total": total}

        def reply(indices: list[dict[str, Any]], total: int) -> RagIndices:
            return RagIndices([RagIndex(**each) for each in indices], total)

        return await _as_step(metadata, "list", found, reply)

    async def index_describe(self, payload: RagIndexDescribe, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            shown: dict[str, Any] = asdict((await self._library.index(payload.index_id)).public)
            return shown

        return await _as_step(metadata, "describe", found, RagIndex)

    async def doc_list(self, payload: RagDocList, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            span = Span(0, payload.offset, payload.limit)
            listed, total = await self._library.documents(payload.index_id, span)
            return {"index_id": payload.index_id, "documents": list(fitting(listed.documents)), "total": total}

        def reply(index_id: str, documents: list[dict[str, Any]], total: int) -> RagDocuments:
            return RagDocuments(index_id, [_document(**each) for each in documents], total)

        return await _as_step(metadata, "list", found, reply)

    async def doc_get(self, payload: RagDocGet, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            return next(fitting([await self._library.document(payload.index_id, payload.doc_id)]))

        return await _as_step(metadata, "get", found, _document)

    def writing(self) -> dict[str, Previewed]:
        """The handlers of the tools that write, with their previews."""
        return {
            "rag_index_create": self._previewed(self._to_create, self._create, RagIngested, _whole_index),
            "rag_doc_append": self._previewed(self._to_append, self._append, RagIngested, _given_documents),
            "rag_doc_patch": self._previewed(self._to_patch, self._patch, _document, _one_document),
            "rag_doc_delete": self._previewed(self._to_delete, self._delete, RagDeleted, _one_document, quotes=True),
            "rag_index_delete": self._previewed(
                self._to_delete_index, self._delete_index, RagDeleted, _whole_index, quotes=True
            ),
        }

    def _previewed(
        self,
        preview: Callable[[Any], Awaitable[dict[str, Any]]],
        change: Callable[[Any, By], Awaitable[dict[str, Any]]],
        reply: Callable[..., object],
        ids_of: Callable[[Any], Sequence[str] | None],
        *,
        quotes: bool = False,
    ) -> Previewed:
        """``ids_of`` gives the documents that a call is about, None if it is about the index as a whole.

        With ``quotes``, the preview shows text of the documents that are there.
        """

        async def show(payload: Any) -> Preview | ToolError:
            try:
                # What changes between the two is found to have changed, since the version is the older one.
                version = await _asked(partial(self._library.version, payload.index_id, ids_of(payload)))
                return Preview(await _asked(partial(preview, payload)), version, quotes)
            except ToolFailure as failure:
                return ToolError(failure.code, failure.message)

        async def act(payload: Any, metadata: HandlerMetadata, confirmed: Confirmed) -> HandlerResponse:
            # A further attempt has the same key, so it is done once.
            once = Idempotency(confirmed.message, "TOOL", f"/a1/rag/indices/{payload.index_id}", "")
            by = By(once=once, cause=confirmed.message, version=confirmed.version)
            write = partial(_asked, partial(change, payload, by))
            response = await as_step(metadata, "write", write, SECONDS, reply, "idempotent")
            brings_text = isinstance(response.payload, RagDocument)
            return Recorded(response.payload, authors=frozenset({"rag_doc_patch"})) if brings_text else response

        return Previewed(act, show)

    async def _to_create(self, payload: RagIndexCreate) -> dict[str, Any]:
        return _shape(payload.index_id, _read(payload.documents), "replace")

    async def _create(self, payload: RagIndexCreate, by: By) -> dict[str, Any]:
        return _ingested(payload, await self._library.replace(payload.index_id, _read(payload.documents), None, by))

    async def _to_append(self, payload: RagDocAppend) -> dict[str, Any]:
        given = _read(payload.documents)
        there = await self._library.digests(payload.index_id, _given_documents(payload))
        return {**_shape(payload.index_id, given, "upsert"), "conflicting_existing_ids": sorted(there)}

    async def _append(self, payload: RagDocAppend, by: By) -> dict[str, Any]:
        return _ingested(payload, await self._library.append(payload.index_id, _read(payload.documents), None, by))

    async def _to_patch(self, payload: RagDocPatch) -> dict[str, Any]:
        given: dict[str, Any] = {"text": payload.text, "metadata": payload.metadata}
        changed = {name: value for name, value in given.items() if value is not None}
        if not changed:
            raise InvalidField("A patch has a text, metadata or both.", param="/text")
        new = replace(await self._library.document(payload.index_id, payload.doc_id), **changed)
        check_one(new)
        return {
            "index_id": payload.index_id,
            "doc_id": payload.doc_id,
            "changed_fields": list(changed),
            "new_text_size_bytes": len(new.text.encode()),
            "new_metadata_size_bytes": len(orjson.dumps(new.metadata)),
        }

    async def _patch(self, payload: RagDocPatch, by: By) -> dict[str, Any]:
        named = payload.index_id, payload.doc_id
        return next(fitting([await self._library.patch(*named, payload.text, payload.metadata, by)]))

    async def _to_delete(self, payload: RagDocDelete) -> dict[str, Any]:
        found = await self._library.document(payload.index_id, payload.doc_id)
        return {
            "index_id": payload.index_id,
            "doc_id": found.id,
            "text_size_bytes": len(found.text.encode()),
            "text_excerpt": clean(found.text[:MOST_SHOWN]),
            "text_excerpt_truncated": len(found.text) > MOST_SHOWN,
            "metadata": orjson.loads(clean(orjson.dumps(found.metadata).decode())),
        }

    async def _delete(self, payload: RagDocDelete, by: By) -> dict[str, Any]:
        return {"deleted": await self._library.delete_document(payload.index_id, payload.doc_id, by)}

    async def _to_delete_index(self, payload: RagIndexDelete) -> dict[str, Any]:
        row = await self._library.index(payload.index_id)
        listed, count = await self._library.documents(payload.index_id, Span(0, 0, MOST_SAMPLED))
        return {
            "index_id": payload.index_id,
            "doc_count": count,
            "total_text_bytes": await self._library.text_bytes(payload.index_id),
            "embedding_model": row.public.embedding_model,
            "created_at": row.public.created_at,
            "sample_doc_ids": [each.id for each in listed.documents],
            "sample_truncated_at": MOST_SAMPLED,
        }

    async def _delete_index(self, payload: RagIndexDelete, by: By) -> dict[str, Any]:
        await self._library.delete_index(payload.index_id, by)
        return {"deleted": True}


def _whole_index(_: object) -> None:
    """A call that is about all of an index."""


def _one_document(payload: RagDocPatch | RagDocDelete) -> list[str]:
    return [payload.doc_id]


def _given_documents(payload: RagDocAppend) -> list[str]:
    return [each.id for each in payload.documents]


def _read(given: Iterable[NewDocument]) -> list[Document]:
    """The documents. Raises ``InvalidField``."""
    read = [Document(each.id, each.text, each.metadata) for each in given]
    check(read)
    return read


def _shape(index_id: str, given: list[Document], semantics: str) -> dict[str, Any]:
    total = sum(len(each.text.encode()) for each in given)
    return {"index_id": index_id, "doc_count": len(given), "total_bytes": total, "replace_semantics": semantics}


def _ingested(payload: RagIndexCreate | RagDocAppend, row: StoredIndex | None) -> dict[str, Any]:
    doc_count = 0 if row is None else row.public.doc_count
    return {"index_id": payload.index_id, "ingested": len(payload.documents), "doc_count": doc_count}


def fitting(documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
    """The first documents, as many as an answer has room for; their texts without what XML cannot carry."""
    left = MOST_BYTES
    for each in documents:
        text = clean(each.text)
        left -= written_bytes(text) + written_bytes(json.dumps(each.metadata))
        if left < 0:
            return
        yield {"id": each.id, "text": text, "metadata": each.metadata}


def _document(**recorded: Any) -> RagDocument:
    return RagDocument(**_with_object(recorded))


def _with_object(recorded: dict[str, Any]) -> dict[str, Any]:
    """A document as a step recorded it; earlier versions recorded its metadata as the text of its JSON."""
    metadata = recorded["metadata"]
    return {**recorded, "metadata": orjson.loads(metadata) if isinstance(metadata, str) else metadata}


async def _as_step(
    metadata: HandlerMetadata,
    key: str,
    ask: Callable[[], Awaitable[dict[str, Any]]],
    reply: Callable[..., object],
) -> HandlerResponse:
    return await as_step(metadata, key, partial(_asked, ask), SECONDS, reply)


async def _asked(ask: Callable[[], Awaitable[T]]) -> T:
    """What the library gives. Raises ``ToolFailure``."""
    try:
        return await ask()
    except NotFound as error:
        raise ToolFailure("not_found", error.message) from error
    except InvalidField as error:
        raise ToolFailure("invalid_field", error.message) from error
    except PreviewStale as error:
        raise ToolFailure("preview_stale", f"{error.message} {error.remediation}") from error
    except (ContextLengthExceeded, UpstreamRefused) as error:
        raise ToolFailure("upstream_error", error.message) from error
    except (LibraryDamaged, LibraryUnavailable, RateLimitExceeded, Stopping, Upstream) as error:
        raise ToolFailure("upstream_error", error.message) from error
