"""Retries, dead letters, timeouts, depth, flood: nothing vanishes, everything ends (G7, G8)."""

from __future__ import annotations

import pytest

from organism.errors import AlreadyResolved, InvalidPayload, NotFound
from organism.model.commands import DiscardDeadLetter, ReplayDeadLetter
from tests.flows.world import MakeWorld

FLAKY = """
TRIES = []

async def flaky(payload: Ask, metadata: HandlerMetadata):
    TRIES.append(metadata.attempt)
    if len(TRIES) < int(payload.text):
        raise RuntimeError(f"not yet, attempt {metadata.attempt}")
    return HandlerResponse.respond(Told(str(TRIES)))
"""


async def test_a_handling_that_fails_for_good_is_a_dead_letter_and_its_thread_an_error(world: MakeWorld) -> None:
    async with world(FLAKY, {"flaky": {}}).running() as o:
        outcome = await o.inject("flaky", {"text": "99"}, wait=True)
        dead = await o.events("message_dead", thread=outcome.thread_id)
    assert outcome.thread is not None
    assert (outcome.thread["status"], outcome.thread["error"]) == ("error", "RuntimeError: not yet, attempt 3")
    assert (dead[0].data["code"], dead[0].data["attempts"]) == ("handler_error", 3)


async def test_a_dead_letter_is_replayed_with_an_edited_payload_to_the_same_caller(world: MakeWorld) -> None:
    made = world(
        FLAKY
        + """
async def caller(payload: Ask | Told, metadata: HandlerMetadata):
    if isinstance(payload, Told):
        return HandlerResponse.respond(Told("caller got " + payload.text))
    return HandlerResponse(Ask(payload.text), to="flaky")
""",
        {"flaky": {}, "caller": {"peers": ["flaky"]}},
    )
    async with made.running() as o:
        outcome = await o.inject("caller", {"text": "99"}, wait=True)
        dead = (await o.events("message_dead"))[0].data["message"]
        again = await o.do(ReplayDeadLetter(message_id=dead, json={"text": "1"}))
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert (await o.thread(outcome.thread_id))["status"] == "completed"
        assert (await o.replies(outcome.thread_id))[-1] == {"text": "caller got [1, 2, 3, 1]"}
        with pytest.raises(AlreadyResolved, match="replayed already"):
            await o.do(ReplayDeadLetter(message_id=dead))
    assert again.position > outcome.position


async def test_a_discarded_dead_letter_is_gone(world: MakeWorld) -> None:
    async with world(FLAKY, {"flaky": {}}).running() as o:
        await o.inject("flaky", {"text": "99"}, wait=True)
        dead = (await o.events("message_dead"))[0].data["message"]
        await o.do(DiscardDeadLetter(message_id=dead))
        assert await o.log.row("dead_letters", dead) is None
        for act in (ReplayDeadLetter, DiscardDeadLetter):
            with pytest.raises(AlreadyResolved, match="discarded already"):
                await o.do(act(message_id=dead))
            with pytest.raises(NotFound):
                await o.do(act(message_id="msg-none"))


async def test_a_thread_with_too_much_open_sends_no_more(world: MakeWorld) -> None:
    made = world(
        """
        async def flooder(payload: Ask, metadata: HandlerMetadata):
            return [HandlerResponse(Ask(str(n)), to="sink") for n in range(20)]

        async def sink(payload: Ask, metadata: HandlerMetadata):
            return None
        """,
        {"flooder": {"peers": ["sink"]}, "sink": {}},
        limits={"max_open_per_thread": 10},
    )
    async with made.running() as o:
        outcome = await o.inject("flooder", {"text": ""}, wait=True)
        refused = await o.events("message_refused", thread=outcome.thread_id)
    assert {event.data["why"] for event in refused} == {"flood"}
    assert 10 <= len(refused) <= 12


async def test_a_refused_send_tells_the_agent_one_generic_error(world: MakeWorld) -> None:
    made = world(
        """
        async def curious(payload: Ask | SystemError, metadata: HandlerMetadata):
            if isinstance(payload, SystemError):
                return HandlerResponse.respond(Told(f"{payload.code}: {payload.message}"))
            return HandlerResponse(Ask("x"), to=payload.text)

        async def forbidden(payload: Ask, metadata: HandlerMetadata):
            return None
        """,
        {"curious": {}, "forbidden": {}},
    )
    async with made.running() as o:
        missing = await o.inject("curious", {"text": "nobody"}, wait=True)
        forbidden = await o.inject("curious", {"text": "forbidden"}, wait=True)
    assert missing.replies == forbidden.replies
    assert missing.replies[0]["text"].startswith("routing: ")


async def test_a_refused_injection_leaves_no_trace(world: MakeWorld) -> None:
    async with world(FLAKY, {"flaky": {}}).running() as o:
        head = o.log.head
        with pytest.raises(InvalidPayload):
            await o.inject("flaky", {"wrong": 1})
        with pytest.raises(NotFound):
            await o.inject("nobody", {"text": "x"})
        assert o.log.head == head
