"""Operate: carry out commands. Each is decided and written once; with an idempotency key its answer is recorded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, get_args

import orjson

from organism.codec import SpoofAttempt
from organism.errors import (
    AlreadyResolved,
    CommitUnknown,
    LogUnavailable,
    NotFound,
    StalePosition,
    Stopping,
    ThreadKilled,
)
from organism.events.vocabulary import (
    CallAnswered,
    Event,
    MessageDiscarded,
    RefusalCode,
    StepRecorded,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadPaused,
    ThreadReopened,
    ThreadResumed,
)
from organism.events.vocabulary import SpoofAttempt as SpoofAttemptEvent
from organism.log.log import EventFilter
from organism.model import commands as c
from organism.model.thread import Step, Thread
from organism.pump.decide import control, inject, replay
from organism.pump.decide.decision import Decision
from organism.pump.idempotency import KeysInUse, recorded
from organism.pump.pump import Pump
from organism.pump.run import gates as approvals
from organism.views.views import Query, Row, Where

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_REFUSALS: Final = get_args(RefusalCode)
"""Codes of dead letters that are refused sends: they never made a thread fail."""
_HISTORY: Final = 1 << 20

T = TypeVar("T")
Answer = c.Injected | c.Done


class Operator:
    """Carries out one tenant's commands. ``stopping`` refuses what would begin new work."""

    __slots__ = ("_acts", "_by_rows", "_keys", "_waiting", "pump", "stopping")

    def __init__(self, pump: Pump) -> None:
        self.pump = pump
        self.stopping = False
        self._keys = KeysInUse()
        self._by_rows = asyncio.Lock()
        self._waiting: set[asyncio.Task[Any]] = set()
        self._acts: dict[type[c.Command], Callable[[Any], Awaitable[Answer]]] = {
            c.Inject: self.inject,
            c.PauseAgent: self._pause_agent,
            c.ResumeAgent: self._pause_agent,
            c.PauseThread: self._pause_thread,
            c.ResumeThread: self._resume_thread,
            c.PauseOrganism: self._pause_organism,
            c.ResumeOrganism: self._pause_organism,
            c.KillThread: self._kill,
            c.ReplayDeadLetter: self._replay,
            c.DiscardDeadLetter: self._discard,
            c.ResolveIndeterminate: self._resolve_effect,
            c.ResolveApproval: self._resolve_approval,
        }

    async def do(self, command: c.Command) -> Answer:
        """Carry out the command, or give the answer that its idempotency key had. Raises an ``OrganismError``."""
        if not self.pump.log.available:
            raise LogUnavailable
        once = command.idempotency
        if once is None:
            return await self.patiently(self._act(command))
        return await self.patiently(self._keys.answer(once, partial(self._before, once), partial(self._act, command)))

    async def patiently(self, act: Awaitable[T]) -> T:
        """What comes of the act. Raises ``CommitUnknown`` if the log stalls meanwhile; what is on its way stays so."""
        caller = asyncio.current_task()
        assert caller is not None  # noqa: S101 - a coroutine runs in a task
        self._waiting.add(caller)
        try:
            return await act
        except asyncio.CancelledError:
            if caller in self._waiting:  # it left by itself
                raise
            caller.uncancel()
            raise CommitUnknown(f"{CommitUnknown()} The disk does not answer.") from None
        finally:
            self._waiting.discard(caller)

    def give_up_waiting(self) -> None:
        """The log has stalled: who waits gets ``CommitUnknown``. What they asked for is done once the disk answers."""
        while self._waiting:
            self._waiting.pop().cancel()

    async def _act(self, command: c.Command) -> Answer:
        """Carry it out. What rests on rows goes one by one, each after what was decided before it is in them."""
        act = self._acts[type(command)]
        if not self._rests_on_rows(command):
            return await act(command)
        async with self._by_rows:
            await self.pump.settled()
            return await act(command)

    def _rests_on_rows(self, command: c.Command) -> bool:
        """Whether it is about a thread that has ended, or a dead letter: the fold knows neither."""
        if isinstance(command, c.ReplayDeadLetter | c.DiscardDeadLetter):
            return True
        thread_id = getattr(command, "thread_id", None)
        return thread_id is not None and self.active(thread_id) is None

    async def _before(self, once: c.Idempotency) -> Answer | None:
        body = await self.answered(once)
        if body is None:
            return None
        return c.Injected(**body) if "message_id" in body else c.Done(**body)

    async def answered(self, once: c.Idempotency) -> dict[str, Any] | None:
        """What the key was answered with its position, if it was. Raises ``IdempotencyKeyReused``."""
        row = await recorded(self.pump.views, once, self.pump.state.now())
        return None if row is None else row["body"]

    def answer(self, decision: Decision, once: c.Idempotency | None, body: dict[str, Any], back: int) -> None:
        """Record the answer in the act's own unit; its position lies ``back`` before this event."""
        if once is not None:
            status = 202 if "message_id" in body else 200
            decision.add(CallAnswered(once.key, once.method, once.path, once.digest, status, body, back))

    async def inject(self, command: c.Inject) -> c.Injected:
        """Accept an injection: durable when this returns."""
        if self.stopping:
            raise Stopping
        thread, beginning = await self._thread_for(command)
        state = self.pump.state
        try:
            prepared = inject.prepare(state, command, thread)
        except SpoofAttempt as error:
            await self._record_spoof(command, error)
            raise
        decision = state.decide(thread, None, command.actor)
        decision.correlation = prepared[0].message_id
        if beginning is not None:
            decision.open_thread(command.thread_id or state.ids.thread(), beginning)
        first = len(decision.records)
        inject.add(decision, prepared, command)
        if command.idempotency is not None:
            body = {"thread_id": decision.thread_id, "message_id": prepared[0].message_id}
            self.answer(decision, command.idempotency, body, len(decision.records) - first)
        if command.on_sent is not None:
            command.on_sent(decision.thread_id or "", prepared[0].message_id)
        unit = await self.pump.commit(decision)
        return c.Injected(decision.thread_id or "", prepared[0].message_id, unit.records[first].position)

    async def _thread_for(self, command: c.Inject) -> tuple[Thread | None, ThreadCreated | ThreadReopened | None]:
        """The active thread that is meant; or None with how it begins, or begins again."""
        if command.thread_id is None:
            return None, ThreadCreated()
        return await self._active_or_reopened(command, command.thread_id)

    async def _active_or_reopened(
        self, command: c.Command, thread_id: str
    ) -> tuple[Thread | None, ThreadReopened | None]:
        """The thread, if it is active; or None with how it is reopened. Raises ``ThreadKilled``, ``StalePosition``."""
        thread, reopened = self.active(thread_id), None
        if thread is None:
            reopened = await reopening(self.pump, command, thread_id)
            thread = self.active(thread_id)
            if thread is None:
                return None, reopened
        check_position(command, thread.head)
        return thread, None

    async def _record_spoof(self, command: c.Inject, error: SpoofAttempt) -> None:
        decision = self.pump.state.decide(None, None, command.actor)
        decision.add(SpoofAttemptEvent(error.field, error.claimed, error.actual))
        await self.pump.commit(decision)

    def active(self, thread_id: str) -> Thread | None:
        """The thread, if it is active."""
        return self.pump.state.routing.threads.get(thread_id)

    async def _finish(self, decision: Decision, command: c.Command) -> c.Done:
        """Write a control decision; one with nothing to do answers with the head, or with where its key is kept."""
        pump = self.pump
        own = len(decision.records)
        self.answer(decision, command.idempotency, {}, -own)
        if not decision.records:
            pump.write(decision)
            return c.Done(pump.log.head)
        if command.idempotency is not None:  # first, so that nothing comes after a thread_killed
            decision.records.insert(0, decision.records.pop())
            own += 1
        unit = await pump.commit(decision)
        pump.runtime.resumes.fire()  # those who wait look whether a pause has ended
        return c.Done(unit.records[own - 1].position)

    async def _pause_agent(self, command: c.PauseAgent | c.ResumeAgent) -> c.Done:
        if self.pump.state.rules.settings.listener(command.agent) is None:
            raise NotFound(
                f"There is no listener named {command.agent!r}. GET /api/v1/agents lists them.", param="/agent"
            )
        decision = self.pump.state.decide(None, None, command.actor)
        act = control.pause_agent if isinstance(command, c.PauseAgent) else control.resume_agent
        act(decision, command.agent)
        return await self._finish(decision, command)

    async def _pause_organism(self, command: c.PauseOrganism | c.ResumeOrganism) -> c.Done:
        decision = self.pump.state.decide(None, None, command.actor)
        act = control.pause_organism if isinstance(command, c.PauseOrganism) else control.resume_organism
        act(decision)
        return await self._finish(decision, command)

    async def _thread_to_control(self, command: c.PauseThread | c.ResumeThread) -> Thread | None:
        """The active thread, or None if it has ended, when there is nothing to pause or resume."""
        thread = self.active(command.thread_id)
        if thread is None:
            row = await known_thread(self.pump, command.thread_id)
            thread = self.active(command.thread_id)
            if thread is None and row["status"] == "killed":
                raise ThreadKilled(f"Thread {command.thread_id} was killed.", param="/thread_id")
            if thread is None:
                check_position(command, row["position"])
        if thread is not None:
            check_position(command, thread.head)
        return thread

    async def _pause_thread(self, command: c.PauseThread) -> c.Done:
        thread = await self._thread_to_control(command)
        decision = self.pump.state.decide(thread, None, command.actor)
        if thread is not None and not thread.paused:
            decision.add(ThreadPaused())
        return await self._finish(decision, command)

    async def _resume_thread(self, command: c.ResumeThread) -> c.Done:
        """A thread that ended while it was paused would be paused again when it is reopened: it can be resumed too."""
        thread = await self._thread_to_control(command)
        decision = self.pump.state.decide(thread, None, command.actor)
        if thread is not None and thread.paused:
            decision.add(ThreadResumed())
            decision.state.boxes.wake_thread(thread)
        elif thread is None and (await known_thread(self.pump, command.thread_id))["paused"]:
            decision.thread_id = command.thread_id
            decision.add(ThreadResumed())
        return await self._finish(decision, command)

    async def _kill(self, command: c.KillThread) -> c.Done:
        """One unit ends the tree; then its tasks are cancelled, and what they still do comes to nothing."""
        pump = self.pump
        thread = self.active(command.thread_id)
        position = 0
        if thread is None:
            row = await known_thread(pump, command.thread_id)
            if row["status"] == "killed":
                check_position(command, row["position"])
                return c.Done(row["position"])
            thread = self.active(command.thread_id) or Thread(command.thread_id)
            position = row["position"]
        check_position(command, thread.head or position)
        decision = pump.state.decide(thread, None, command.actor)
        pump.kill(decision, thread)
        return await self._finish(decision, command)

    async def _resolve_effect(self, command: c.ResolveIndeterminate) -> c.Done:
        step = await indeterminate(self.pump, command.id)
        check_position(command, step.message.thread.head)
        decision = self.pump.state.decide(step.message.thread, None, command.actor)
        control.resolve_effect(decision, step, command.outcome, command.result)
        return await self._finish(decision, command)

    async def _resolve_approval(self, command: c.ResolveApproval) -> c.Done:
        step = control.find_approval(self.pump.state, command.approval)
        if step is None:
            if await self.pump.views.row("approvals", command.approval) is None:
                raise NotFound(f"There is no approval {command.approval!r}.", param="/approval")
            raise AlreadyResolved("This approval was resolved already.", param="/approval")
        check_position(command, step.message.thread.head)
        approvals.check_edits(self.pump.state.rules, step, command)
        decision = self.pump.state.decide(step.message.thread, None, command.actor)
        control.resolve_approval(decision, step, command)
        return await self._finish(decision, command)

    async def _replay(self, command: c.ReplayDeadLetter) -> c.Injected:
        """Send a dead letter again, in its thread and in the call that it stood in."""
        pump = self.pump
        letter = await replay.read(pump, command.message_id)
        thread, reopened = await self._active_or_reopened(command, letter.thread_id)
        if self.stopping:
            raise Stopping
        check = replay.prepare(pump.state, letter, command.json)
        decision = pump.state.decide(thread, None, command.actor)
        decision.correlation = letter.correlation or check.message_id
        if reopened is not None:
            decision.open_thread(letter.thread_id, reopened)
        position = replay.add(decision, letter, check, edited=command.json is not None)
        self.answer(
            decision,
            command.idempotency,
            {"thread_id": letter.thread_id, "message_id": check.message_id},
            len(decision.records) - position,
        )
        unit = await pump.commit(decision)
        return c.Injected(letter.thread_id, check.message_id, unit.records[position].position)

    async def _discard(self, command: c.DiscardDeadLetter) -> c.Done:
        letter = await replay.read(self.pump, command.message_id)
        row = await known_thread(self.pump, letter.thread_id)
        thread = self.active(letter.thread_id)
        check_position(command, row["position"] if thread is None else thread.head)
        decision = self.pump.state.decide(thread, None, command.actor)
        decision.thread_id = letter.thread_id
        decision.add(MessageDiscarded(command.message_id, failed=not letter.was_refused))
        return await self._finish(decision, command)


