"""Lives of an organism in which all that can happen to a message happens, in an order that a seed chooses."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from organism.events.record import Actor
from organism.events.vocabulary import (
    ApprovalRequested,
    MessageDead,
    MessageStarted,
    StepStarted,
)
from organism.model.commands import (
    Command,
    DiscardDeadLetter,
    KillThread,
    PauseAgent,
    PauseOrganism,
    PauseThread,
    ReplayDeadLetter,
    ResolveApproval,
    ResolveIndeterminate,
    ResumeAgent,
    ResumeOrganism,
    ResumeThread,
)
from organism.testing import Running
from tests.flows.spender import PRICE, says, script
from tests.flows.stage import at_gate, open_gate
from tests.flows.world import MakeWorld, World

SOURCE = """
from organism import CompleteError

async def player(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad" or payload.text == "flaky" and metadata.attempt == 1:
        raise ValueError("not yet")
    if payload.text == "stray":
        return HandlerResponse(payload, to="last")
    if payload.text == "approve":
        await metadata.approve({"sum": 3})
    return HandlerResponse.respond(Told("done"))

async def asker(payload: Ask, metadata: HandlerMetadata):
    await metadata.now()
    await metadata.ask("player", payload)
    await metadata.effect("look", look, kind="pure")
    return HandlerResponse.respond(Told("asked"))

async def sender(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(payload, to="player"), HandlerResponse(payload, to="asker")]

async def look(key):
    return "seen"

async def payer(payload: Ask, metadata: HandlerMetadata):
    await metadata.effect("pay", pay, kind="unsafe")
    return HandlerResponse.respond(Told("paid"))

async def pay(key):
    await gate("pay")


async def holder(payload: Ask, metadata: HandlerMetadata):
    await gate(payload.text)
    return HandlerResponse.respond(Told("held"))

async def thinker(payload: Ask, metadata: HandlerMetadata):
    said = await metadata.complete([{"role": "user", "content": payload.text}], max_tokens=100)
    return HandlerResponse.respond(Told(said.text))
"""
ANN = Actor(user="ann", principal="ann's token")
LISTENERS: dict[str, dict[str, Any]] = {
    "player": {},
    "asker": {"peers": ["player"]},
    "sender": {"peers": ["player", "asker"]},
    "payer": {"max_concurrent": 3},
    "holder": {"max_concurrent": 1},
    "thinker": {"agent": True, "model": "m"},
    "more": {"handler": "player", "group": "others"},
    "last": {"handler": "player"},
}


def playing(world: MakeWorld) -> World:
    """The organism that lives them."""
    model = {"provider": "scripted", "script": "script.yaml", "price": PRICE}
    made = world("", {})
    script(made, *[says("thought", 10, 5)] * 20)
    return world(SOURCE, LISTENERS, models={"m": model}, retry={"attempts": 2, "base_delay_s": 0.01})


class History:
    """What happens to ``made`` while it runs as ``o``."""

    def __init__(self, made: World, o: Running, chance: random.Random) -> None:
        self.made, self.o, self._chance = made, o, chance
        self._count = 0

    async def happen(self) -> None:
        """Everything once, much of it twice."""
        acts: tuple[Callable[[], Awaitable[None]], ...] = (
            self.go_well,
            self.fail,
            self.fail_for_good_and_be_sent_again,
            self.fail_with_another,
            self.be_refused,
            self.be_asked_for,
            self.be_killed,
            self.wait_for_an_agent,
            self.wait_in_a_thread,
            self.wait_for_the_organism,
            self.reload,
        )
        for act in self._chance.sample(acts * 2, len(acts) + len(acts) // 2):
            await act()

    async def go_well(self) -> None:
        for to in ("asker", "thinker", "sender"):
            await self.o.inject(to, {"text": "fine"}, wait=True)

    async def fail(self) -> None:
        await self.o.inject(self._chance.choice(["player", "asker"]), {"text": "flaky"}, wait=True)

    async def fail_for_good_and_be_sent_again(self) -> None:
        failed = await self.o.inject("player", {"text": "bad"}, wait=True)
        (dead,) = await self.o.records(MessageDead, thread=failed.thread_id)
        if self._chance.random() < 1 / 2:
            await self._do(ReplayDeadLetter(message_id=dead.event.message, json={"text": "fine"}))
        else:
            await self._do(DiscardDeadLetter(message_id=dead.event.message))
        assert await self.o.tenant.ended(failed.thread_id, 10)

    async def fail_with_another(self) -> None:
        await self.o.inject("asker", {"text": "bad"}, wait=True)

    async def be_refused(self) -> None:
        await self.o.inject("player", {"text": "stray"}, wait=True)

    async def be_asked_for(self) -> None:
        asked = await self.o.inject("player", {"text": "approve"})
        approval = (await self.o.until(ApprovalRequested, thread=asked.thread_id)).event.approval
        act: Any = self._chance.choice(["approve", "reject", "kill", ""])
        if act in {"approve", "reject"}:
            await self._do(ResolveApproval(approval=approval, decision=act))
            assert await self.o.tenant.ended(asked.thread_id, 10)
        elif act == "kill":
            await self._do(KillThread(thread_id=asked.thread_id))

    async def be_killed(self) -> None:
        """One runs, another waits for its start."""
        gate = self._gate()
        held = await self.o.inject("holder", {"text": gate})
        await at_gate(self.o, gate)
        await self.o.inject("holder", {"text": gate}, thread_id=held.thread_id)
        if self._chance.random() < 1 / 2:
            await self._do(KillThread(thread_id=held.thread_id))
        open_gate(self.o, gate)
        assert await self.o.tenant.ended(held.thread_id, 10)

    async def wait_for_an_agent(self) -> None:
        await self._do(PauseAgent(agent="player"))
        waiting = [await self.o.inject("player", {"text": "fine"}) for _ in range(2)]
        await self._do(ResumeAgent(agent="player"))
        for each in waiting:
            assert await self.o.tenant.ended(each.thread_id, 10)

    async def wait_in_a_thread(self) -> None:
        gate = self._gate()
        held = await self.o.inject("holder", {"text": gate})
        await at_gate(self.o, gate)
        await self._do(PauseThread(thread_id=held.thread_id))
        await self.o.inject("player", {"text": "fine"}, thread_id=held.thread_id)
        open_gate(self.o, gate)
        if self._chance.random() < 1 / 2:
            await self._do(ResumeThread(thread_id=held.thread_id))
            assert await self.o.tenant.ended(held.thread_id, 10)

    async def wait_for_the_organism(self) -> None:
        await self._do(PauseOrganism())
        waiting = await self.o.inject("asker", {"text": "fine"})
        if self._chance.random() < 1 / 2:
            await self._do(KillThread(thread_id=waiting.thread_id))
        await self._do(ResumeOrganism())
        assert await self.o.tenant.ended(waiting.thread_id, 10)

    async def reload(self) -> None:
        """A listener comes or goes; one that goes has perhaps a message that waits."""
        listeners = dict(self.made.listeners)
        if listeners.pop("more", None) is None:
            listeners = {"more": {"handler": "player", "description": f"Comes again {self._count}"}, **listeners}
        elif self._chance.random() < 1 / 2:
            await self._do(PauseAgent(agent="more"))
            await self.o.inject("more", {"text": "fine"})
        self.made.write(SOURCE, listeners)
        await self.o.organism.reload()

    async def leave_open(self) -> None:
        """What the next life finds: two effects of which nobody knows how they ended, a handling, a question."""
        for _ in range(2):
            paid = await self.o.inject("payer", {"text": "x"})
            await self.o.until(StepStarted, thread=paid.thread_id)
        held = await self.o.inject("holder", {"text": "pay"})
        await self.o.until(MessageStarted, thread=held.thread_id)
        await self.o.inject("asker", {"text": "approve"})

    async def settle(self) -> None:
        """An operator says how one of the effects ended."""
        step = await self.o.until(StepStarted, unknown=True)
        outcome: Any = self._chance.choice(["done", "redo", "fail"])
        open_gate(self.o, "pay")
        await self._do(ResolveIndeterminate(id=f"{step.event.message}:{step.event.step}", outcome=outcome))
        assert await self.o.tenant.ended(step.stream, 10)

    async def _do(self, command: Command) -> None:
        """A person does it."""
        await self.o.do(replace(command, actor=ANN))

    def _gate(self) -> str:
        self._count += 1
        return f"gate-{self._count}-{self.o.log.head}"
