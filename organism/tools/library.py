"""``rag_query``, ``rag_index_list``, ``_describe``, ``rag_doc_list``, ``_get``: the library, for models.

Each searches or reads the library of its tenant alone, as a recorded step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from organism.config.settings import ShippedTool
from organism.errors import InvalidField, LibraryDamaged, LibraryUnavailable, NotFound, Stopping, Upstream
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.rag.documents import ID_PATTERN, MOST_TOP_K, Document
from organism.rag.library import Library
from organism.rag.store import Span
from organism.tools.web import ToolFailure, as_step, clean, written_bytes

MOST_BYTES: Final = 160 * 1024
"""So much text an answer has at most, as XML: the rest of the documents is left out."""
MOST_INDICES: Final = 100
SECONDS: Final = 60.0

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
    """A document that was found; ``metadata`` is JSON. The higher the score the better, within one answer."""

    id: str
    text: str
    metadata: str
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
    """A document; ``metadata`` is JSON."""

    id: str
    text: str
    metadata: str


@dataclass
class RagDocuments:
    """The documents, as many as there is room for; ``total`` is how many the index has."""

    index_id: str
    documents: list[RagDocument]
    total: int


_of_library = partial(ShippedTool, timeout_s=SECONDS + 5)
_of_texts = partial(_of_library, brings_outside_text=True)

TOOLS: Final = (
    _of_texts(name="rag_query", payload_class=RagQuery, replies=(RagPassages,)),
    _of_library(name="rag_index_list", payload_class=RagIndexList, replies=(RagIndices,)),
    _of_library(name="rag_index_describe", payload_class=RagIndexDescribe, replies=(RagIndex,)),
    _of_texts(name="rag_doc_list", payload_class=RagDocList, replies=(RagDocuments,)),
    _of_texts(name="rag_doc_get", payload_class=RagDocGet, replies=(RagDocument,)),
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
            return RagPassages(index_id, [Passage(**each) for each in results])

        return await _as_step(metadata, "query", found, reply)

    async def index_list(self, payload: RagIndexList, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            rows, total = await self._library.indices(payload.offset, MOST_INDICES)
            return {"indices": rows, "total": total}

        def reply(indices: list[dict[str, Any]], total: int) -> RagIndices:
            return RagIndices([RagIndex(**each) for each in indices], total)

        return await _as_step(metadata, "list", found, reply)

    async def index_describe(self, payload: RagIndexDescribe, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            row = await self._library.index(payload.index_id)
            return {name: value for name, value in row.items() if not name.startswith("_")}

        return await _as_step(metadata, "describe", found, RagIndex)

    async def doc_list(self, payload: RagDocList, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            span = Span(0, payload.offset, payload.limit)
            listed, total = await self._library.documents(payload.index_id, span)
            return {"index_id": payload.index_id, "documents": list(fitting(listed.documents)), "total": total}

        def reply(index_id: str, documents: list[dict[str, Any]], total: int) -> RagDocuments:
            return RagDocuments(index_id, [RagDocument(**each) for each in documents], total)

        return await _as_step(metadata, "list", found, reply)

    async def doc_get(self, payload: RagDocGet, metadata: HandlerMetadata) -> HandlerResponse:
        async def found() -> dict[str, Any]:
            return next(fitting([await self._library.document(payload.index_id, payload.doc_id)]))

        return await _as_step(metadata, "get", found, RagDocument)


def fitting(documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
    """The first documents, as many as an answer has room for, without what XML cannot carry."""
    left = MOST_BYTES
    for each in documents:
        text, metadata = clean(each.text), clean(orjson.dumps(each.metadata).decode())
        left -= written_bytes(text) + written_bytes(metadata)
        if left < 0:
            return
        yield {"id": each.id, "text": text, "metadata": metadata}


async def _as_step(
    metadata: HandlerMetadata,
    key: str,
    ask: Callable[[], Awaitable[dict[str, Any]]],
    reply: Callable[..., object],
) -> HandlerResponse:
    async def asked() -> dict[str, Any]:
        try:
            return await ask()
        except NotFound as error:
            raise ToolFailure("not_found", error.message) from error
        except InvalidField as error:
            raise ToolFailure("invalid_field", error.message) from error
        except (LibraryDamaged, LibraryUnavailable, Stopping, Upstream) as error:
            raise ToolFailure("upstream_error", error.message) from error

    return await as_step(metadata, key, asked, SECONDS, reply)