def check_position(command: c.Command, position: int) -> None:
    """``If-Match``: the caller saw the thread as it is, at ``position``."""
    if command.if_position is not None and command.if_position != position:
        raise StalePosition(f"The thread is at position {position}; the request was made for {command.if_position}.")


async def known_thread(pump: Pump, thread_id: str) -> Row:
    """The row of a thread, active or not. Raises ``NotFound``."""
    await pump.settled()  # what ended it may be decided and still on its way to the disk
    row = await pump.views.private_row("threads", thread_id)
    if row is None:
        raise NotFound(f"There is no thread {thread_id!r}.", param="/thread_id")
    return row


async def reopening(pump: Pump, command: c.Command, thread_id: str) -> ThreadReopened:
    """What reopening a thread records: dead letters, pause, what outlived its end. Raises ``ThreadKilled``."""
    row = await known_thread(pump, thread_id)
    if row["status"] == "killed":
        raise ThreadKilled(
            f"Thread {thread_id} was killed; inject without `thread_id` to begin a new one.", param="/thread_id"
        )
    check_position(command, row["position"])
    page = await pump.views.rows("dead_letters", Query(where=(Where("thread_id", "=", thread_id),), limit=500))
    failed = [letter for letter in orjson.loads(page.rows) if letter["code"] not in _REFUSALS]
    ends = EventFilter(threads=(thread_id,), types=(ThreadCompleted, ThreadFailed))
    ended = (await pump.log.read(wanted=ends, limit=1, reverse=True))[0].event
    assert isinstance(ended, ThreadCompleted | ThreadFailed)  # noqa: S101 - as it was asked for; narrows the type
    return ThreadReopened(
        failed=len(failed),
        reason=failed[-1]["reason"] if failed else "",
        paused=row["paused"],
        parent=ended.parent,
        todos=ended.todos,
        tokens=row["tokens"],
    )


