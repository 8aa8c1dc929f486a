"""A handling while it runs: its clock, its slot, and the answers that it waits for.

While a handler waits for an answer its slot is free and its line is open; it goes on when the answer is on disk and it
has both again; a turn of a model that acts by steps alone goes on when it is decided (adr/0044). While it waits for a
model its line stays shut: one turn at a time for each agent and thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from organism.config.settings import Listener
from organism.log.log import Log
from organism.model.thread import Message, Step
from organism.pump.feed import Feed
from organism.pump.models import Models
from organism.pump.signal import Signal
from organism.pump.story import Story
from organism.pump.timers import Timers
from organism.pump.unit import Chance, Decision, State, Tell


class ReplayDiverged(BaseException):
    """A step does not fit its record. Not an ``Exception``, so that no handler takes it for a failure of its own."""


class Desk(Protocol):
    """What a handling asks of the pump."""

    log: Log
    state: State
    chance: Chance
    timers: Timers
    resumes: Signal
    rests: Signal
    models: Models
    feed: Feed
    on_broken: Callable[[BaseException], None]
    outcome_of: Callable[[Awaitable[Any]], Coroutine[Any, Any, tuple[Any, Exception | None]]]

    def write(self, decision: Decision, tell: Tell | None = None) -> None:
        """Append the decision; ``tell`` is called once it is on disk."""

    async def commit(self, decision: Decision) -> Decision:
        """Append the decision and wait until it is on disk."""

    async def settled(self) -> None:
        """Wait until all that is decided is on disk."""

    def is_paused(self, message: Message) -> bool:
        """Whether the message may not go on now."""


class Run:
    """One run of a handler. ``left_us`` is the running time it still has.

    ``handler`` is what is called with the payload and nothing else first; None if there is more to do than that.
    ``pending`` counts the answers it waits for; ``story`` is what it has shown of itself, if anything.
    """

    __slots__ = (
        "attempt",
        "dead",
        "diverged",
        "handler",
        "has_slot",
        "left_us",
        "listener",
        "message",
        "number",
        "over",
        "pending",
        "pump",
        "ran_at",
        "rules",
        "started_at",
        "story",
        "task",
        "turn",
        "waiters",
    )

    def __init__(self, pump: Desk, message: Message, listener: Listener, started_at: int) -> None:
        self.message = message
        self.listener = listener
        asks_first = listener.approval or listener.confirm or listener.destroys
        self.handler = None if asks_first or listener.blocking else listener.handler
        self.rules = pump.state.rules
        self.pump = pump
        self.started_at = self.ran_at = started_at
        self.left_us = int(listener.timeout_s * 1_000_000)
        self.attempt = message.starts
        self.number = 0
        self.pending = 0
        self.has_slot = True
        self.dead = False
        self.diverged = ""
        self.task: asyncio.Task[None] | None = None
        self.story: Story | None = None
        self.turn: asyncio.Future[None] | None = None
        self.waiters: dict[int, asyncio.Future[None]] = {}
        self.over: list[Step] = []

    def step_over(self, step: Step) -> bool:
        """A step got its result in a decision. True if the handler gets it without a slot, since it waits for more."""
        if step.number not in self.waiters:
            return False
        self.pending -= 1
        if self.pending:
            return True
        self.pump.state.boxes.go_on(self.message)
        return False

    def committed(self, step: Step) -> None:
        """The result of a step is on disk."""
        self.over.append(step)
        if self.has_slot or self.pending:
            self._hand_over()

    def go(self) -> None:
        """The handler has its slot and its line again."""
        if not self.pending and not self.has_slot:
            self.has_slot = True
            self.ran_at = self.pump.state.now()
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)
        self._hand_over()

    def _hand_over(self) -> None:
        for step in self.over:
            waiter = self.waiters.pop(step.number, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self.over.clear()

    def spent(self, now: int) -> bool:
        """Whether its own running time is over."""
        return self.has_slot and now - self.ran_at > self.left_us

    def next_number(self) -> int:
        """The number of the step that begins. Raises ``CancelledError`` once the handling is over."""
        if self.dead:
            raise asyncio.CancelledError
        if self.diverged:
            raise ReplayDiverged(self.diverged)
        self.number += 1
        return self.number

    def decide(self) -> Decision:
        """Begin a decision of this handling. Raises ``CancelledError`` once it is over."""
        if self.dead:
            raise asyncio.CancelledError
        return self.pump.state.decide(self.message.thread, self.message)

    def recorded(self, number: int, kind: str, digest: str) -> Step | None:
        """The record of this step, if there is one. A record that does not fit stops the handling."""
        step = self.message.steps.get(number) if self.message.steps else None
        if step is None or (step.kind == kind and step.input == digest):
            return step
        recorded, now = f"{step.kind} with input {step.input[:12]}", f"{kind} with input {digest[:12]}"
        self.diverged = f"Step {number} is recorded as {recorded}; now it is {now}."
        raise ReplayDiverged(self.diverged)

    def begin(self, decision: Decision, number: int, kind: str, digest: str, more: dict[str, Any]) -> Step:
        """Say that the step begins."""
        message = self.message
        data = {"message": message.id, "agent": message.to, "step": number, "kind": kind, "input": digest, **more}
        decision.add("step_started", data, thread=message.thread.id)
        assert message.steps is not None  # noqa: S101 - the fold made it; narrows the type
        return message.steps[number]

    def suspend(self, step: Step) -> None:
        """From here the handler waits for the step's answer: its slot is free, its clock stands still."""
        self.waiters[step.number] = asyncio.get_running_loop().create_future()
        self.pending += 1
        if self.has_slot:
            self._lay_down_slot(keeps_line=step.kind == "complete")
        elif step.kind != "complete":
            self.pump.state.boxes.open_line(self.message)

    def _lay_down_slot(self, *, keeps_line: bool) -> None:
        self.has_slot = False
        self.pump.rests.fire()
        self.left_us -= self.pump.state.now() - self.ran_at
        self.pump.state.boxes.wait(self.message, keeps_line=keeps_line)

    async def answer(self, step: Step) -> None:
        """Wait until the step has its result and the handler may go on."""
        if step.number not in self.waiters:
            if step.ok is not None:
                return
            self.suspend(step)
            self.pump.write(self.decide())
        try:
            await self.waiters[step.number]
        except asyncio.CancelledError:
            await self._give_up(step)
            raise

    async def _give_up(self, step: Step) -> None:
        """The handler waits for this answer no more: before it goes on it has its slot and its line again."""
        if self.dead or self.waiters.pop(step.number, None) is None:
            return
        if step.ok is None:
            self.pending -= 1
            if not self.pending:
                self.pump.state.boxes.go_on(self.message)
                self.pump.write(self.decide())
        if not self.pending and not self.has_slot:
            self.turn = asyncio.get_running_loop().create_future()
            await self.turn

    async def gate(self, *, keeps_line: bool = False) -> None:
        """While its agent, its thread or the organism is paused, a handler waits at its next step."""
        while self.pump.is_paused(self.message) and not self.dead:
            if self.has_slot:
                self._lay_down_slot(keeps_line=keeps_line)
                self.pump.state.boxes.go_on(self.message)
                self.pump.write(self.decide())
                self.turn = asyncio.get_running_loop().create_future()
                await self.turn
            else:
                await self.pump.resumes.wait()
