"""An ingest that does not wait: its documents are there at once, and are embedded in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from organism.bootstrap import Parts
from organism.errors import Upstream
from organism.rag.hashed_words import Embedded, HashedWords
from tests.cli.command import organism
from tests.server.library.asking import DAMM, PARK, TOR, LibraryClient
from tests.server.served import TOKEN, served

MANY = [{"id": f"n{number}", "text": f"text number {number}"} for number in range(40)]


class Held(HashedWords):
    """Embeds as many portions as it may; each of the next ``failures`` fails."""

    def __init__(self, portions: int = 0) -> None:
        super().__init__("plain", "other")
        self.portions = asyncio.Semaphore(portions)
        self.failures = 0

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        if texts and not texts[0].startswith("query"):
            await self.portions.acquire()
            if self.failures:
                self.failures -= 1
                raise Upstream("The model is not there.")
        return await super().embed(model, texts)

    def go_on(self) -> None:
        for _ in range(100):
            self.portions.release()


@asynccontextmanager
async def with_library(words: Held, data: Path | None = None) -> AsyncIterator[LibraryClient]:
    async with served(data=data, parts=Parts(embeddings=words)) as server:
        yield LibraryClient(server, words)


async def accepted(library: LibraryClient, path: str, *documents: dict[str, Any]) -> Any:
    answer = await library.call("POST", f"/{path}?wait=false", {"documents": documents})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def embedded(library: LibraryClient, index: str, count: int) -> dict[str, Any]:
    """The state of the index's embedding once so many of its documents are embedded."""
    while (state := await library.ok("GET", f"/{index}/embedding"))["embedded"] != count:
        pass
    found: dict[str, Any] = state
    return found


@pytest.mark.parametrize("path", ["a/documents", "a/documents/append"])
async def test_documents_are_there_at_once_and_are_embedded_by_and_by(path: str) -> None:
    words = Held()
    async with with_library(words) as library:
        assert await accepted(library, path, TOR, *MANY) == {"index_id": "a", "ingested": 41, "doc_count": 41}
        assert (await library.ok("GET", "/a/documents/n1"))["text"] == MANY[1]["text"]
        state = {"index_id": "a", "embedding_model": "plain", "doc_count": 41, "embedded": 0, "error": None}
        assert await library.ok("GET", "/a/embedding") == state
        assert await library.found("a", "query number 7", mode="vector") == []
        assert (await library.found("a", "query 7", mode="hybrid"))[0] == "n7"
        words.portions.release()
        await embedded(library, "a", 16)
        assert len(await library.found("a", "query number", mode="vector", top_k=50)) == 16
        words.go_on()
        assert await embedded(library, "a", 41) == {**state, "embedded": 41}
        assert (await library.found("a", "query number 7", mode="vector"))[0] == "n7"


async def test_what_changes_meanwhile_is_embedded_too_and_each_text_once() -> None:
    words = Held()
    async with with_library(words) as library:
        await accepted(library, "a/documents", TOR, PARK)
        await accepted(library, "a/documents/append", DAMM, {**PARK, "id": "again"})
        await accepted(library, "b/documents", PARK)
        await library.ok("DELETE", "/a/documents/d1")
        words.go_on()
        await embedded(library, "a", 3)
        await embedded(library, "b", 1)
        assert len(words.texts) == len(set(words.texts))


async def test_a_restart_goes_on_with_what_is_not_embedded(tmp_path: Path) -> None:
    async with with_library(Held(1), tmp_path) as library:
        await accepted(library, "a/documents", *MANY)
        await embedded(library, "a", 16)
    words = Held(100)
    async with with_library(words, tmp_path) as library:
        assert (await organism("log", "verify", "--data", tmp_path)).err == ""
        await embedded(library, "a", 40)
        assert len(words.texts) == 24
        assert len(await library.found("a", "query number", mode="vector", top_k=50)) == 40


async def test_a_failure_is_reported_and_tried_again() -> None:
    words = Held(1)
    words.failures = 1
    async with with_library(words) as library:
        await accepted(library, "a/documents", TOR)
        while (state := await library.ok("GET", "/a/embedding"))["error"] is None:
            pass
        assert (state["embedded"], state["error"]) == (0, "The model is not there.")
        words.go_on()
        assert (await embedded(library, "a", 1))["error"] is None


async def test_what_cannot_be_taken_is_refused_at_once_and_leaves_nothing() -> None:
    async with with_library(Held()) as library:
        for wrong in ({"documents": [{**TOR, "text": ""}]}, {"documents": [TOR], "embedding_model": "none"}):
            await library.refused(400, "POST", "/a/documents?wait=false", wrong)
        await library.refused(400, "POST", "/a/documents?wait=soon", {"documents": [TOR]})
        await library.refused(404, "GET", "/a/embedding")


async def test_the_command_line_tells_the_progress_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("\n\n".join(f"Paragraph {number}. {'word ' * 250}" for number in range(40)))
    words = Held(100)
    async with with_library(words) as library:
        ran = await organism(
            "rag", "add", "kb", tmp_path / "long.txt", ORGANISM_URL=library.server.url, ORGANISM_TOKEN=TOKEN
        )
        assert ran.code == 0, ran.err
        assert "40 of 40 documents are embedded." in ran.err.splitlines()
        assert (await library.ok("GET", "/kb/embedding"))["embedded"] == 40
