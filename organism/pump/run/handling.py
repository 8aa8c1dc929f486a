"""A handling while it runs. While it waits its slot and line are free; while it waits for a model, the slot alone."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice, takewhile
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeVar

import orjson
from msgspec import field

from organism.config.foreign_code import attempt
from organism.config.settings import Listener
from organism.config.tracebacks import MOST_LINES, lines_of_coroutine, lines_of_frame
from organism.errors import InvalidPayload, LogDamaged
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Content
from organism.log.log import EventFilter, EventLog
from organism.model.completion import Completion, completed
from organism.model.handler import Approval
from organism.model.thread import WAITS, Message, Step
from organism.pump.decide import gates
from organism.pump.decide.decision import Decision, StepEnd
from organism.pump.decide.ending import Failure
from organism.pump.decide.gates import Question
from organism.pump.decide.respond import Ask
from organism.pump.rules import Rules
from organism.pump.run.branches import Branch, Results, TaskNumbering
from organism.pump.run.mailboxes import Mailboxes, Queued
from organism.pump.run.run_stream import RunStream
from organism.pump.writer import Wakeup, Writer

MOST_PIECES: Final = 100_000
CANCELLED: Final = events.StepError("cancelled", "The handler's code cancelled this step.")
SAME_STEPS: Final = (
    "A handler takes the same steps each time: what comes from outside, and what may differ, belongs in `effect`."
)
ELSEWHERE: Final = (
    "A step was called outside of its handler's own tasks: in an effect, a callback, another thread, or a task that "
    "another handling created. Call it in the handler, or in a task that the handler creates."
)
IN_THREAD: Final = (
    "A blocking handler takes no steps. Write it as `async def`, and let what blocks run in a thread: "
    "await metadata.effect(key, lambda key: asyncio.to_thread(work, key))."
)
READ_AHEAD: Final = 32
"""How many messages of a line are read at once: each read is a trip to another thread."""

SlotState = Literal["held", "queued", "none"]
T = TypeVar("T")


class Unreadable(Exception):
    """The recorded bytes do not fit today's schema, or were erased."""


class CalledStep(NamedTuple):
    """A step as the handler calls it: its place among all (``branches.py``), the digest of its input, what it calls."""

    place: str
    kind: events.StepKind
    digest: str
    effect: events.StepEffect = ""
    key: str = ""
    to: str = ""
    model: str = ""


class Wakeups(Entity):
    """What handlings wait for, and what others wait for in handlings."""

    resumes: Wakeup = field(default_factory=Wakeup)  # a pause may have ended
    slot_freed: Wakeup = field(default_factory=Wakeup)  # a handling ends, or gives up its slot


