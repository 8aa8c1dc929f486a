"""The commands for sessions: begin one, send a turn, compact it, replace it by a successor, delete it.

The state knows the sessions with open turns, rows know all. So the commands for one session run one by one, and the row
of an idle session is read after all earlier decisions are on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson
from msgspec import to_builtins

from organism.errors import SessionBusy, SessionCompactConflict, StalePosition
from organism.events import vocabulary as events
from organism.events.record import Actor, Content
from organism.model import commands as c
from organism.model.ids import turn_thread
from organism.model.thread import Message, Session
from organism.pump.decide import inject
from organism.pump.decide.decision import Decision
from organism.pump.history import Histories
from organism.pump.operate import Acts, finish
from organism.pump.pump import Pump
from organism.pump.recover import erase_session
from organism.tenants import Tenant
from organism.views.sessions import SessionRow, session_row

MOST_OPEN_TURNS: Final = 100
"""Open turns of a session, the running one included; another one is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose session it must be, and with which agent (None: any). The rest is that of what is done (``Inject``)."""

    user: str
    agent: str | None = None
    actor: Actor = c.HOST_PROGRAM
    caller_depth: int = 0
    caller_request: str | None = None


class Sessions:
    """Carries out the commands for a tenant's sessions, once each for the operator."""

    def __init__(self, pump: Pump, histories: Histories) -> None:
        self._writer, self._histories = pump.writer, histories
        self._queued, self._kill, self._finish = pump.mailboxes.waiting, pump.kill, partial(finish, pump.writer)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.acts: Acts = {
            c.CreateSession: self.create,
            c.SendTurn: self.send,
            c.CompactSession: self.compact,
            c.ReplaceSession: self.replace,
            c.DeleteSession: self.delete,
        }

    async def create(self, command: c.CreateSession) -> c.SessionBegun:
        """Begin a session."""
        state = self._writer.state
        inject.receiver(state, command.agent)
        session_id = state.ids.session()
        decision = Decision.on(state, None, None, command.actor)
        decision.expect[session_id] = 0
        decision.add_to_session(session_id, events.SessionCreated(command.agent, command.user, command.settings))
        return c.SessionBegun(session_id, await self._finish(decision, command, {"session_id": session_id}, 0))

    async def send(self, command: c.SendTurn) -> c.Injected:
        """Accept a message as the next turn, which is durable when this returns."""
        session_id = command.session_id
        async with self._lock(session_id):
            row, session = await self._current(session_id, command.user, command.to)
            _refuse_archived(row)
            if command.if_position not in {None, session.head}:
                raise StalePosition(f"The session is at position {session.head}.")
            if session.turns and command.on_busy == "reject":
                raise SessionBusy
            if len(session.turns) >= MOST_OPEN_TURNS and command.on_busy != "force":
                raise SessionBusy(f"{len(session.turns)} turns of the session are open already.")
            state = self._writer.state
            sent = [each for each in inject.prepare(state, command, None, self._queued) if each.to == command.to]
            if (check := state.rules.listeners[command.to].check_turn) is not None:
                check(sent[0].encoded.payload)
            decision = Decision.on(state, None, None, command.actor)
            decision.expect[session_id] = session.head
            authors = {*row.private.authors}
            if command.on_busy == "force":
                authors.update(self._kill_turns(decision, session))
            decision.correlation = message_id = sent[0].message_id
            thread_id = turn_thread(session_id, session.number + 1)
            decision.add_to_session(
                session_id, events.TurnStarted(thread_id, message_id, command.on_busy, row.private.settings.budget)
            )
            decision.open_thread(thread_id, events.ThreadCreated())
            first = len(decision.records)
            inject.add(decision, sent, command, tuple(sorted(authors)))
            if command.on_sent is not None:
                command.on_sent(thread_id, message_id)
            body: dict[str, Any] = {"thread_id": thread_id, "message_id": message_id}
            if command.compaction is not None:
                body["compaction"] = to_builtins(command.compaction)
            return c.Injected(thread_id, message_id, await self._finish(decision, command, body, first))

    async def compact(self, command: c.CompactSession) -> c.Injected:
        """Begin the compaction of an idle session, in a thread of its own; one that is under way is joined."""
        session_id = command.session_id
        async with self._lock(session_id):
            row, session = await self._current(session_id, command.user, None)
            state = self._writer.state
            for thread in state.folded.by_session.get(session_id, {}).values():
                for message in state.folded.open_in(thread):
                    if message.to == command.to:
                        return await self._joined(command, message)
            _refuse_archived(row)
            if session.turns:
                raise SessionBusy
            if command.if_position not in {None, session.head}:
                raise SessionCompactConflict
            prepared = inject.prepare_internal(state, command, self._queued)
            decision = Decision.on(state, None, None, command.actor)
            decision.correlation = message_id = prepared.message_id
            thread_id = state.ids.thread(session_id)
            decision.open_thread(thread_id, events.ThreadCreated())
            first = len(decision.records)
            inject.add(decision, [prepared], command)
            body = {"thread_id": thread_id, "message_id": message_id}
            return c.Injected(thread_id, message_id, await self._finish(decision, command, body, first))

    async def _joined(self, command: c.CompactSession, message: Message) -> c.Injected:
        """The answer of a command that joins what it asks for; its key is recorded before that can be over."""
        if command.idempotency is None:
            return c.Injected(message.thread.id, message.id, message.position)
        decision = Decision.on(self._writer.state, None, None, command.actor)
        body = {"thread_id": message.thread.id, "message_id": message.id}
        return c.Injected(**body, position=await self._finish(decision, command, body, 0))

    async def replace(self, command: c.ReplaceSession) -> c.SessionBegun:
        """Archive the session and begin its successor, in one unit."""
        session_id = command.session_id
        async with self._lock(session_id):
            row, session = await self._current(session_id, command.user, command.agent)
            _refuse_archived(row)
            if session.turns:
                raise SessionBusy
            if command.if_position not in {None, session.head}:
                raise SessionCompactConflict
            state = self._writer.state
            decision = Decision.on(state, None, None, command.actor)
            successor = state.ids.session()
            ids = [state.ids.message() for _ in command.messages]
            decision.expect.update({session_id: session.head, successor: 0})
            if command.compacted_before is None:
                decision.add_to_session(session_id, events.SessionUncompacted(successor))
            else:
                summary = ids[0] if ids else ""
                decision.add_to_session(
                    session_id, events.SessionCompacted(successor, command.compacted_before, summary)
                )
            authors = tuple(sorted({*row.private.authors, *command.authors}))
            begun = events.SessionCreated(
                row.public.agent, row.public.user_id, row.private.settings, session_id, authors
            )
            decision.add_to_session(successor, begun)
            for message_id, kept in zip(ids, command.messages, strict=True):
                decision.add_to_session(
                    successor, events.MessageKept(message_id, kept.role), Content(successor, kept.json)
                )
            last = len(decision.records) - 1
            return c.SessionBegun(successor, await self._finish(decision, command, {"session_id": successor}, last))

    async def delete(self, command: c.DeleteSession) -> c.Done:
        """Kill the open turns and what else works on its text, delete the session, in one unit; then erase it."""
        session_id, writer = command.session_id, self._writer
        async with self._lock(session_id):
            row, session = await self._current(session_id, command.user, command.agent, is_deleted=True)
            position = row.private.position
            if row.public.status != "deleted":
                decision = Decision.on(writer.state, None, None, command.actor)
                decision.expect[session_id] = session.head
                self._kill_turns(decision, session)
                for thread in tuple(writer.state.folded.by_session.get(session_id, {}).values()):
                    self._kill(decision, thread)
                decision.add_to_session(session_id, events.SessionDeleted())
                position = await self._finish(decision, command, {}, len(decision.records) - 1)
            self._histories.forget(session_id)
            await erase_session(writer, session_id, command.actor)
            return c.Done(position)

    async def _current(
        self, session_id: str, user: str, agent: str | None, *, is_deleted: bool = False
    ) -> tuple[SessionRow, Session]:
        """The session's row, and where the session stands. Its lock must be taken: else it may move on meanwhile.

        ``is_deleted``: also if it is deleted and not erased yet. Raises as ``session_row`` does.
        """
        folded = self._writer.state.folded
        while True:
            is_open = session_id in folded.sessions
            if not is_open:
                await self._writer.settled()
            may_be_deleted = is_deleted and session_id in folded.unerased
            row = await session_row(self._writer.views, session_id, user, agent, is_deleted=may_be_deleted)
            session = folded.sessions.get(session_id)
            if is_open == (session is not None):  # else its last turn has ended meanwhile
                return row, session or Session(row.private.number, row.private.position)

    def _kill_turns(self, decision: Decision, session: Session) -> set[str]:
        """End all open turns; gives whose text they have brought into the session."""
        authors: set[str] = set()
        for thread_id in reversed(session.turns):
            thread = self._writer.state.folded.threads[thread_id]
            self._kill(decision, thread)
            authors.update(thread.turn.authors if thread.turn is not None else ())
        return authors

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())


def _refuse_archived(row: SessionRow) -> None:
    if row.public.archived_at is not None:
        raise SessionCompactConflict(f"The session was archived: {row.public.successor_session_id} goes on with it.")


async def idle(tenant: Tenant, session_id: str, caller: Caller) -> SessionRow:
    """The row of a session that can be replaced now. Raises ``SessionBusy`` or ``SessionCompactConflict``."""
    await tenant.pump.settled()
    row = await session_row(tenant.views, session_id, caller.user, caller.agent)
    _refuse_archived(row)
    if session_id in tenant.pump.state.folded.sessions:
        raise SessionBusy
    return row


def copied(message: Mapping[str, Any]) -> c.KeptMessage:
    """The message as a successor begins with it: that of the same turn and time, in the same words."""
    kept = {name: value for name, value in message.items() if name not in {"id", "compacted_at"}}
    return c.KeptMessage(message["role"], orjson.dumps(kept))
