"""A handling while it runs. While it waits, its slot is free and its line open; but shut while it waits for a model."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from msgspec import field

from organism.config.settings import Listener
from organism.events.entity import Entity
from organism.events.record import Content
from organism.events.vocabulary import StepError, StepKind, StepStarted
from organism.model.thread import Message, Step
from organism.pump.decide.decision import Decision
from organism.pump.rules import Rules
from organism.pump.run import recall
from organism.pump.run.writer import Runtime
from organism.pump.stream.run_stream import PAYLOADS_AN_ENTRY, RunStream


class ReplayDiverged(BaseException):
    """A step does not fit its record. Not an ``Exception``, so that no handler takes it for a failure of its own."""


class Handling(Entity):
    """One run of a handler."""

    runtime: Runtime
    message: Message
    listener: Listener
    started_at: int
    rules: Rules
    attempt: int
    left_us: int  # of its running time, when it last got its slot
    ran_at: int  # when that was
    number: int = 0
    pending: int = 0  # answers that it waits for
    has_slot: bool = True
    dead: bool = False  # it is over, whatever its code still does
    diverged: str = ""
    task: asyncio.Task[None] | None = None
    stream: RunStream | None = None  # what it has shown of itself
    _turn: asyncio.Future[None] | None = None
    _waiters: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    _answered: list[Step] = field(default_factory=list)

    @classmethod
    def begun(cls, runtime: Runtime, message: Message, listener: Listener, at: int) -> Handling:
        """The handling of a message whose start is on disk since ``at``."""
        left_us = int(listener.timeout_s * 1_000_000)
        return cls(runtime, message, listener, at, runtime.state.rules, message.starts, left_us, at)

    def open_stream(self) -> RunStream:
        """What it shows of itself. Raises ``CancelledError`` once it is over."""
        if self.dead:
            raise asyncio.CancelledError
        if self.stream is None:
            most_bytes = PAYLOADS_AN_ENTRY * self.rules.limits.max_payload_bytes
            self.stream = RunStream(self.runtime, self.message, most_bytes)
        return self.stream

    def end(self) -> None:
        """It is over: what its code still does comes to nothing."""
        self.dead = True
        if self.stream is not None:
            self.stream.close()

    # -- steps

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
        return self.runtime.state.decide(self.message.thread, self.message)

    def recorded(self, number: int, kind: StepKind, digest: str) -> Step | None:
        """The record of this step, if there is one. A record that does not fit stops the handling."""
        step = self.message.steps.get(number) if self.message.steps else None
        if step is None or (step.kind == kind and step.input == digest):
            return step
        recorded, now = f"{step.kind} with input {step.input[:12]}", f"{kind} with input {digest[:12]}"
        self.diverged = f"Step {number} is recorded as {recorded}; now it is {now}."
        raise ReplayDiverged(self.diverged)

    def begin_step(self, decision: Decision, event: StepStarted) -> Step:
        """A step of this handling begins with the decision."""
        decision.add(event, thread=self.message.thread.id)
        assert self.message.steps is not None  # noqa: S101 - the fold made it; narrows the type
        return self.message.steps[event.step]

    async def record(
        self, number: int, kind: StepKind, digest: str, json: bytes | None, error: StepError | None = None
    ) -> None:
        """Record the result of a step that nobody else answers."""
        decision = self.decide()
        message = self.message
        step = (message.steps or {}).get(number) or Step(message, number, kind, digest)
        decision.record(step, error, Content(message.thread.id, json) if json is not None else None)
        await self.runtime.commit(decision)

    async def result(self, step: Step) -> Any:
        """A step's recorded JSON. It may have been decided just now and be still on its way to the disk."""
        if not step.is_written:
            await self.runtime.settled()
        return await recall.result_of(self.runtime.log, step)

    # -- waiting

    def step_ended(self, step: Step) -> bool:
        """A step got its result in a decision. True if the handler gets it without a slot, since it waits for more."""
        if step.number not in self._waiters:
            return False
        self.pending -= 1
        if self.pending:
            return True
        self.runtime.state.boxes.resume(self.message)
        return False

    def step_on_disk(self, step: Step) -> None:
        """The result of a step is on disk."""
        self._answered.append(step)
        if self.has_slot or self.pending:
            self._wake()

    def go_on(self) -> None:
        """The handler has its slot and its line again."""
        if not self.pending and not self.has_slot:
            self.has_slot = True
            self.ran_at = self.runtime.state.now()
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)
        self._wake()

    def _wake(self) -> None:
        for step in self._answered:
            waiter = self._waiters.pop(step.number, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self._answered.clear()

    def suspend(self, step: Step) -> None:
        """From here the handler waits for the step's answer: its slot is free, its clock stands still."""
        self._waiters[step.number] = asyncio.get_running_loop().create_future()
        self.pending += 1
        if self.has_slot:
            self._give_up_slot(reserves_line=step.kind == "complete")
        elif step.kind != "complete":
            self.runtime.state.boxes.open_line(self.message)

    def _give_up_slot(self, *, reserves_line: bool) -> None:
        self.has_slot = False
        self.runtime.rests.fire()
        self.left_us -= self.runtime.state.now() - self.ran_at
        self.runtime.state.boxes.wait(self.message, reserves_line=reserves_line)

    async def answer(self, step: Step) -> None:
        """Wait until the step has its result and the handler may go on."""
        if step.number not in self._waiters:
            if step.ok is not None:
                return
            self.suspend(step)
            self.runtime.write(self.decide())
        try:
            await self._waiters[step.number]
        except asyncio.CancelledError:
            await self._stop_waiting(step)
            raise

    async def _stop_waiting(self, step: Step) -> None:
        """The handler waits for this answer no more: before it goes on it has its slot and its line again."""
        if self.dead or self._waiters.pop(step.number, None) is None:
            return
        if step.ok is None:
            self.pending -= 1
            if not self.pending:
                self.runtime.state.boxes.resume(self.message)
                self.runtime.write(self.decide())
        if not self.pending and not self.has_slot:
            self._turn = asyncio.get_running_loop().create_future()
            await self._turn

    async def wait_while_paused(self, *, reserves_line: bool = False) -> None:
        """While its agent, its thread or the organism is paused, a handler waits at its next step."""
        while self.runtime.is_paused(self.message) and not self.dead:
            if self.has_slot:
                self._give_up_slot(reserves_line=reserves_line)
                self.runtime.state.boxes.resume(self.message)
                self.runtime.write(self.decide())
                self._turn = asyncio.get_running_loop().create_future()
                await self._turn
            else:
                await self.runtime.resumes.wait()

    # -- running time

    def is_overdue(self, now: int) -> bool:
        """Whether its own running time is over."""
        return self.has_slot and now - self.ran_at > self.left_us

    def is_in_call(self) -> bool:
        """Whether a model answers it, or has answered and nothing delays the handler."""
        if self.stream is None:
            return False
        message, line = self.message, self.message.line
        if self.stream.calls or line.busy is message:
            return True
        return bool(line.is_reserved_for(message)) and not self.runtime.is_paused(message)


def step_digest(kind: StepKind, detail: str, body: bytes) -> str:
    """The digest of a step's input, by which a replay is held to its record."""
    return hashlib.sha256(b"\0".join((kind.encode(), detail.encode(), body))).hexdigest()[:32]
