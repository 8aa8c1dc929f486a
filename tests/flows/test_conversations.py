"""The second conversation: what a happy path never shows."""

from __future__ import annotations

import asyncio

from organism.events.vocabulary import MessageHandled, MessageStarted
from organism.model.commands import PauseAgent, ResumeAgent
from tests.flows.world import MakeWorld

ECHO = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("echo", Ask(payload.text))
    return HandlerResponse.respond(Told(f"{payload.text} → {reply.text}"))

async def echo(payload: Ask, metadata: HandlerMetadata):
    await asyncio.sleep(0)
    return HandlerResponse.respond(Told(payload.text.upper()))
"""


async def test_a_asks_b_asks_a(world: MakeWorld) -> None:
    made = world(
        """
        async def a(payload: Ask, metadata: HandlerMetadata):
            if payload.text == "inner":
                return HandlerResponse.respond(Told("from the inner a"))
            reply = await metadata.ask("b", Ask("b"))
            return HandlerResponse.respond(Told(f"outer: {reply.text}"))

        async def b(payload: Ask, metadata: HandlerMetadata):
            reply = await metadata.ask("a", Ask("inner"))
            return HandlerResponse.respond(Told(f"b: {reply.text}"))
        """,
        {"a": {"peers": ["b"], "max_concurrent": 1}, "b": {"peers": ["a"], "max_concurrent": 1}},
    )
    async with made.running() as o:
        outcome = await o.inject("a", {"text": "start"}, wait=True)
    assert outcome.replies == ({"text": "outer: b: from the inner a"},)


async def test_twenty_askers_in_twenty_slots_stop_nobody(world: MakeWorld) -> None:
    made = world(
        ECHO, {"asker": {"peers": ["echo"], "max_concurrent": 20}, "echo": {}}, limits={"max_concurrent_handlers": 20}
    )
    async with made.running() as o:
        outcomes = await asyncio.gather(*(o.inject("asker", {"text": f"t{n}"}, wait=True) for n in range(20)))
    assert all(outcome.thread is not None and outcome.thread["status"] == "completed" for outcome in outcomes)


async def test_a_reply_goes_to_the_caller_of_the_call_it_answers(world: MakeWorld) -> None:
    """Without ``ask``: the caller handles the reply in its own call, and answers its own caller."""
    made = world(
        """
        async def front(payload: Ask | Told, metadata: HandlerMetadata):
            if isinstance(payload, Told):
                return HandlerResponse.respond(Told(f"{metadata.from_id} said {payload.text}"))
            return HandlerResponse(Ask(payload.text), to="back")

        async def back(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told(payload.text[::-1]))
        """,
        {"front": {"peers": ["back"]}, "back": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("front", {"text": "abc"}, wait=True)
    assert outcome.replies == ({"text": "back said cba"},)


async def test_ten_thousand_waiting_messages_delay_another_thread_by_one_handling(world: MakeWorld) -> None:
    made = world(
        """
        async def flooder(payload: Ask, metadata: HandlerMetadata):
            return [HandlerResponse(Ask(str(n)), to="worker") for n in range(9_999)]

        async def worker(payload: Ask, metadata: HandlerMetadata):
            return None
        """,
        {"flooder": {"peers": ["worker"]}, "worker": {"max_concurrent": 1}},
    )
    async with made.running() as o:
        await o.do(PauseAgent(agent="worker"))
        flood = await o.inject("flooder", {"text": "go"})
        await o.until(MessageHandled, thread=flood.thread_id, agent="flooder")
        await o.do(ResumeAgent(agent="worker"))
        other = await o.inject("worker", {"text": "me too"}, wait=True)
        starts = [record for record in await o.records(MessageStarted) if record.event.agent == "worker"]
    begun_at = next(record.position for record in starts if record.thread == other.thread_id)
    between = [record for record in starts if other.position < record.position < begun_at]
    assert len(between) <= 1


async def test_sender_and_receiver_never_share_an_object(world: MakeWorld) -> None:
    made = world(
        """
        KEPT = []

        @dataclass
        class Names:
            names: list[str] = field(default_factory=list)

        async def giver(payload: Ask, metadata: HandlerMetadata):
            KEPT.append(Names(["a"]))
            return HandlerResponse(KEPT[0], to="taker")

        async def taker(payload: Names, metadata: HandlerMetadata):
            payload.names.append("changed")
            return HandlerResponse(Told(f"{KEPT[0].names} {KEPT[0] is payload}"), to="console")
        """,
        {"giver": {"peers": ["taker"]}, "taker": {"payload_class": "Names", "peers": ["console"]}},
    )
    async with made.running() as o:
        outcome = await o.inject("giver", {"text": ""}, wait=True)
    assert outcome.replies == ({"text": "['a'] False"},)
