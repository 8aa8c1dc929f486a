"""What a server's embedding model may use is reserved before it is asked, and settled after, like a model's call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from organism.events.vocabulary import BudgetReserved, BudgetSettled, Event, TextsEmbedded
from organism.log.log import EventFilter
from organism.rag.hashed_words import HashedWords
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.flows.world import World
from tests.server.library.asking import PARK, TOR, LibraryClient
from tests.server.library.test_embedding_calls import NOMIC, embedded, some
from tests.server.served import PATIENCE_SECONDS, Served, served

PRICED = {**NOMIC, "batch": 1, "input_usd_per_million": 2000}


@pytest.fixture
def made(tmp_path: Path, peer: Peer) -> World:
    """An organism whose embedding models are the peer's."""
    retry = {"attempts": 1, "base_delay_s": 0.01, "max_delay_s": 0.02}
    nomic = {**PRICED, "base_url": peer.url}
    return World(tmp_path, "", {}, embeddings={"nomic": nomic, "other": {**nomic, "default": False}}, retry=retry)


async def bound(server: Served, **day: Any) -> None:
    answer = await server.call("PUT", "//v1/tenant/config", json={"budget": {"day": day}})
    assert answer.status_code == 200, answer.text


async def embed(server: Served, *texts: str) -> Any:
    return await server.call("POST", "//v1/embeddings", json={"model": "nomic", "input": list(texts)})


async def accounts(server: Served) -> list[tuple[str, int]]:
    """What was reserved, embedded and settled, in order, each with its tokens."""
    wanted = EventFilter(types=(BudgetReserved, BudgetSettled, TextsEmbedded))
    events: list[Any] = [record.event for record in await server.log.read(wanted=wanted)]
    return [(each.event_type, each.input_tokens if hasattr(each, "input_tokens") else each.tokens) for each in events]


async def until(server: Served, kind: type[Event]) -> None:
    """Wait until there is such an event."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for records in server.log.follow(0, EventFilter(types=(kind,))):
            if records:
                return


ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "embeddings": ("POST", "//v1/embeddings", {"model": "nomic", "input": "another text"}),
    "replace": ("POST", "//a1/rag/indices/a/documents", {"documents": [{"id": "n", "text": "another text"}]}),
    "append": ("POST", "//a1/rag/indices/a/documents/append", {"documents": [{"id": "n", "text": "another text"}]}),
    "patch": ("PATCH", "//a1/rag/indices/a/documents/d1", {"text": "another text"}),
    "query by vector": ("POST", "//a1/rag/indices/a/query", {"query": "tower", "mode": "vector"}),
    "query": ("POST", "//a1/rag/indices/a/query", {"query": "tower"}),
    "re-embed": ("POST", "//a1/rag/indices/a/reembed", {"embedding_model": "other"}),
}


async def test_a_spent_day_embeds_nothing_more_in_whichever_way_it_is_asked(made: World, peer: Peer) -> None:
    await peer.script(some(1), some(1))
    async with served(made.config) as server:
        library = LibraryClient(server, HashedWords())
        await library.put("a", TOR, PARK)
        asked = await embedded(peer)
        for day in ({"tokens": 10}, {"usd": 0.0201}, {"calls": 1}):
            await bound(server, **day)
            for name, (method, path, body) in ASKED.items():
                answer = await server.call(method, path, json=body, headers={"SPASS-User-Id": "dan"})
                assert (answer.status_code, answer.json()["error"]["code"]) == (429, "budget_exhausted"), name
        assert await embedded(peer) == asked
        assert await library.found("a", "1791", mode="keyword") == ["d1"]
        await library.ok("PATCH", "/a/documents/d1", {"metadata": {"lang": "de"}})


async def test_each_call_is_reserved_before_and_settled_after_with_what_it_used(made: World, peer: Peer) -> None:
    await peer.script(some(1), some(1), Answer(status=400, error="No."))
    async with served(made.config) as server:
        assert (await embed(server, "x" * 40, "y" * 40)).status_code == 200
        first = await accounts(server)
        assert [name for name, _ in first] == ["budget_reserved", "texts_embedded", "budget_settled"]
        assert [tokens for _, tokens in first][1:] == [10, 10]
        assert first[0][1] > 10
        assert (await embed(server, "z")).status_code == 400
        assert (await accounts(server))[-1] == ("budget_settled", 0)
        await bound(server, tokens=first[0][1] + 10)
        await peer.script(some(1), some(1))
        assert (await embed(server, "x" * 40, "y" * 40)).status_code == 200


async def test_what_a_call_used_before_it_failed_counts(made: World, peer: Peer) -> None:
    await peer.script(some(1), Answer(status=400, error="No."))
    async with served(made.config) as server:
        assert (await embed(server, "one", "two")).status_code == 400
        assert (await accounts(server))[1:] == [("texts_embedded", 5), ("budget_settled", 5)]


async def test_what_is_asked_at_once_is_reserved_together(made: World, peer: Peer) -> None:
    await peer.script(Answer(hang_after=0, times=0))
    async with served(made.config) as server:
        await bound(server, calls=1)
        asking = asyncio.ensure_future(embed(server, "one"))
        await until(server, BudgetReserved)
        assert (await embed(server, "two")).json()["error"]["code"] == "budget_exhausted"
        asking.cancel()


async def test_a_call_whose_client_has_left_counts_with_all_that_was_reserved(made: World, peer: Peer) -> None:
    await peer.script(Answer(hang_after=0, times=0))
    async with served(made.config) as server:
        asking = asyncio.ensure_future(embed(server, "x" * 400))
        await until(server, BudgetReserved)
        asking.cancel()
        await until(server, BudgetSettled)
        reserved, recorded, settled = await accounts(server)
        assert reserved[1] == recorded[1] == settled[1] > 0


async def test_a_call_that_a_crash_cuts_off_counts_in_the_next_life(made: World, peer: Peer) -> None:
    await peer.script(Answer(hang_after=0, times=0))
    async with made.running() as o:
        asking = asyncio.ensure_future(o.tenant.embeddings.embed("nomic", ["x" * 400]))
        await o.until(BudgetReserved)
        await o.crash()
        asking.cancel()
    async with made.running() as o:
        (settled,) = await o.records(BudgetSettled)
        (recorded,) = await o.records(TextsEmbedded)
        assert (settled.event.tokens, recorded.event.error and recorded.event.error.code) == (100, "lost")
        used = o.pump.state.folded.spend.tenant_on(o.tenant.clock.now_us()).used
        assert (used.tokens, used.calls) == (100, 1)
