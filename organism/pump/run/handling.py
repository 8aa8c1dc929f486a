"""A handling while it runs. While it waits its slot and line are free; while it waits for a model, the slot alone."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from itertools import islice, takewhile
from typing import Any, Final

import orjson
from msgspec import field

from organism.config.foreign import attempt
from organism.config.settings import Listener
from organism.errors import InvalidPayload, LogDamaged
from organism.events.entity import Entity
from organism.events.record import Content
from organism.events.vocabulary import MessageSent, RunMessageDelta, RunMessageStart, StepError, StepKind, StepStarted
from organism.log.log import EventFilter, EventLog
from organism.model.completion import Completion, completed
from organism.model.handler import Approval
from organism.model.thread import Message, Step
from organism.pump.decide import gates
from organism.pump.decide.decision import Decision, StepEnd
from organism.pump.decide.gates import Question
from organism.pump.rules import Rules
from organism.pump.run.mailboxes import Mailboxes, Queued
from organism.pump.run.run_stream import RunStream
from organism.pump.writer import Signal, Writer

MOST_PIECES: Final = 100_000
READ_AHEAD: Final = 32
"""How many messages of a line are read at once: each read is a trip to another thread."""


class Unreadable(Exception):
    """The recorded bytes do not fit today's schema, or were erased."""


class ReplayDiverged(BaseException):
    """A step does not match its record. Not an ``Exception``, so that no handler takes it for its own failure."""


class Signals(Entity):
    """What handlings wait for, and what others wait for in handlings."""

    resumes: Signal = field(default_factory=Signal)  # a pause may have ended
    rests: Signal = field(default_factory=Signal)  # a handling ends, or gives up its slot


