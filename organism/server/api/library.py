"""The library: indices of documents, which are searched by meaning and by words. They are the tenant's.

The user is named for the log's sake.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec
import orjson
from msgspec import Meta
from msgspec.structs import asdict
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    with_config,
)
from pydantic.config import JsonDict
from starlette.responses import Response

from organism.errors import (
    FileUnreadable,
    LibraryDamaged,
    LibraryUnavailable,
    MissingField,
    NotFound,
    UnsupportedMediaType,
)
from organism.events.entity import Entity
from organism.model import words
from organism.rag.documents import ID_PATTERN, MOST_CONDITIONS, MOST_DOCUMENTS, MOST_TOP_K, Document
from organism.rag.files import KINDS
from organism.rag.library import By, File, Work
from organism.rag.question import Hit
from organism.rag.store import Span
from organism.rag.words import MOST_PLACES
from organism.server.http import lists
from organism.server.http.bodies import NULL, Name, NoBody, Places, body, named_in
from organism.server.http.call import FOR_USER, Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import ACT, EMBEDDING_REFUSED, Gives, gives
from organism.server.http.lists import AT, Listing, ListPage, as_of, envelope, list_of, next_cursor
from organism.server.http.rights import Right
from organism.views.library import LibraryIndex, StoredIndex
from organism.views.views import Page

INDICES: Final = Listing("indices", "position")
_PLACES: Final[Places] = {"/model": "/embedding_model", "/index_id": None}
"""Where a request has what the library names; the index stands in its path, which is no field."""


_TEXT_OR_METADATA: Final[JsonDict] = {
    "not": {"properties": {"text": NULL, "metadata": NULL}},
    "examples": [{"metadata": {"category": "sights"}}],
}
"""That of ``PatchDocumentBody``."""

DEFAULT_TOP_K: Final = 5
DEFAULT_MODE: Final = "hybrid"


class LibraryEmbedding(TypedDict):
    """How far an index is embedded."""

    index_id: Annotated[str, Meta(examples=["berlin-info"])]
    embedding_model: Annotated[str, Meta(examples=["default"])]
    doc_count: words.Count
    embedded: Annotated[words.Count, Meta(description="How many of them have vectors; words find the others too.")]
    error: Annotated[str | None, Meta(description="Why the last attempt failed; another one follows by itself.")]


class ShownIndex(LibraryIndex, kw_only=True):
    """An index of the library, who reads it, and what goes on with it in the background."""

    used_by: Annotated[
        list[words.AgentName], Meta(description="The agents whose `rag_index` it is, by the configuration of now.")
    ]
    work: Annotated[Work | None, Meta(description="Null if nothing goes on, and with `at`.")]


class LibraryIndexList(ListPage):
    """The indices, oldest first."""

    indices: list[ShownIndex]


class LibraryDocument(TypedDict):
    """A document of an index."""

    id: Annotated[str, Meta(examples=["d1"])]
    text: Annotated[str, Meta(examples=["Der Tiergarten ist der größte Park Berlins."])]
    metadata: words.Object


class LibraryDocumentList(ListPage):
    """Documents of an index, in the order in which their ids came first."""

    documents: list[LibraryDocument]


class Ingested(TypedDict):
    """What came into an index."""

    index_id: Annotated[str, Meta(examples=["berlin-info"])]
    ingested: Annotated[words.Count, Meta(description="How many documents the request had.")]
    doc_count: Annotated[words.Count, Meta(description="How many the index has now.")]


class FileTaken(Entity, kw_only=True):
    """What a file has become."""

    index_id: Annotated[str, Meta(examples=["berlin-info"])]
    source: Annotated[str, Meta(description="The file's name: `path` of its documents' metadata.", examples=["a.pdf"])]
    documents: Annotated[words.Count, Meta(description="How many; none if the file has no text.")]
    work: Annotated[Work | None, Meta(description="What goes on with the index; null if all is embedded.")]


class Deleted(TypedDict):
    """Whether there was anything to delete."""

    deleted: bool


class RetrievedDocument(LibraryDocument):
    """A document that was found."""

    score: Annotated[
        float, Meta(description="The higher the better, among those of this answer alone; by `vector` it is a cosine.")
    ]
    matched: Annotated[
        list[Literal["keyword", "vector"]],
        Meta(description="By what it was found: it has a word of the query, its vector is among the nearest, or both."),
    ]
    similarity: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="The cosine of the two vectors, from 0 on; null where none were compared.", examples=[0.83]),
    ]
    highlights: Annotated[
        list[Annotated[tuple[words.Count, words.Count], Meta(examples=[[4, 14]])]],
        Meta(
            max_length=MOST_PLACES,
            description="Where `text` has words of the query: the first character, and the one behind the last.",
        ),
    ]


class Retrieved(TypedDict):
    """What was found, the best first."""

    results: list[RetrievedDocument]
    mode: Literal["vector", "keyword", "hybrid"]
    embedding_model: Annotated[str, Meta(examples=["default"])]


def _as_whole(value: Any) -> Any:
    """A whole number may be written as 5.0 in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@body
