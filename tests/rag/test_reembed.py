"""Another embedding model for an index: searches go on by the old one, and nothing is embedded twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from organism.bootstrap import Parts
from organism.errors import InvalidField, NotFound, Upstream
from organism.rag.hashed_words import Embedded, HashedWords
from organism.rag.library import By
from organism.testing import Running, running
from tests.rag.libraries import content, texts
from tests.server.served import HELLO

DOCUMENTS = {"a": "the tower stands", "b": "the park is large", "c": "a street of shops"}


class Slow(HashedWords):
    """The model ``other`` waits until it may go on; it fails while ``fails`` is set."""

    def __init__(self) -> None:
        super().__init__("plain", "other")
        self.may_go_on, self.has_begun = asyncio.Event(), asyncio.Event()
        self.fails = False

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        if model == "other" and texts:
            self.has_begun.set()
            await self.may_go_on.wait()
            if self.fails:
                raise Upstream
        return await super().embed(model, texts)


@asynccontextmanager
async def organism(words: HashedWords, data: Path | None = None) -> AsyncIterator[Running]:
    async with running(HELLO, data, Parts(embeddings=words)) as o:
        yield o


async def test_an_index_is_searched_and_changed_while_it_is_embedded_again() -> None:
    words = Slow()
    async with organism(words) as o:
        library = o.tenant.library
        await library.replace("x", texts(**DOCUMENTS), None, By())
        reembedding = asyncio.ensure_future(library.reembed("x", "other", By()))
        await words.has_begun.wait()
        await library.append("x", texts(d="a bridge over water"), None, By())
        await library.patch("x", "a", "the tower fell", None, By())
        await library.delete_document("x", "c", By())
        hits, model = await library.query("x", "the tower", 5, "vector", {})
        assert (hits[0].document.id, model) == ("a", "plain")
        words.may_go_on.set()
        assert (await reembedding).public.embedding_model == "other"
        now = {"a": "the tower fell", "b": DOCUMENTS["b"], "d": "a bridge over water"}
        assert await content(library, "x") == now


async def test_the_same_model_again_changes_nothing() -> None:
    words = HashedWords("plain", "other")
    async with organism(words) as o:
        before = await o.tenant.library.replace("x", texts(**DOCUMENTS), None, By())
        words.texts.clear()
        after = await o.tenant.library.reembed("x", "plain", By())
        assert msgspec.to_builtins(after) == msgspec.to_builtins(before)
        assert words.texts == []


async def test_each_text_is_embedded_once_and_none_after_a_restart(tmp_path: Path) -> None:
    words = HashedWords("plain", "other")
    async with organism(words, tmp_path) as o:
        library = o.tenant.library
        await library.replace("x", texts(**DOCUMENTS, d=DOCUMENTS["a"]), None, By())
        await library.replace("y", texts(a=DOCUMENTS["a"]), "other", By())
        words.texts.clear()
        await library.reembed("x", "other", By())
        assert sorted(words.texts) == sorted([DOCUMENTS["b"], DOCUMENTS["c"]])
    words.texts.clear()
    async with organism(words, tmp_path) as o:
        await o.tenant.library.query("x", "a query", 5, "hybrid", {})
        assert words.texts == ["a query"]


async def test_what_was_embedded_before_a_failure_is_not_embedded_again() -> None:
    words = Slow()
    words.may_go_on.set()
    async with organism(words) as o:
        library = o.tenant.library
        many = {f"n{number}": f"text number {number}" for number in range(256)}
        await library.replace("x", texts(**many), None, By())
        await library.append("x", texts(last="the last one"), None, By())
        words.may_go_on.clear()
        words.texts.clear()
        reembedding = asyncio.ensure_future(library.reembed("x", "other", By()))
        await words.has_begun.wait()
        words.has_begun.clear()
        words.may_go_on.set()
        words.may_go_on.clear()
        await words.has_begun.wait()
        words.fails = True
        words.may_go_on.set()
        with pytest.raises(Upstream):
            await reembedding
        assert len(words.texts) == 256
        assert (await library.index("x")).public.embedding_model == "plain"
        words.fails = False
        await library.reembed("x", "other", By())
        assert len(words.texts) == 257


async def test_vectors_that_no_index_is_of_are_dropped_at_a_start(tmp_path: Path) -> None:
    words = HashedWords("plain", "other")
    async with organism(words, tmp_path) as o:
        await o.tenant.library.replace("x", texts(**DOCUMENTS), None, By())
        await o.tenant.library.reembed("x", "other", By())
    async with organism(words, tmp_path) as o:
        words.texts.clear()
        await o.tenant.library.reembed("x", "plain", By())
        assert sorted(words.texts) == sorted(DOCUMENTS.values())
        await content(o.tenant.library, "x")


async def test_a_model_or_an_index_that_is_not_there_is_refused() -> None:
    async with organism(HashedWords("plain")) as o:
        library = o.tenant.library
        await library.replace("x", [], None, By())
        with pytest.raises(InvalidField):
            await library.reembed("x", "none", By())
        with pytest.raises(NotFound):
            await library.reembed("y", "plain", By())