class Handling(Entity):
    """One run of a handler. Its start is on disk since ``started_at``."""

    writer: Writer
    mailboxes: Mailboxes
    signals: Signals
    queued: Queued
    listener: Listener
    rules: Rules
    started_at: int
    left_us: int  # of its running time, when it last got its slot
    ran_at: int  # when that was
    number: int = 0
    pending: int = 0  # answers that it waits for
    has_slot: bool = True
    dead: bool = False  # it is over, whatever its code still does
    diverged: str = ""
    task: asyncio.Task[None] | None = None
    values: dict[int, Any] = field(default_factory=dict)  # what its steps have given, as far as it is in memory
    stream: RunStream | None = None  # what it shows of itself
    _turn: asyncio.Future[None] | None = None
    _waiters: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    _answered: list[Step] = field(default_factory=list)

    @property
    def message(self) -> Message:
        """What it handles."""
        return self.queued.message

    def cancel(self) -> None:
        """Cancel its task; its code may swallow that."""
        if self.task is not None:
            self.task.cancel()

    @property
    def coroutine(self) -> Any:
        """Its code, as it runs or waits."""
        return self.task.get_coro() if self.task is not None else None

    def end(self) -> None:
        """End it: what its code does from now on has no effect."""
        self.dead = True
        if self.stream is not None:
            self.stream.close()

    def cut(self, decision: Decision) -> str:
        """Add what it has shown and not recorded yet. Gives the handler's own reason why the run is over, if any."""
        return self.stream.cut(decision) if self.stream is not None else ""

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
        return Decision.on(self.writer.state, self.message.thread, self.message)

    def recorded(self, number: int, kind: StepKind, digest: str) -> Step | None:
        """The record of this step, if there is one. Raises ``ReplayDiverged`` if it is another step's."""
        step = self.message.steps.get(number) if self.message.steps else None
        if step is None or (step.kind == kind and step.input == digest):
            return step
        recorded, now = f"{step.kind} with input {step.input[:12]}", f"{kind} with input {digest[:12]}"
        self.diverged = f"Step {number} is recorded as {recorded}; now it is {now}."
        raise ReplayDiverged(self.diverged)

    def begin_step(self, decision: Decision, event: StepStarted) -> Step:
        """Begin a step of this handling with the decision."""
        decision.add(event, thread=self.message.thread.id)
        assert self.message.steps is not None  # noqa: S101 - the fold made it; narrows the type
        return self.message.steps[event.step]

    async def record(
        self, number: int, kind: StepKind, digest: str, json: bytes | None, error: StepError | None = None
    ) -> None:
        """Record the result of a step that the handling itself carries out."""
        decision = self.decide()
        message = self.message
        step = (message.steps or {}).get(number) or Step(number, kind, digest, message=message)
        decision.record(step, error, Content(message.thread.owner, json) if json is not None else None)
        await self.writer.commit(decision)

    async def approved(self, question: Question) -> Approval:
        """Ask a person, or recall what they decided."""
        step = self.recorded(question.step, "approve", question.digest)
        if step is None:
            await self.wait_while_paused()
            decision = self.decide()
            gates.ask(decision, self.message, question)
            step = (self.message.steps or {})[question.step]
            self.suspend(step)
            self.writer.write(decision)
        await self.answer(step)
        return Approval(**await self.result(step))

    # -- what is read from the log; each raises ``Unreadable``

    async def payload(self) -> Any:
        """The message's payload, checked against today's schema; what waits behind it in its line is read along."""
        queued, rules, log = self.queued, self.rules, self.writer.log
        if queued.payload is not None and queued.generation == rules.generation:
            decoded, queued.payload = queued.payload, None
            return decoded
        message, queued.payload = queued.message, None
        behind = islice(takewhile(lambda each: each.payload is None, queued.line.waiting), READ_AHEAD - 1)
        waiting = {each.message.position: each for each in behind}
        digests = {position: each.message.digest for position, each in waiting.items()}
        try:
            contents = await log.contents({message.position: message.digest, **digests})
        except LogDamaged:  # each message with a damaged content fails at its own turn
            waiting = {}
            contents = await log.contents({message.position: message.digest})
        for position, each in waiting.items():
            # An error in it, be it the class's own code, is reported at its own turn.
            each.payload = attempt(partial(_decoded, rules, contents.get(position), each.message.to)).result
            each.generation = rules.generation
        return _decoded(rules, contents.get(message.position), message.to)

    async def payload_at(self, position: int) -> Any:
        """The payload of another message to this listener."""
        return _decoded(self.rules, await self.writer.log.content(position), self.message.to)

    async def reply(self, step: Step) -> Any:
        """The payload that answered an ask."""
        log, rules = self.writer.log, self.rules
        if not step.content_at:  # it was decided just now
            await self.writer.settled()
        event = (await log.read(step.content_at - 1, step.content_at, limit=1))[0].event
        if isinstance(event, MessageSent) and event.payload_class:  # if a module of the configuration still has it
            module_name, _, name = event.payload_class.partition(":")
            found = getattr(rules.settings.modules.loaded(module_name), name, None)
            if isinstance(found, type):
                rules.register(found)
        return _decoded(rules, await log.content(step.content_at), step.message.to)

    async def result(self, step: Step) -> Any:
        """The JSON result of an effect, a value, an approval or a model call."""
        if not step.content_at:  # it was decided just now
            await self.writer.settled()
        content = await self.writer.log.content(step.content_at)
        if content is None:
            raise Unreadable("The step's result was erased.")
        return orjson.loads(content[0])

    async def completion(self, step: Step) -> tuple[Completion, str]:
        """A model's answer, and the id of the block that it was shown in."""
        recorded = await self.result(step)
        block = recorded.get("shown", "")
        text = recorded["text"] if "text" in recorded else await _shown_text(self.writer.log, step, block)
        return completed(recorded, text), block

    # -- waiting

    def step_ended(self, end: StepEnd) -> bool:
        """A decision ended a step. True if the handler gets the result without a slot, since it waits for more."""
        if end.step.kind == "complete":
            self.signals.rests.fire()
        if end.value is not None:
            self.values[end.step.number] = end.value
        if end.step.number not in self._waiters:
            return False
        self.pending -= 1
        if self.pending:
            return True
        self.mailboxes.resume(self.queued)
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
            self.ran_at = self.writer.state.now()
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
        """Let the handler wait for the step's answer: free its slot and stop its clock."""
        self._waiters[step.number] = asyncio.get_running_loop().create_future()
        self.pending += 1
        if self.has_slot:
            self._give_up_slot(reserves_line=step.kind == "complete")
        elif step.kind != "complete":
            self.mailboxes.open_line(self.queued)

    def _give_up_slot(self, *, reserves_line: bool) -> None:
        self.has_slot = False
        self.signals.rests.fire()
        self.left_us -= self.writer.state.now() - self.ran_at
        self.mailboxes.wait(self.queued, reserves_line=reserves_line)

    async def answer(self, step: Step) -> None:
        """Wait until the step has its result and the handler may go on."""
        if step.number not in self._waiters:
            if step.ok is not None:
                return
            self.suspend(step)
            self.writer.write(self.decide())
        try:
            await self._waiters[step.number]
        except asyncio.CancelledError:
            await self._stop_waiting(step)
            raise

    async def _stop_waiting(self, step: Step) -> None:
        """Give up waiting for this answer; the handler goes on once it has its slot and its line again."""
        if self.dead or self._waiters.pop(step.number, None) is None:
            return
        if step.ok is None:
            self.pending -= 1
            if not self.pending:
                self.mailboxes.resume(self.queued)
                self.writer.write(self.decide())
        if not self.pending and not self.has_slot:
            self._turn = asyncio.get_running_loop().create_future()
            await self._turn

    def is_paused(self) -> bool:
        """Whether its agent, its thread or the organism is paused."""
        return self.writer.state.folded.is_paused(self.message)

    async def wait_while_paused(self, *, reserves_line: bool = False) -> None:
        """Wait while its agent, its thread or the organism is paused: a handler pauses at its next step."""
        while self.is_paused() and not self.dead:
            if self.has_slot:
                self._give_up_slot(reserves_line=reserves_line)
                self.mailboxes.resume(self.queued)
                self.writer.write(self.decide())
                self._turn = asyncio.get_running_loop().create_future()
                await self._turn
            else:
                await self.signals.resumes.wait()

    # -- running time

    def is_overdue(self, now: int) -> bool:
        """Whether its running time is used up."""
        return self.has_slot and now - self.ran_at > self.left_us

    def is_in_call(self) -> bool:
        """Whether it waits for a model, or a model has answered and nothing else delays the handler."""
        calls = [step for step in (self.message.steps or {}).values() if step.kind == "complete"]
        if not calls:
            return False
        line = self.queued.line
        if line.busy is self.queued or any(call.ok is None for call in calls):
            return True
        return line.is_reserved_for(self.queued) and not self.is_paused()