class DocumentBody:
    """A document of the library; the library's own limits are checked by it, since tools have them too."""

    id: Annotated[str, Strict(), Field(json_schema_extra={"pattern": ID_PATTERN}, examples=["d1"])]
    text: Annotated[
        str,
        Strict(),
        Field(json_schema_extra={"minLength": 1}, examples=["Der Tiergarten ist der größte Park Berlins."]),
    ]
    metadata: Annotated[dict[str, Any] | None, Field(examples=[{"lang": "de"}])] = None


@body
class IngestBody:
    """``POST /a1/rag/indices/{index_id}/documents`` and ``…/append``."""

    documents: Annotated[list[DocumentBody], Field(max_length=MOST_DOCUMENTS, fail_fast=True)]
    embedding_model: Annotated[Name | None, Field(description="Of a new index; by default the default one.")] = None


@with_config(ConfigDict(extra="forbid", json_schema_extra=_TEXT_OR_METADATA))
@dataclass(frozen=True, slots=True, kw_only=True)
class PatchDocumentBody:
    """``PATCH /a1/rag/indices/{index_id}/documents/{doc_id}``: at least one of the two."""

    text: Annotated[str, Strict(), Field(json_schema_extra={"minLength": 1})] | None = None
    metadata: dict[str, Any] | None = None


@body
class ReembedBody:
    """``POST /a1/rag/indices/{index_id}/reembed``."""

    embedding_model: Annotated[Name, Field(description="One of `embeddings`, or `builtin`.", examples=["builtin"])]


@body
class RetrieveBody:
    """``POST /a1/rag/indices/{index_id}/query``: ``filter`` names metadata and the values that they must have.

    Null counts as absent.
    """

    query: Annotated[str, Strict(), Field(json_schema_extra={"minLength": 1}, examples=["Wo ist der größte Park?"])]
    top_k: Annotated[
        Annotated[int, Strict(), Field(ge=1, le=MOST_TOP_K), BeforeValidator(_as_whole)] | None,
        Field(json_schema_extra={"default": DEFAULT_TOP_K}),
    ] = None
    mode: Annotated[
        Literal["vector", "keyword", "hybrid"] | None, Field(json_schema_extra={"default": DEFAULT_MODE})
    ] = None
    filter: Annotated[
        dict[str, StrictStr | StrictInt | StrictFloat | StrictBool | None] | None,
        Field(max_length=MOST_CONDITIONS, examples=[{"lang": "de"}]),
    ] = None


async def library_indices(call: Call) -> Response:
    """The tenant's indices, oldest first."""
    return await list_of(call, replace(INDICES, reshape=_all_shown))


async def library_index(call: Call) -> Response:
    """One index."""
    call.allow_query(AT)
    return await _index(call, await as_of(call))


async def _index(call: Call, at: int | None = None) -> Response:
    row = msgspec.json.decode(await call.row("indices", call.path_params["index_id"], at), type=LibraryIndex)
    return JsonResponse(await _with_work(call, row, is_past=at is not None))


async def _all_shown(call: Call, rows: bytes) -> bytes:
    found = msgspec.json.decode(rows, type=list[LibraryIndex])
    is_past = await as_of(call) is not None
    return msgspec.json.encode([await _with_work(call, row, is_past=is_past) for row in found])


async def _with_work(call: Call, row: LibraryIndex, *, is_past: bool) -> ShownIndex:
    listeners = call.process.organism.settings.listeners
    used_by = sorted(each.name for each in listeners if each.agent is not None and each.agent.rag_index == row.id)
    work = None if is_past else await call.tenant.library.work(row)
    return ShownIndex(**asdict(row), used_by=used_by, work=work)


async def index_embedding(call: Call) -> Response:
    """How many documents of the index have vectors: all, unless some came with `wait=false` a moment ago."""
    call.allow_query()
    return JsonResponse(dataclasses.asdict(await call.tenant.library.embedding(call.path_params["index_id"])))


