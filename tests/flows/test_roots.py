"""Who injected is known to all that follows from it, after any number of hops and restarts (S5)."""

from __future__ import annotations

from organism.events.record import Actor
from organism.events.vocabulary import MessageDead, Root, ThreadFailed
from organism.model.commands import Inject, ReplayDeadLetter
from organism.model.thread import ROOTS_KEPT, Message
from organism.testing import Running
from tests.flows.stage import at_gate, open_gate
from tests.flows.world import MakeWorld, World

SOURCE = """
async def first(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("second", Ask(payload.text))
    return HandlerResponse(Ask(reply.text), to="last")

async def second(payload: Ask | Told, metadata: HandlerMetadata):
    if isinstance(payload, Told):
        return HandlerResponse.respond(payload)
    return HandlerResponse(Ask(payload.text), to="third")

async def third(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def last(payload: Ask, metadata: HandlerMetadata):
    await gate("last " + payload.text)

async def frail(payload: Ask, metadata: HandlerMetadata):
    if metadata.attempt == 1 and payload.text != "again":
        raise ValueError(payload.text)
    await gate("frail")
"""
LISTENERS = {
    "first": {"peers": ["second", "last"]},
    "second": {"peers": ["third"]},
    "third": {},
    "last": {},
    "frail": {},
}
ANN, BOB = Actor(principal="ann"), Actor(principal="bob")


def play(world: MakeWorld, attempts: int = 3) -> World:
    """The organism of these tests."""
    return world(SOURCE, LISTENERS, retry={"attempts": attempts})


def open_one(o: Running, name: str) -> Message:
    """The one open message of a listener."""
    return next(each for each in o.pump.state.folded.messages.values() if each.to == name)


async def test_it_is_found_again_after_hops_asks_replies_and_restarts(world: MakeWorld) -> None:
    made = play(world)
    async with made.running() as o:
        await o.do(Inject(to="first", json={"text": "x"}, actor=ANN, caller_depth=2))
        await at_gate(o, "last x")
        assert open_one(o, "last").root == Root("ann", 2)
        await o.crash()
    async with made.running() as o:
        await at_gate(o, "last x")
        assert open_one(o, "last").root == Root("ann", 2)
        await o.organism.stop(0)
    async with made.running() as o:  # from the snapshot that a stop leaves
        assert open_one(o, "last").root == Root("ann", 2)


async def test_each_injection_of_a_thread_has_its_own(world: MakeWorld) -> None:
    async with play(world).running() as o:
        thread = (await o.do(Inject(to="first", json={"text": "x"}, actor=ANN))).thread_id  # type: ignore[union-attr]  # an injection is answered so
        await o.do(Inject(to="first", json={"text": "y"}, actor=BOB, thread_id=thread))
        await at_gate(o, "last x")
        assert open_one(o, "last").root.principal == "ann"
        open_gate(o, "last x")
        await at_gate(o, "last y")
        assert open_one(o, "last").root.principal == "bob"


async def test_who_replays_a_dead_letter_lends_it_no_right_of_his_own(world: MakeWorld) -> None:
    async with play(world, attempts=1).running() as o:
        await o.do(Inject(to="frail", json={"text": "x"}, actor=ANN, caller_depth=1))
        dead = await o.until(MessageDead)
        await o.until(ThreadFailed)
        await o.do(ReplayDeadLetter(message_id=dead.event.message, json={"text": "again"}, actor=BOB))
        await at_gate(o, "frail")
        assert open_one(o, "frail").root == Root("ann", 1)


async def test_a_thread_that_is_injected_into_for_ever_keeps_what_is_open(world: MakeWorld) -> None:
    async with play(world).running(on_disk=False) as o:
        first = await o.do(Inject(to="last", json={"text": "held"}, actor=ANN))
        thread_id: str = first.thread_id  # type: ignore[union-attr]  # an injection is answered so
        for number in range(ROOTS_KEPT + 10):
            await o.do(Inject(to="third", json={"text": str(number)}, actor=BOB, thread_id=thread_id))
        await o.pump.settled()
        thread = o.pump.state.folded.threads[thread_id]
        assert thread.roots is not None
        assert len(thread.roots) < ROOTS_KEPT
        assert open_one(o, "last").root == Root("ann", 0)
