"""What a library asks of its embedding model, counted at a server that the model is behind: each text once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from organism.rag.hashed_words import HashedWords
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.flows.world import World
from tests.server.library.asking import DAMM, PARK, TOR, LibraryClient
from tests.server.served import Served, served
from tests.server.surfaces.test_embeddings import vectors

NOMIC = {"provider": "openai", "model": "nomic-embed-text", "dim": 2, "batch": 100, "default": True}


@pytest.fixture
def made(tmp_path: Path, peer: Peer) -> World:
    """An organism whose only embedding model is the peer's."""
    retry = {"attempts": 1, "base_delay_s": 0.01, "max_delay_s": 0.02}
    return World(tmp_path, "", {}, embeddings={"nomic": {**NOMIC, "base_url": peer.url}}, retry=retry)


def library_of(server: Served) -> LibraryClient:
    return LibraryClient(server, HashedWords())


async def embedded(peer: Peer) -> list[list[str]]:
    """The texts of each request to the peer."""
    return [request["body"]["input"] for request in await peer.requests()]


def some(count: int) -> Answer:
    return vectors(*([1.0, float(at)] for at in range(count)))


async def test_a_restart_and_what_asks_no_question_embed_nothing(made: World, peer: Peer) -> None:
    await peer.script(some(2), some(1))
    async with served(made.config, made.data) as server:
        await library_of(server).put("a", TOR, PARK)
    async with served(made.config, made.data) as server:
        library = library_of(server)
        assert await library.ids("a") == ["d1", "d2"]
        assert (await library.ok("GET", "/a/documents/d1"))["text"] == TOR["text"]
        assert await library.found("a", "1791", mode="keyword") == ["d1"]
        await library.ok("DELETE", "/a/documents/d1")
        assert await embedded(peer) == [[TOR["text"], PARK["text"]]]
        assert await library.found("a", "park?", mode="vector") == ["d2"]
        assert await embedded(peer) == [[TOR["text"], PARK["text"]], ["park?"]]


async def test_a_patch_embeds_a_new_text_and_no_metadata(made: World, peer: Peer) -> None:
    await peer.script(some(2), some(1))
    async with served(made.config) as server:
        library = library_of(server)
        await library.put("a", TOR, PARK)
        for patch in ({"metadata": {"lang": "de"}}, {"text": TOR["text"]}, {"text": PARK["text"], "metadata": {}}):
            await library.ok("PATCH", "/a/documents/d1", patch)
        assert len(await embedded(peer)) == 1
        await library.ok("PATCH", "/a/documents/d1", {"text": "Der Reichstag.", "metadata": {"lang": "de"}})
        assert (await embedded(peer))[1:] == [["Der Reichstag."]]


async def test_the_same_text_is_embedded_once_whatever_it_is_called(made: World, peer: Peer) -> None:
    await peer.script(some(2), some(1))
    async with served(made.config, made.data) as server:
        library = library_of(server)
        await library.put("a", TOR, {**TOR, "id": "copy"}, PARK)
        await library.put("a", PARK, {**TOR, "metadata": {"lang": "de"}})
        await library.add("b", {**TOR, "id": "other"})
    async with served(made.config, made.data) as server:
        await library_of(server).add("c", TOR, DAMM)
        assert await library_of(server).ids("a") == ["d1", "d2"]
    assert await embedded(peer) == [[TOR["text"], PARK["text"]], [DAMM["text"]]]


async def test_many_texts_go_in_requests_of_the_size_that_the_model_takes(made: World, peer: Peer) -> None:
    await peer.script(some(100), some(100), some(56))
    async with served(made.config) as server:
        await library_of(server).put("a", *({"id": f"n{at}", "text": f"text {at}"} for at in range(256)))
    assert [len(each) for each in await embedded(peer)] == [100, 100, 56]


WRONG: dict[str, Answer] = {
    "an error": Answer(status=500),
    "too few vectors": some(1),
    "vectors of another size": vectors([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    "no numbers": Answer(body=b'{"data": [{"index": 0, "embedding": ["x"]}, {"index": 1, "embedding": [null]}]}'),
    "no JSON": Answer(body=b"<html>"),
}


@pytest.mark.parametrize("answer", WRONG)
async def test_a_model_that_fails_leaves_the_index_as_it_was(made: World, peer: Peer, answer: str) -> None:
    await peer.script(some(1), WRONG[answer], WRONG[answer], some(2))
    async with served(made.config) as server:
        library = library_of(server)
        await library.put("a", TOR)
        both: dict[str, Any] = {"documents": [PARK, DAMM]}
        for path in ("/a/documents", "/b/documents/append"):
            assert (await library.refused(502, "POST", path, both))["code"] == "upstream_error"
        assert await library.ids("a") == ["d1"]
        await library.refused(404, "GET", "/b")
        assert (await library.add("a", PARK, DAMM))["doc_count"] == 3