class Handling(Entity):
    """One run of a handler. Its start is on disk since ``started_at``."""

    writer: Writer
    mailboxes: Mailboxes
    wakeups: Wakeups
    queued: Queued
    listener: Listener
    rules: Rules
    started_at: int
    left_us: int  # of its running time, when it last got its slot
    ran_at: int  # when that was
    numbering: TaskNumbering
    give_up: Callable[[Handling, Failure], None]  # ends it at once
    number: int = 0  # of the last step that has one
    pending: int = 0  # answers that it waits for
    slot: SlotState = "held"
    waits_for_thread: bool = False  # its code has not begun
    stuck_since: int = 0  # when the pump first found that nothing can come any more
    dead: bool = False  # it is over, whatever its code still does
    task: asyncio.Task[None] | None = None
    values: dict[int, Any] = field(default_factory=dict)  # what its steps have given, as far as it is in memory
    stream: RunStream | None = None  # what it shows of itself
    results: Results = field(default_factory=Results)
    _asked_first: Mapping[Ask, str] | None = None
    _grants: int = 0  # units on their way to the disk that give it the slot
    _waiters: dict[int, asyncio.Future[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = max((self.message.places or {}).values(), default=0)
        self.results = Results(self.may_run)

    @property
    def message(self) -> Message:
        """What it handles."""
        return self.queued.message

    def cancel(self) -> None:
        """Cancel its task; its code may swallow that."""
        if self.task is not None:
            self.task.cancel()
        self.abandon()

    def abandon(self) -> None:
        """Tasks of it that wait for a step end: nothing will come any more."""
        for waiter in self._waiters.values():
            waiter.cancel()
        self.results.close()

    def lines(self) -> tuple[events.CodeLine, ...]:
        """Where its tasks wait, the handler's own first."""
        modules = self.rules.settings.modules
        lines = [line for each in self.results.coroutines for line in lines_of_coroutine(each, modules)]
        return tuple(dict.fromkeys(lines))[:MOST_LINES]

    def end(self) -> None:
        """End it: what its code does from now on has no effect."""
        self.dead = True
        if self.stream is not None:
            self.stream.close()

    def cut(self, decision: Decision) -> str:
        """Add what it has shown and not recorded yet. Gives the handler's own reason why the run is over, if any."""
        return self.stream.cut(decision) if self.stream is not None else ""

    # -- steps

    def branch(self) -> Branch:
        """The handler's task that runs now. Raises ``RuntimeError`` in any other, ``CancelledError`` at the end."""
        if self.dead:
            raise asyncio.CancelledError
        branch = self.numbering.here()
        if branch is None or branch.results is not self.results:
            raise RuntimeError(IN_THREAD if self.listener.blocking else ELSEWHERE)
        return branch

    def call(self, kind: events.StepKind, digest: str) -> CalledStep:
        """The handler calls a step. Raises as ``branch`` does."""
        return CalledStep(self.branch().step(), kind, digest)

    def carry_out(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Carry out what the handler called; what runs there has no steps."""
        return self.numbering.aside(work)

    def fail(self, failure: Failure) -> NoReturn:
        """End the handling in a step, whatever its code makes of that."""
        self.give_up(self, failure)
        raise asyncio.CancelledError

    def decide(self) -> Decision:
        """Begin a decision of this handling. Raises ``CancelledError`` once it is over."""
        if self.dead:
            raise asyncio.CancelledError
        return Decision.on(self.writer.state, self.message.thread, self.message)

    def find(self, called: CalledStep) -> tuple[int, Step | None]:
        """The step's number, and its record if there is one. Another step's ends the handling.

        A message whose steps were recorded without places goes on by number to its end.
        """
        message = self.message
        number = 0 if message.by_number else (message.places or {}).get(called.place, 0)
        if not number:
            number = self.number = self.number + 1
        step = message.steps.get(number) if message.steps else None
        if step is None:
            most = self.rules.limits.max_steps_per_handling
            if number > most:
                text = f"limits.max_steps_per_handling is {most}. Give a part of the work to a message of its own."
                self.fail(Failure("too_many_steps", text, is_final=True, traceback=self._lines_here()))
        else:
            self.match(step, called)
        return number, step

    def match(self, step: Step, called: CalledStep) -> None:
        """End the handling unless it is that step's record."""
        if step.kind == called.kind and step.input == called.digest:
            return
        place = called.place if called.place and not self.message.by_number else step.number
        recorded = f"{step.kind} with input {step.input[:12]}"
        now = f"{called.kind} with input {called.digest[:12]}"
        text = f"Step {place} is recorded as {recorded}; now it is {now}. {SAME_STEPS}"
        self.fail(Failure("replay_diverged", text, is_final=True, traceback=self._lines_here()))

    def _lines_here(self) -> tuple[events.CodeLine, ...]:
        return lines_of_frame(inspect.currentframe(), self.rules.settings.modules)

    def begin_step(self, decision: Decision, event: events.StepStarted) -> Step:
        """Begin a step of this handling with the decision."""
        decision.add(event, thread=self.message.thread.id)
        assert self.message.steps is not None  # noqa: S101 - the fold made it; narrows the type
        return self.message.steps[event.step]

    def started(self, number: int, called: CalledStep) -> events.StepStarted:
        """The event that begins the step."""
        message, place = self.message, "" if self.message.by_number else called.place
        return events.StepStarted(
            *(message.id, message.to, number, called.kind, called.digest),
            effect=called.effect,
            key=called.key,
            place=place,
            to=called.to,
            model=called.model,
        )

    def add_record(
        self,
        decision: Decision,
        number: int,
        called: CalledStep,
        json: bytes | None,
        error: events.StepError | None = None,
    ) -> Step:
        """Record, with the decision, the result of a step that the handling itself carries out."""
        message, place = self.message, "" if self.message.by_number else called.place
        named = number, called.kind, called.digest
        new = Step(*named, place=place, effect=called.effect, key=called.key, message=message)
        content = Content(message.thread.owner, json) if json is not None else None
        decision.record((message.steps or {}).get(number, new), error, content)
        assert message.steps is not None  # noqa: S101 - the fold made it; narrows the type
        return message.steps[number]

    async def record(
        self, number: int, called: CalledStep, json: bytes | None, error: events.StepError | None = None
    ) -> None:
        """Record the result of a step that the handling itself carries out, and wait for its turn."""
        decision = self.decide()
        step = self.add_record(decision, number, called, json, error)
        await self.writer.commit(decision)
        await self.results.turn(step.ended_at)
        self.results.passed()

    def look(self, kind: events.StepKind, digest: str) -> tuple[CalledStep, bool]:
        """The handler looks something up, which is a step only if it is found.

        Gives also whether an earlier run of the handler had gone past this place. Raises as ``branch`` does.
        """
        branch, message = self.branch(), self.message
        called = CalledStep(branch.look(), kind, digest)
        if message.by_number:
            return called, any(number > self.number for number in message.steps or ())
        return called, any(map(branch.has_passed, message.places or ()))

    def looked_up(self, called: CalledStep) -> Step | None:
        """The record of what was found there."""
        steps, places = self.message.steps or {}, self.message.places or {}
        if not self.message.by_number:
            return steps[places[called.place]] if called.place in places else None
        step = steps.get(self.number + 1)
        if step is None or step.kind != called.kind:
            return None
        self.number += 1
        return step

    async def approved(self, question: Question, place: str = "") -> Approval:
        """Ask a person, or recall what they decided."""
        step = (self.message.steps or {}).get(question.step)
        if step is None:
            await self.wait_while_paused()
            decision = self.decide()
            gates.ask(decision, self.message, question, "" if self.message.by_number else place)
            step = (self.message.steps or {})[question.step]
            self.suspend(step)
            self.writer.write(decision)
        else:
            self.match(step, CalledStep(place, "approve", question.digest))
        return Approval(**await self.given(step, self.result))

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

    async def asked_first(self) -> Mapping[Ask, str]:
        """By what the dead letters that it repeats had asked: what is asked again keeps its keys.

        It is read once the handler asks: most never do, and the thread may be long.
        """
        if self._asked_first is None:
            self._asked_first = await self._read_earlier_asks() if self.message.first else {}
        return self._asked_first

    async def _read_earlier_asks(self) -> Mapping[Ask, str]:
        message, log = self.message, self.writer.log
        wanted = EventFilter((message.thread.id,), (events.MessageSent, events.StepStarted))
        earlier, asks, first = {message.first}, dict[tuple[str, int], tuple[str, str]](), dict[Ask, str]()
        for record in await log.read(0, message.position, wanted, MOST_PIECES):
            event = record.event
            if isinstance(event, events.StepStarted):
                if event.kind == "ask" and event.place and event.message in earlier:
                    asks[event.message, event.step] = event.place, event.input
            elif isinstance(event, events.MessageSent):
                if event.first == message.first:
                    earlier.add(event.message)
                if event.step in asks:
                    first.setdefault((*asks[event.step], event.to), event.first or event.message)
        return first

    async def payload_at(self, position: int) -> Any:
        """The payload of another message to this listener."""
        return _decoded(self.rules, await self.writer.log.content(position), self.message.to)

    async def reply(self, step: Step) -> Any:
        """The payload that answered an ask."""
        log, rules = self.writer.log, self.rules
        if not step.content_at:  # it was decided just now
            await self.writer.settled()
        event = (await log.read(step.content_at - 1, step.content_at, limit=1))[0].event
        if (
            isinstance(event, events.MessageSent) and event.payload_class
        ):  # if a module of the configuration still has it
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

    def may_run(self) -> bool:
        """Whether its code may go on: it has its slot, or waits for more and gets each result without one."""
        return not self.dead and bool(self.pending or (self.slot == "held" and not self._grants))

    def step_ended(self, end: StepEnd) -> None:
        """A decision ended a step."""
        if end.step.kind == "complete":
            self.wakeups.slot_freed.fire()
        if end.value is not None:
            self.values[end.step.number] = end.value
        if end.step.number in self._waiters:
            self._waits_no_more()

    def _waits_no_more(self) -> None:
        self.pending -= 1
        if not self.pending:
            self._queue_for_slot()

    def step_on_disk(self, step: Step) -> None:
        """The result of a step is on disk."""
        waiter = self._waiters.pop(step.number, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def granted(self) -> None:
        """A decision gives the handler its slot and its line again; it goes on once that is on disk (``go_on``)."""
        self.slot = "held"
        self.ran_at = self.writer.state.now()
        self._grants += 1

    def go_on(self) -> None:
        """The unit that gave the handler its slot and its line is on disk."""
        self._grants -= 1
        self.results.look()

    def suspend(self, step: Step) -> None:
        """Let the handler, which may run, wait for the step's answer: free its slot and stop its clock."""
        self._waiters[step.number] = asyncio.get_running_loop().create_future()
        self.pending += 1
        if self.slot == "held":
            self._give_up_slot(reserves_line=step.kind == "complete")
        elif step.kind != "complete":
            self.mailboxes.open_line(self.queued)
        self.results.look()

    def _give_up_slot(self, *, reserves_line: bool) -> None:
        self.slot = "none"
        self.wakeups.slot_freed.fire()
        self.left_us -= self.writer.state.now() - self.ran_at
        self.mailboxes.wait(self.queued, reserves_line=reserves_line)

    def _queue_for_slot(self) -> None:
        self.slot = "queued"
        self.mailboxes.resume(self.queued)

    async def given(self, step: Step, read: Callable[[Step], Awaitable[T]]) -> T:
        """Wait until the step has its result and it is its turn; gives what ``read`` reads of it."""
        await self._answered(step)
        try:
            return await read(step)
        finally:
            self.results.passed()

    async def _answered(self, step: Step) -> None:
        if step.error is not None and step.error.code == CANCELLED.code:
            await self._never(step)
        if step.ok is None and step.number not in self._waiters:  # it began in an earlier run
            await self._until_it_may_run()
            if step.ok is None:
                self.suspend(step)
                self.writer.write(self.decide())
        try:
            if (waiter := self._waiters.get(step.number)) is not None:
                await waiter
            elif not step.ended_at:  # it was decided just now
                await self.writer.settled()
            await self.results.turn(step.ended_at)
        except asyncio.CancelledError:
            if not self.dead:
                self._stop_waiting(step)
            while not self.may_run() and not self.dead:
                with suppress(asyncio.CancelledError):  # it is on its way
                    await self._until_it_may_run()
            raise

    async def _never(self, step: Step) -> None:
        """The handler's code once cancelled the step, and will do so again."""
        self._waiters[-step.number] = forever = asyncio.get_running_loop().create_future()
        await forever

    def _stop_waiting(self, step: Step) -> None:
        """The handler's code cancels the step. An ask goes on, and its answer is not given; any other ends."""
        if self._waiters.pop(step.number, None) is None or step.ok is not None:
            return
        self._waits_no_more()
        decision = self.decide()
        if step.approval:
            decision.add(events.ApprovalCancelled(step.approval))
        if step.kind == "complete" and self.stream is not None and step.number in self.stream.calls:
            self.stream.calls.pop(step.number).cancel(decision)
        if step.kind != "ask":
            decision.record(step, CANCELLED)
        self.writer.write(decision)

    async def _until_it_may_run(self) -> None:
        if not self.may_run():
            await self.results.turn()
            self.results.passed()

    def is_paused(self) -> bool:
        """Whether its agent, its thread or the organism is paused."""
        return self.writer.state.folded.is_paused(self.message)

    async def wait_while_paused(self, *, reserves_line: bool = False) -> None:
        """Wait while its agent, its thread or the organism is paused: a handler pauses at its next step."""
        while not self.dead and (self.is_paused() or not self.may_run()):
            if not self.is_paused():
                await self._until_it_may_run()
                continue
            if self.slot == "held":
                self._give_up_slot(reserves_line=reserves_line)
                self._queue_for_slot()
                self.writer.write(self.decide())
            await self.wakeups.resumes.wait()

    # -- running time

    def is_overdue(self, now: int) -> bool:
        """Whether its running time is used up."""
        return self.slot == "held" and now - self.ran_at > self.left_us

    def is_stuck(self) -> bool:
        """Whether nothing can come any more that it waits for, whatever the reason."""
        if self.is_paused() or self.mailboxes.knows(self.queued):
            return False
        return all(step.ok is not None or step.kind not in WAITS for step in (self.message.steps or {}).values())

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
    wanted = EventFilter((message.thread.id,), (events.RunMessageStart, events.RunMessageDelta), content=True)
    pieces: list[str] = []
    for record in await log.read(message.position, step.content_at, wanted, MOST_PIECES):
        event = record.event
        if not isinstance(event, events.RunMessageStart | events.RunMessageDelta) or (event.message, event.id) != (
            message.id,
            block,
        ):
            continue
        if isinstance(event, events.RunMessageStart):
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


def step_digest(kind: events.StepKind, detail: str, body: bytes) -> str:
    """The digest of a step's input, by which a replay is checked against its record."""
    return hashlib.sha256(b"\0".join((kind.encode(), detail.encode(), body))).hexdigest()[:32]
