"""A library in an organism of its own, and what is in it."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from organism.bootstrap import Parts
from organism.errors import NotFound
from organism.model.redact import Redactor
from organism.rag.documents import Document
from organism.rag.hashed_words import HashedWords
from organism.rag.index import Graphs
from organism.rag.library import Library
from organism.rag.store import Span, Store
from organism.sqlite.driver import Pysqlite
from organism.testing import Running, running
from tests.server.served import HELLO

WORDS = HashedWords("plain", "other")
ALL = Span(0, 0, 1000)


@asynccontextmanager
async def organism(data: Path | None, driver: Pysqlite | None = None) -> AsyncIterator[Running]:
    """One whose library has the words' twin."""
    async with running(HELLO, data, Parts(driver=driver or Pysqlite(), embeddings=WORDS)) as o:
        yield o


@asynccontextmanager
async def the_same(data: Path) -> AsyncIterator[Running]:
    """One that writes the same bytes each time: its clock stands, and its chance is no chance."""
    parts = Parts(
        embeddings=WORDS, chance=random.Random(1), wall_ns=lambda: 1_800_000_000 * 10**9, monotonic_ns=lambda: 10**9
    )
    async with running(HELLO, data, parts) as o:
        yield o


@asynccontextmanager
async def library_with(o: Running, data: Path, graphs: Graphs) -> AsyncIterator[Library]:
    """A library over the file and the log of a running one, with graphs of its own; only one of both may write."""
    own = Library(
        *(Store(data / "tenants/default/library.sqlite", Pysqlite()), o.views, WORDS),
        graphs=graphs,
        recorder=o.tenant,
        head=lambda: o.log.head,
        now_us=lambda: 0,
        random_bytes=os.urandom,
        redactor=Redactor(),
    )
    yield own
    await own.close()


def texts(**by_id: str) -> list[Document]:
    return [Document(name, text, {"of": name}) for name, text in by_id.items()]


async def content(library: Library, index_id: str) -> dict[str, str] | None:
    """The texts of an index by their ids, None if there is none; all that tells of them agrees."""
    try:
        listed, count = await library.documents(index_id, ALL)
    except NotFound:
        return None
    found = {each.id: each.text for each in listed.documents}
    assert count == len(found) == (await library.index(index_id)).public.doc_count
    for each in listed.documents:
        assert await library.document(index_id, each.id) == each
        await agrees(library, index_id, found, each.text)
    return found


async def agrees(library: Library, index_id: str, texts: Mapping[str, str], query: str) -> None:
    """Search by vectors gives what comparing with each text gives; search by words finds each that has one."""
    model = (await library.index(index_id)).public.embedding_model
    by_vector = await hits(library, index_id, query, "vector")
    embedded = await WORDS.embed(model, [query, *texts.values()])
    vectors = embedded.vectors / np.linalg.norm(embedded.vectors, axis=1, keepdims=True)
    wanted = dict(zip(texts, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    assert by_vector.keys() == wanted.keys()
    assert np.allclose([by_vector[name] for name in wanted], list(wanted.values()), atol=1e-5)
    assert list(by_vector.values()) == sorted(by_vector.values(), reverse=True)
    words = set(query.lower().split())
    having = {name for name, text in texts.items() if words & set(text.lower().split())}
    assert (await hits(library, index_id, query, "keyword")).keys() == having


async def hits(library: Library, index_id: str, query: str, mode: Any, count: int = 50) -> dict[str, float]:
    """The scores of what is found by its ids, in order."""
    found, _ = await library.query(index_id, query, count, mode, {})
    return {hit.document.id: hit.score for hit in found}