async def _shown_text(log: EventLog, step: Step, block: str) -> str:
    """The text of the block as it was last shown before the step was recorded. Raises ``Unreadable``."""
    message = step.message
    wanted = EventFilter((message.thread.id,), (RunMessageStart, RunMessageDelta), content=True)
    pieces: list[str] = []
    for record in await log.read(message.position, step.content_at, wanted, MOST_PIECES):
        event = record.event
        if not isinstance(event, RunMessageStart | RunMessageDelta) or (event.message, event.id) != (message.id, block):
            continue
        if isinstance(event, RunMessageStart):
            pieces.clear()
        elif record.content is None or record.content.erased:
            raise Unreadable("The text of a model's answer was erased.")
        else:
            pieces.append(orjson.loads(record.content.json)["delta"])
    return "".join(pieces)


def _decoded(rules: Rules, content: tuple[bytes, bytes] | None, receiver: str) -> Any:
    if content is None:
        raise Unreadable("The message's content was erased.")
    try:
        return rules.codec.decode(content[1], rules.payload_limits(receiver)).payload
    except InvalidPayload as error:
        raise Unreadable(f"The recorded message does not fit today's schema: {error}") from error


def step_digest(kind: StepKind, detail: str, body: bytes) -> str:
    """The digest of a step's input, by which a replay is checked against its record."""
    return hashlib.sha256(b"\0".join((kind.encode(), detail.encode(), body))).hexdigest()[:32]