async def indeterminate(pump: Pump, effect: str) -> Step:
    """The step of an indeterminate effect (``MESSAGE:STEP``). Raises ``AlreadyResolved`` or ``NotFound``."""
    message_id, _, number = effect.rpartition(":")
    if _NUMBER.fullmatch(number):
        step = pump.state.routing.step(message_id, int(number))
        if step is not None and step.unknown:
            return step
        if await _was_indeterminate(pump, message_id, int(number)):
            raise AlreadyResolved("This effect is not indeterminate any more.")
    raise NotFound(f"There is no indeterminate effect {effect[:80]!r}.")


async def _was_indeterminate(pump: Pump, message_id: str, number: int) -> bool:
    message = await pump.views.row("messages", message_id)
    if message is None:
        return False
    wanted = EventFilter((orjson.loads(message)["thread_id"],), (StepStarted, StepRecorded))
    records = await pump.log.read(wanted=wanted, limit=_HISTORY)
    return any(_is_in_doubt(record.event, message_id, number) for record in records)


def _is_in_doubt(event: Event, message_id: str, number: int) -> bool:
    """Whether it says of this step that nobody knows how it ended."""
    if not isinstance(event, StepStarted | StepRecorded) or (event.message, event.step) != (message_id, number):
        return False
    if isinstance(event, StepStarted):
        return event.unknown
    return event.error is not None and event.error.code == "unknown"
