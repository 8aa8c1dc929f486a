"""Same key, same answer: after a restart too, once only, for a day, bound to method, path and body (G5)."""

from __future__ import annotations

import asyncio

import pytest

from organism.bootstrap import Parts
from organism.errors import InvalidPayload, MailboxFull, RequestInProgress
from organism.events.vocabulary import AgentPaused, MessageHandled, ThreadCreated
from organism.model.commands import (
    Idempotency,
    Inject,
    PauseAgent,
    PauseThread,
    ResumeAgent,
)
from tests.flows.disk import Disk
from tests.flows.stage import decided
from tests.flows.world import MakeWorld, World

SOURCE = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    if payload.text == "bad":
        raise ValueError("bad")
    return HandlerResponse.respond(Told(payload.text))
"""
ONCE = Idempotency("key-1", "POST", "/inject", "digest of the body")


def once(**changes: str) -> Idempotency:
    """The key of the tests, with something changed."""
    fields = {"key": ONCE.key, "method": ONCE.method, "path": ONCE.path, "digest": ONCE.digest, **changes}
    return Idempotency(**fields)


def inject(text: str = "x", idempotency: Idempotency = ONCE) -> Inject:
    """An injection under a key."""
    return Inject(to="worker", json={"text": text}, idempotency=idempotency)


def plain(world: MakeWorld) -> World:
    """One worker."""
    return world(SOURCE, {"worker": {}}, retry={"attempts": 1})


@pytest.mark.parametrize("changes", [{"key": "key-2"}, {"method": "WS"}, {"path": "/other"}])
async def test_a_key_is_bound_to_its_method_and_path(world: MakeWorld, changes: dict[str, str]) -> None:
    async with plain(world).running() as o:
        first = await o.do(inject())
        assert await o.do(inject("y", once(digest="another", **changes))) != first


async def test_of_many_calls_at_once_one_is_done(world: MakeWorld) -> None:
    async with plain(world).running() as o:
        results = await asyncio.gather(*(o.do(inject()) for _ in range(8)), return_exceptions=True)
        assert len([result for result in results if not isinstance(result, RequestInProgress)]) == 1
        assert len(await o.records(ThreadCreated)) == 1


async def test_a_caller_who_goes_away_does_not_free_its_key(world: MakeWorld) -> None:
    disk = Disk()
    async with plain(world).running(parts=Parts(driver=disk)) as o:
        disk.hold()
        first = asyncio.create_task(o.do(inject()))
        await decided(o)
        first.cancel()
        await asyncio.wait([first])
        with pytest.raises(RequestInProgress):
            await o.do(inject())
        disk.release()
        await o.until(MessageHandled)
        await o.do(inject())
        assert len(await o.records(ThreadCreated)) == 1


async def test_what_was_refused_is_not_kept(world: MakeWorld) -> None:
    async with world(SOURCE, {"worker": {}}, limits={"max_queue_per_agent": 1}).running() as o:
        with pytest.raises(InvalidPayload):
            await o.do(Inject(to="worker", json={"wrong": 1}, idempotency=ONCE))
        first = await o.do(inject("y", once(digest="corrected")))
        assert await o.do(inject("y", once(digest="corrected"))) == first
        await o.do(PauseAgent(agent="worker"))
        await o.do(Inject(to="worker", json={"text": "fills it"}))
        with pytest.raises(MailboxFull):
            await o.do(inject("z", once(key="key-3")))
        await o.do(ResumeAgent(agent="worker"))
        await o.until(MessageHandled, after=o.log.head)
        await o.do(inject("z", once(key="key-3")))


@pytest.mark.parametrize("what", ["agent", "thread"])
async def test_a_call_that_changed_nothing_is_answered_again_too(world: MakeWorld, what: str) -> None:
    async with plain(world).running() as o:
        await o.do(PauseAgent(agent="worker"))
        thread = (await o.inject("worker", {"text": "x"})).thread_id
        await o.do(PauseThread(thread_id=thread))
        command = (
            PauseAgent(agent="worker", idempotency=ONCE)
            if what == "agent"
            else PauseThread(thread_id=thread, idempotency=ONCE)
        )
        first = await o.do(command)
        await o.do(ResumeAgent(agent="worker"))
        assert await o.do(command) == first
        assert len(await o.records(AgentPaused)) == 1