async def delete_index(call: Call) -> Response:
    """Delete the index with all of its documents."""
    await call.body_as(NoBody)
    await call.tenant.library.delete_index(call.path_params["index_id"], _by(call))
    return JsonResponse(Deleted(deleted=True))


async def replace_documents(call: Call) -> Response:
    """Make these the only documents of the index, which begins if there is none."""
    return await _ingested(call, call.tenant.library.replace)


async def append_documents(call: Call) -> Response:
    """Add these documents, or put them in the place of those with their ids; an index that is not there begins."""
    return await _ingested(call, call.tenant.library.append)


async def put_file(call: Call) -> Response:
    """Make documents of a file's text, in the place of those that the index has of a file of that name.

    A file that cannot be read is refused and changes nothing. Its documents are embedded in the background.
    """
    name = call.parameters()["name"]
    if (kind := KINDS.get(call.content_kind)) is None:
        raise UnsupportedMediaType(
            f"A file comes as {', '.join(KINDS)}; came {call.content_kind or 'no Content-Type'!r}.",
            param="headers.content-type",
        )
    library, index_id = call.tenant.library, call.path_params["index_id"]
    with named_in(_PLACES):
        row, count = await call.unless_left(library.put_file(index_id, File(name, kind, call.content), None, _by(call)))
    work = None if row is None else await library.work(row.public)
    return JsonResponse(FileTaken(index_id=index_id, source=name, documents=count, work=work), 202)


async def library_documents(call: Call) -> Response:
    """The documents of the index, in the order in which their ids came first."""
    query = lists.paging(call)
    after = query.after[0] if query.after is not None else 0
    span = Span(after, query.offset, query.limit)
    listed, total = await call.tenant.library.documents(call.path_params["index_id"], span)
    shown = [_shown(each) for each in listed.documents]
    page = Page(orjson.dumps(shown), len(shown), total, listed.before, (listed.last, "") if shown else None)
    return JsonResponse(envelope("documents", page.rows, page, query, next_cursor(call, page, None)))


async def library_document(call: Call) -> Response:
    """One document."""
    call.allow_query()
    found = await call.tenant.library.document(call.path_params["index_id"], call.path_params["doc_id"])
    return JsonResponse(_shown(found))


async def patch_document(call: Call) -> Response:
    """Replace its text, its metadata or both; only another text is embedded."""
    body = await call.body_as(PatchDocumentBody)
    if body.text is None and body.metadata is None:
        raise MissingField("A patch has `text`, `metadata` or both.", param="/text")
    named = call.path_params["index_id"], call.path_params["doc_id"]
    found = await call.unless_left(call.tenant.library.patch(*named, body.text, body.metadata, _by(call)))
    return JsonResponse(_shown(found))


async def delete_document(call: Call) -> Response:
    """Delete one document; one that is not there is no error."""
    await call.body_as(NoBody)
    named = call.path_params["index_id"], call.path_params["doc_id"]
    return JsonResponse(Deleted(deleted=await call.tenant.library.delete_document(*named, _by(call))))


async def reembed_index(call: Call) -> Response:
    """Give the index another embedding model. Queries are answered by the old one until all texts are embedded."""
    body = await call.body_as(ReembedBody)
    index_id = call.path_params["index_id"]
    with named_in(_PLACES):
        await call.unless_left(call.tenant.library.reembed(index_id, body.embedding_model, _by(call)))
    return await _index(call)


async def query_index(call: Call) -> Response:
    """The documents that answer the query best."""
    body = await call.body_as(RetrieveBody)
    library, index_id = call.tenant.library, call.path_params["index_id"]
    mode = body.mode or DEFAULT_MODE
    asked = library.query(index_id, body.query, body.top_k or DEFAULT_TOP_K, mode, body.filter or {})
    hits, model = await call.unless_left(asked)
    results = [_found(hit) for hit in hits]
    return JsonResponse(Retrieved(results=results, mode=mode, embedding_model=model))


def _shown(document: Document) -> LibraryDocument:
    return LibraryDocument(id=document.id, text=document.text, metadata=dict(document.metadata))


def _found(hit: Hit) -> RetrievedDocument:
    return {
        **_shown(hit.document),
        "score": hit.score,
        "matched": list(hit.matched),
        "similarity": hit.similarity,
        "highlights": list(hit.highlights),
    }


