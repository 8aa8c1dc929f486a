"""Operate: carry out commands, each decided and written once; the answer under an idempotency key is recorded (G5)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Never, TypeVar

import orjson

from organism.codec import SpoofAttempt
from organism.errors import (
    AlreadyResolved,
    BudgetExhausted,
    CommitUnknown,
    IdempotencyKeyReused,
    InvalidField,
    InvalidRequest,
    LogUnavailable,
    NotFound,
    RequestInProgress,
    SessionBusy,
    StalePosition,
    Stopping,
    ThreadKilled,
)
from organism.events import vocabulary as events
from organism.events.record import ORGANISM_STREAM, Actor, Content
from organism.log.log import EventFilter
from organism.model import commands as c
from organism.model.completion import CompleteError
from organism.model.ids import session_of
from organism.model.thread import Step, Thread
from organism.model.times import iso
from organism.pump.decide import gates, inject, spend
from organism.pump.decide.decision import Decision, StepEnd
from organism.pump.decide.inject import Failed
from organism.pump.failures import Failures
from organism.pump.writer import Writer
from organism.views import threads
from organism.views.approvals import APPROVALS
from organism.views.keyed import ANSWERS, Answer
from organism.views.views import KEY, Query, Where, all_rows
from organism.views.who import Resolved, by

KEY_LIFE_US: Final = 24 * 3600 * 1_000_000
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")

OF_DEAD_LETTERS: Final = (c.ReplayDeadLetter, c.DiscardDeadLetter, c.ReplayDeadLetters, c.DiscardDeadLetters)
T = TypeVar("T")
Acts = Mapping[type[c.Command], Callable[[Never], Awaitable[c.CommandAnswer]]]
"""What carries out a command, by its class."""


class KeysInUse:
    """Idempotency keys whose first call is under way: a repetition that comes before its answer is refused."""

    def __init__(self) -> None:
        self._acts: dict[str, tuple[str, asyncio.Task[Any]]] = {}  # the digest, and the task that acts
        self._ended = 0

    async def answer(
        self,
        once: c.Idempotency,
        look_up: Callable[[], Awaitable[T | None]],
        act: Callable[[], Coroutine[Any, Any, T]],
    ) -> T:
        """What ``look_up`` finds, else what ``act`` gives, even without its caller. Raises ``RequestInProgress``."""
        is_part = self._is_part(once)
        ended = -1
        while ended != self._ended:  # an act that ended during the look-up may have been of this key
            ended = self._ended
            if (first := await look_up()) is not None:
                return first
            if is_part:
                return await act()
        self._is_part(once)  # another one may have begun meanwhile
        task = asyncio.create_task(act())
        self._acts[once.name] = once.digest, task
        task.add_done_callback(partial(self._over, once.name))
        return await asyncio.shield(task)

    def _is_part(self, once: c.Idempotency) -> bool:
        """Whether this is a part of the key's own act. Raises an error if another call's act is under way."""
        digest, task = self._acts.get(once.name, (once.digest, None))
        if task is None or task is asyncio.current_task():
            return task is not None
        raise RequestInProgress if digest == once.digest else IdempotencyKeyReused

    def _over(self, name: str, task: asyncio.Task[Any]) -> None:
        del self._acts[name]
        self._ended += 1
        if not task.cancelled():
            task.exception()  # the caller gets it, unless it has left


class Operator:
    """Carries out one tenant's commands. While ``stopping``, those that begin new work are refused.

    ``queued`` says how many messages wait for a listener. ``kill`` ends a thread and its descendants in the decision,
    and stops their handlers. ``acts`` carry out further commands.
    """

    __slots__ = (
        "_acts",
        "_by_rows",
        "_failures",
        "_keys",
        "_kill",
        "_log",
        "_queued",
        "_views",
        "_waiting",
        "_writer",
        "stopping",
    )

    def __init__(
        self,
        writer: Writer,
        queued: Callable[[str], int],
        kill: Callable[[Decision, Thread], None],
        acts: Acts,
    ) -> None:
        self._writer = writer
        self._log, self._views = writer.log, writer.views
        self._failures = Failures(writer.log, writer.views)
        self._queued = queued
        self._kill = kill
        self.stopping = False
        self._keys = KeysInUse()
        self._by_rows = asyncio.Lock()
        self._waiting: set[asyncio.Task[object]] = set()
        self._acts: Acts = {
            **acts,
            c.Inject: self._inject,
            c.PauseAgent: self._pause_agent,
            c.ResumeAgent: self._pause_agent,
            c.PauseThread: self._pause_thread,
            c.ResumeThread: self._pause_thread,
            c.PauseOrganism: self._pause_organism,
            c.ResumeOrganism: self._pause_organism,
            c.ChangeTenantConfig: self._change_config,
            c.ReserveEmbedding: self._reserve_embedding,
            c.RecordEmbedding: self._record_embedding,
            c.KillThread: self._kill_thread,
            c.ReplayDeadLetter: self._replay,
            c.DiscardDeadLetter: self._discard,
            c.ReplayDeadLetters: self._replay_all,
            c.DiscardDeadLetters: self._discard_all,
            c.ResolveIndeterminate: self._resolve_effect,
            c.ResolveApproval: self._resolve_approval,
        }

    async def do(self, command: c.Command) -> c.CommandAnswer:
        """Carry out the command, or give the stored answer of its idempotency key. Raises an ``OrganismError``."""
        if not self._log.available:
            raise LogUnavailable
        return await self.patiently(self.once(command.idempotency, partial(self._act, command), answer_before))

    async def once(
        self,
        key: c.Idempotency | None,
        act: Callable[[], Coroutine[Any, Any, T]],
        before: Callable[[Answer], Awaitable[T | None]],
    ) -> T:
        """What ``act`` gives, the first time that the key comes; later what ``before`` makes of the recorded answer.

        Without a key there is only the act. With one it goes on if its caller leaves, and has to record the key: each
        command under the key does, in its own unit, and may be a part of a larger act under it. If ``before`` gives
        None, ``act`` runs again, and its commands are answered as they were. Raises ``RequestInProgress`` and
        ``IdempotencyKeyReused``.
        """
        if key is None:
            return await act()

        async def look_up() -> T | None:
            row = await self._recorded(key)
            return None if row is None else await before(row)

        return await self._keys.answer(key, look_up, act)

    async def keep(self, key: c.Idempotency, actor: Actor, status: int, body: bytes) -> None:
        """Record the whole answer of an act that was carried out. Raises an ``OrganismError``."""
        if self.stopping and not self._log.available:
            raise Stopping
        decision = Decision.on(self._writer.state, None, None, actor)
        answered = events.CallAnswered(key.key, key.method, key.path, key.digest, status, {}, back=0)
        decision.add(answered, Content(ORGANISM_STREAM, body))
        await self.patiently(self._writer.commit(decision))

    async def patiently(self, act: Awaitable[T]) -> T:
        """The result of the act. Raises ``CommitUnknown`` if the log stalls meanwhile; what was appended stays so."""
        caller = asyncio.current_task()
        assert caller is not None  # noqa: S101 - a coroutine runs in a task
        self._waiting.add(caller)
        try:
            return await act
        except asyncio.CancelledError:
            if caller in self._waiting:  # the caller itself was cancelled
                raise
            caller.uncancel()
            raise CommitUnknown(f"{CommitUnknown()} The disk does not answer.") from None
        finally:
            self._waiting.discard(caller)

    def give_up_waiting(self) -> None:
        """The log has stalled: callers get ``CommitUnknown``. Their commands are done once the disk answers."""
        while self._waiting:
            self._waiting.pop().cancel()

    async def _act(self, command: c.Command) -> c.CommandAnswer:
        """Carry it out. Commands that read rows run one by one, each after all earlier decisions are in the rows."""
        act = self._acts[type(command)]
        if self.stopping and isinstance(command, c.Inject):  # whatever begins new work is one
            raise Stopping
        if not self._needs_rows(command):
            return await act(command)  # type: ignore[arg-type]  # the act of the command's own class
        async with self._by_rows:
            await self._writer.settled()
            return await act(command)  # type: ignore[arg-type]  # the act of the command's own class

    def _needs_rows(self, command: c.Command) -> bool:
        """Whether it is about an ended thread or a dead letter, which only rows know."""
        if isinstance(command, OF_DEAD_LETTERS):
            return True
        thread_id = getattr(command, "thread_id", None)
        return thread_id is not None and self.active(thread_id) is None

    async def answered(self, once: c.Idempotency) -> bool:
        """Whether what the key names was done. Raises ``IdempotencyKeyReused``."""
        return await self._recorded(once) is not None

    async def parts(self, once: c.Idempotency) -> list[str]:
        """The names of an act's parts that were done: each has its key, a ``/`` and the name. Raises as ``_recorded``.

        Keys of others begin with the same if they have a ``/``; no name has one.
        """
        where = (Where(KEY, ">=", f"{once.name}/"), Where(KEY, "<", f"{once.name}0"))  # a 0 follows the /
        names = []
        for row in await all_rows(self._views, "answers", Query(where), Answer):
            name = row.key.removeprefix(f"{once.key}/")
            if "/" not in name and self._is_of(row, once):
                names.append(name)
        return names

    async def _recorded(self, once: c.Idempotency) -> Answer | None:
        """The row of the key's recorded answer, unless it is too old. Raises ``IdempotencyKeyReused``."""
        row = await self._views.private_row(ANSWERS, once.name)
        return row if row is not None and self._is_of(row, once) else None

    def _is_of(self, row: Answer, once: c.Idempotency) -> bool:
        """Whether it is the answer to this request: not if it is too old. Raises ``IdempotencyKeyReused``."""
        if row.at + KEY_LIFE_US < self._writer.state.now():
            return False
        if row.digest != once.digest:
            raise IdempotencyKeyReused
        return True

    async def _inject(self, command: c.Inject) -> c.Injected:
        """Accept an injection, which is durable when this returns."""
        beginning: events.ThreadCreated | events.ThreadReopened | None = events.ThreadCreated()
        thread = None
        if command.thread_id is not None:
            thread, beginning = await self._active_or_reopened(command, command.thread_id)
        state = self._writer.state
        try:
            prepared = inject.prepare(state, command, thread, self._queued)
        except SpoofAttempt as error:
            await self._record_spoof(command, error)
            raise
        decision = Decision.on(state, thread, None, command.actor)
        decision.correlation = prepared[0].message_id
        if beginning is not None:
            decision.open_thread(command.thread_id or state.ids.thread(), beginning)
        first = len(decision.records)
        inject.add(decision, prepared, command)
        if command.on_sent is not None:
            command.on_sent(decision.thread_id or "", prepared[0].message_id)
        return await self._finish_sent(decision, command, prepared[0], first)

    async def _finish_sent(
        self, decision: Decision, command: c.Command, sent: inject.Prepared, index: int
    ) -> c.Injected:
        """Write a decision whose record at ``index`` is the message that was asked for."""
        thread_id = decision.thread_id or ""
        body = {"thread_id": thread_id, "message_id": sent.message_id}
        return c.Injected(thread_id, sent.message_id, await finish(self._writer, decision, command, body, index))

    async def _found(
        self, command: c.Command, thread_id: str, *, may_be_killed: bool = False
    ) -> Thread | threads.Thread:
        """The thread if it is active, else its row. Raises ``NotFound``, ``ThreadKilled``, ``StalePosition``."""
        thread = self.active(thread_id)
        if thread is not None:
            check_position(command, thread.head)
            return thread
        await self._writer.settled()  # its end may be decided and not on disk yet
        row = await self._views.private_row(threads.THREADS, thread_id)
        if row is None:
            raise NotFound(f"There is no thread {thread_id!r}.", param="/thread_id")
        if row.status == "killed" and not may_be_killed:
            raise ThreadKilled(
                f"Thread {thread_id} was killed; inject without `thread_id` to begin a new one.", param="/thread_id"
            )
        check_position(command, row.position)
        return row

    async def _active_or_reopened(
        self, command: c.Command, thread_id: str
    ) -> tuple[Thread | None, events.ThreadReopened | None]:
        """The thread, if it is active; or None with how it is reopened. Raises ``SessionBusy`` if a session has it."""
        found = await self._found(command, thread_id)
        session = session_of(thread_id)
        if session is not None:
            raise SessionBusy(
                f"Thread {thread_id} belongs to session {session}: send a message to the session instead.",
                param="/thread_id",
            )
        return (found, None) if isinstance(found, Thread) else (None, await self._failures.reopening(found))

    async def _record_spoof(self, command: c.Inject, error: SpoofAttempt) -> None:
        decision = Decision.on(self._writer.state, None, None, command.actor)
        decision.add(events.SpoofAttempt(error.field, error.claimed, error.actual))
        await self._writer.commit(decision)

    def active(self, thread_id: str) -> Thread | None:
        """The thread, if it is active."""
        return self._writer.state.folded.threads.get(thread_id)

    async def _finish(self, decision: Decision, command: c.Command) -> c.Done:
        """Write a decision; one with nothing to do answers with the head, or the position of the stored answer."""
        own = len(decision.records)
        record_answer(decision, command.idempotency, {}, -own)
        if not decision.records:
            self._writer.write(decision)
            return c.Done(self._log.head)
        if command.idempotency is not None:  # first, so that nothing comes after a thread_killed
            decision.records.insert(0, decision.records.pop())
            own += 1
        unit = await self._writer.commit(decision)
        return c.Done(unit.records[own - 1].position)

    async def _pause_agent(self, command: c.PauseAgent | c.ResumeAgent) -> c.Done:
        if self._writer.state.rules.settings.listener(command.agent) is None:
            raise NotFound(
                f"There is no listener named {command.agent!r}. GET /api/v1/agents lists them.", param="/agent"
            )
        decision = Decision.on(self._writer.state, None, None, command.actor)
        is_paused = command.agent in self._writer.state.folded.paused_agents
        if isinstance(command, c.PauseAgent) and not is_paused:
            decision.add(events.AgentPaused(command.agent, "operator"))
        elif isinstance(command, c.ResumeAgent) and is_paused:
            decision.add(events.AgentResumed(command.agent, "operator"))
        return await self._finish(decision, command)

    async def _pause_organism(self, command: c.PauseOrganism | c.ResumeOrganism) -> c.Done:
        decision = Decision.on(self._writer.state, None, None, command.actor)
        is_paused = self._writer.state.folded.paused
        if isinstance(command, c.PauseOrganism) and not is_paused:
            decision.add(events.OrganismPaused("operator"))
        elif isinstance(command, c.ResumeOrganism) and is_paused:
            decision.add(events.OrganismResumed("operator"))
        return await self._finish(decision, command)

    async def _change_config(self, command: c.ChangeTenantConfig) -> c.Done:
        decision = Decision.on(self._writer.state, None, None, command.actor)
        if command.changes:
            decision.add(events.TenantConfigChanged(command.changes))
        return await self._finish(decision, command)

    async def _reserve_embedding(self, command: c.ReserveEmbedding) -> c.Done:
        decision = Decision.on(self._writer.state, None, None, command.actor)
        try:
            spend.reserve_embedding(decision, command)
        except CompleteError as error:
            raise BudgetExhausted(str(error)) from error
        return await self._finish(decision, command)

    async def _record_embedding(self, command: c.RecordEmbedding) -> c.Done:
        decision = Decision.on(self._writer.state, None, None, command.actor)
        spend.settle_embedding(decision, command.call, command.embedded)
        return await self._finish(decision, command)

    async def _pause_thread(self, command: c.PauseThread | c.ResumeThread) -> c.Done:
        """A thread that ended while it was paused can be resumed: else it would be paused when it is reopened."""
        found = await self._found(command, command.thread_id)
        thread, is_paused = (found, found.paused) if isinstance(found, Thread) else (None, found.paused)
        decision = Decision.on(self._writer.state, thread, None, command.actor)
        decision.thread_id = command.thread_id
        if isinstance(command, c.PauseThread) and thread is not None and not is_paused:
            decision.add(events.ThreadPaused())
        elif isinstance(command, c.ResumeThread) and is_paused:
            decision.add(events.ThreadResumed())
        return await self._finish(decision, command)

    async def _kill_thread(self, command: c.KillThread) -> c.Done:
        """End the tree in one unit; then its tasks are cancelled, and whatever they still do has no effect."""
        found = await self._found(command, command.thread_id, may_be_killed=True)
        if not isinstance(found, Thread) and found.status == "killed":
            if command.idempotency is None:
                return c.Done(found.position)
            return await self._finish(Decision.on(self._writer.state, None, None, command.actor), command)
        thread = found if isinstance(found, Thread) else Thread(command.thread_id)
        decision = Decision.on(self._writer.state, thread, None, command.actor)
        self._kill(decision, thread)
        return await self._finish(decision, command)

    async def _resolve_effect(self, command: c.ResolveIndeterminate) -> c.Done:
        step = await self._indeterminate(command.id)
        check_position(command, step.message.thread.head)
        message = step.message
        decision = Decision.on(self._writer.state, message.thread, None, command.actor)
        content = Content(message.thread.owner, orjson.dumps(command.result)) if command.outcome == "done" else None
        resolved = events.StepResolved(message.id, message.to, step.number, command.outcome, step.key)
        record = decision.add(resolved, content)
        decision.end_step(StepEnd(step, record, record if content is not None else None))
        return await self._finish(decision, command)

    async def _indeterminate(self, effect: str) -> Step:
        """The step of an indeterminate effect (``MESSAGE:STEP``). Raises ``AlreadyResolved`` or ``NotFound``."""
        message_id, _, number = effect.rpartition(":")
        if _NUMBER.fullmatch(number):
            step = self._writer.state.folded.step(message_id, int(number))
            if step is not None and step.unknown:
                return step
            await self._refuse_if_resolved(message_id, int(number))
        raise NotFound(f"There is no indeterminate effect {effect[:80]!r}.")

    async def check_approval(self, command: c.ResolveApproval) -> str:
        """The digest to which the decision would be bound. Raises what the command itself would."""
        step, asked_digest = await self._pending(command)
        return gates.digest_bound(self._writer.state.rules, step, asked_digest, command.edits)

    async def _resolve_approval(self, command: c.ResolveApproval) -> c.Done:
        step, asked_digest = await self._pending(command)
        decision = Decision.on(self._writer.state, step.message.thread, None, command.actor)
        gates.resolve(decision, step, asked_digest, command)
        return await self._finish(decision, command)

    async def _pending(self, command: c.ResolveApproval) -> tuple[Step, str]:
        """The step in which a person is asked, and the digest of what was asked.

        Raises ``NotFound``, ``AlreadyResolved`` or ``StalePosition``.
        """
        row = await self._views.private_row(APPROVALS, command.approval)
        if row is None:
            raise NotFound(f"There is no approval {command.approval!r}.", param="/approval")
        message = self._writer.state.folded.messages.get(row.public.message_id)
        step = gates.asked(message, command.approval) if message is not None else None
        if step is None or step.ok is not None:
            await self._writer.settled()  # its end may be decided and not on disk yet
            row = await self._views.private_row(APPROVALS, command.approval) or row
            closed = row.public.resolved
            resolved = closed and Resolved(by=closed.by, at=closed.at, decision=closed.decision)
            raise AlreadyResolved("This approval was resolved already.", param="/approval", resolved=resolved)
        check_position(command, step.message.thread.head)
        return step, row.public.digest

    async def _replay(self, command: c.ReplayDeadLetter) -> c.Injected:
        """Send a dead letter again, with all of its failure: in its thread and in the call that it stood in."""
        failure = await self._failures.of_letter(command.message_id)
        letter = failure.letter
        if command.json is not None and letter.event.message != command.message_id:
            raise InvalidField(
                f"{letter.event.message} waited for this message and failed with it, so that one is sent again: "
                "edit its payload, or replay without one.",
                param="/payload",
            )
        thread, reopened = await self._active_or_reopened(command, letter.thread_id)
        if self.stopping:
            raise Stopping
        sent = inject.prepare_replay(self._writer.state, letter, command.json)
        decision = Decision.on(self._writer.state, thread, None, command.actor)
        if reopened is not None:
            decision.open_thread(letter.thread_id, reopened)
        index = inject.add_replay(decision, failure, sent, edited=command.json is not None)
        return await self._finish_sent(decision, command, sent, index)

    async def _replay_all(self, command: c.ReplayDeadLetters) -> c.Done:
        """Send each failure of the thread again, in the order of their messages; what would be refused again stays."""
        thread, reopened = await self._active_or_reopened(command, command.thread_id)
        if self.stopping:
            raise Stopping
        prepared: list[tuple[Failed, inject.Prepared]] = []
        for failure in await self._failures.of_thread(command.thread_id):
            with suppress(InvalidRequest):
                prepared.append((failure, inject.prepare_replay(self._writer.state, failure.letter, None)))
        decision = Decision.on(self._writer.state, thread, None, command.actor)
        if prepared and reopened is not None:
            decision.open_thread(command.thread_id, reopened)
        for failure, sent in prepared:
            inject.add_replay(decision, failure, sent, edited=False)
        return await self._finish(decision, command)

    async def _discard(self, command: c.DiscardDeadLetter) -> c.Done:
        failure = await self._failures.of_letter(command.message_id)
        return await self._discarded(command, failure.letter.thread_id, [failure])

    async def _discard_all(self, command: c.DiscardDeadLetters) -> c.Done:
        return await self._discarded(command, command.thread_id, await self._failures.of_thread(command.thread_id))

    async def _discarded(self, command: c.Command, thread_id: str, failures: Iterable[Failed]) -> c.Done:
        found = await self._found(command, thread_id, may_be_killed=True)
        thread = found if isinstance(found, Thread) else None
        decision = Decision.on(self._writer.state, thread, None, command.actor)
        decision.thread_id = thread_id
        for failure in failures:
            for message_id, is_failed in failure.letters.items():
                decision.add(events.MessageDiscarded(message_id, failed=is_failed))
        return await self._finish(decision, command)

    # -- what commands read of the log before they decide

    async def _refuse_if_resolved(self, message_id: str, number: int) -> None:
        """Raise ``AlreadyResolved`` if the outcome of this step was ever unknown."""
        message = await self._views.private_row(threads.MESSAGES, message_id)
        if message is None:
            return
        await self._writer.settled()  # its end may be decided and not on disk yet
        after, thread_id, was_unknown, resolved = message.position, message.thread_id, False, None
        wanted = EventFilter((thread_id,), (events.StepStarted, events.StepRecorded, events.StepResolved))
        while records := await self._log.read(after, wanted=wanted):
            for record in records:
                event: Any = record.event  # of one of these types
                if (event.message, event.step) != (message_id, number):
                    continue
                match event:
                    case events.StepStarted(unknown=True) | events.StepRecorded(error=events.StepError(code="unknown")):
                        was_unknown = True
                    case events.StepResolved():
                        resolved = Resolved(by=by(record), at=iso(record.at), decision=event.outcome)
            after = records[-1].position
        if was_unknown:
            raise AlreadyResolved("This effect is not indeterminate any more.", resolved=resolved)


async def answer_before(row: Answer) -> c.CommandAnswer:
    """The recorded answer of a command."""
    body = row.body
    made = c.Injected if "message_id" in body else c.SessionBegun if "session_id" in body else c.Done
    return made(**body)


async def finish(writer: Writer, decision: Decision, command: c.Command, body: dict[str, Any], index: int) -> int:
    """Write a decision with the answer to its command; gives the position of the record at ``index``."""
    record_answer(decision, command.idempotency, body, len(decision.records) - index)
    unit = await writer.commit(decision)
    return unit.records[index].position


def record_answer(decision: Decision, once: c.Idempotency | None, body: dict[str, Any], back: int) -> None:
    """Record the answer in the command's own unit; its position is ``back`` before this event."""
    if once is not None:
        status = 202 if "message_id" in body else 200
        decision.add(events.CallAnswered(once.key, once.method, once.path, once.digest, status, body, back))


def check_position(command: c.Command, position: int) -> None:
    """``If-Match``: raise ``StalePosition`` unless the caller saw the thread as it is, at ``position``."""
    if command.if_position is not None and command.if_position != position:
        raise StalePosition(f"The thread is at position {position}; the request was made for {command.if_position}.")