def _by(call: Call) -> By:
    call.refuse_if_match()
    return By(call.actor, call.idempotency())


async def _ingested(call: Call, write: Callable[..., Coroutine[Any, Any, StoredIndex | None]]) -> Response:
    """Write the documents; with ``wait=false``, without waiting until they are embedded."""
    later = not call.parameters().get("wait", True)
    body = await call.body_as(IngestBody, "wait")
    given = [Document(each.id, each.text, each.metadata or {}) for each in body.documents]
    with named_in(_PLACES):
        writing = write(call.path_params["index_id"], given, body.embedding_model, _by(call), later=later)
        row = await call.unless_left(writing)
    doc_count = 0 if row is None else row.public.doc_count
    shown = Ingested(index_id=call.path_params["index_id"], ingested=len(given), doc_count=doc_count)
    return JsonResponse(shown, 202 if later else 200)


_READ_INDEX: Final = Right("rag:read", {"index_id": "index"})
_read = partial(
    Route,
    right=_READ_INDEX,
    needs_user=True,
    headers=FOR_USER,
    by_head=True,
    refuses=(NotFound, LibraryDamaged, LibraryUnavailable),
)
_moving = partial(_read, by_head=False, by_body=True)
_act = partial(
    Route,
    right=Right("rag:write", {"index_id": "index"}),
    needs_user=True,
    headers=(*ACT, *FOR_USER),
    is_recorded=True,
    refuses=(NotFound, LibraryDamaged, LibraryUnavailable, *EMBEDDING_REFUSED),
)
_WAIT: Final = Annotated[
    bool, Meta(description="`false`: 202 once they are stored, and embed them in the background.", examples=[False])
]
_ingest = partial(
    _act,
    gives=gives(Ingested, Gives(Ingested, status=202)),
    query=("wait",),
    narrow={"wait": _WAIT},
    takes=IngestBody,
)
_INDICES: Final = "/a1/rag/indices"
_INDEX: Final = f"{_INDICES}/{{index_id}}"
_DOCUMENTS: Final = f"{_INDEX}/documents"
_DOCUMENT: Final = f"{_DOCUMENTS}/{{doc_id}}"

ROUTES: Final = tagged(
    Tag("rag", __doc__),
    _moving(
        f"GET {_INDICES}",
        library_indices,
        right=Right("rag:read"),
        gives=gives(LibraryIndexList),
        query=INDICES.takes,
        refuses=(),
    ),
    _moving(f"GET {_INDEX}", library_index, gives=gives(ShownIndex), query=(AT,), refuses=(NotFound,)),
    _act(f"DELETE {_INDEX}", delete_index, gives=gives(Deleted), takes=NoBody),
    _read(f"GET {_DOCUMENTS}", library_documents, gives=gives(LibraryDocumentList), query=lists.PAGING),
    _moving(f"GET {_INDEX}/embedding", index_embedding, gives=gives(LibraryEmbedding)),
    _ingest(f"POST {_DOCUMENTS}", replace_documents),
    _ingest(f"POST {_DOCUMENTS}/append", append_documents),
    _act(
        f"POST {_INDEX}/files",
        put_file,
        gives=gives(FileTaken, status=202),
        query=("name",),
        requires=("name",),
        narrow={"name": Annotated[str, Meta(description="What the file is called.", examples=["guide.pdf"])]},
        takes=bytes,
        takes_files=tuple(KINDS),
        refuses=(
            NotFound,
            LibraryDamaged,
            LibraryUnavailable,
            FileUnreadable,
            UnsupportedMediaType,
            *EMBEDDING_REFUSED,
        ),
    ),
    _read(f"GET {_DOCUMENT}", library_document, gives=gives(LibraryDocument)),
    _act(f"PATCH {_DOCUMENT}", patch_document, gives=gives(LibraryDocument), takes=PatchDocumentBody),
    _act(f"DELETE {_DOCUMENT}", delete_document, gives=gives(Deleted), takes=NoBody),
    _act(f"POST {_INDEX}/reembed", reembed_index, gives=gives(ShownIndex), takes=ReembedBody),
    Route(
        f"POST {_INDEX}/query",
        query_index,
        right=_READ_INDEX,
        gives=gives(Retrieved),
        takes=RetrieveBody,
        headers=FOR_USER,
        needs_user=True,
        refuses=(NotFound, LibraryDamaged, LibraryUnavailable, *EMBEDDING_REFUSED),
    ),
)
