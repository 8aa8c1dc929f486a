"""The line of sessions that compaction makes: who came before and after, and the whole history again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from msgspec import UNSET, UnsetType

from organism.errors import SessionCompactConflict
from organism.events.entity import Entity
from organism.model import words
from organism.model.commands import CommandAnswer, Idempotency, ReplaceSession, SessionBegun
from organism.model.ids import session_of
from organism.pump.history import messages as read_messages
from organism.pump.history import said_before
from organism.pump.operate import answer_before
from organism.sessions.commands import Caller, copied, idle
from organism.tenants import Tenant
from organism.views.run import Message
from organism.views.sessions import SESSION_MESSAGES, SESSIONS, SessionRow, session_row


class InLine(Entity):
    """A session of a line; of one that was deleted nothing but its id is known."""

    id: words.SessionId
    deleted: bool
    created_at: words.Time | UnsetType = UNSET
    archived_at: words.Time | UnsetType | None = UNSET


class Lineage(Entity):
    """The sessions before this one and after it, nearest first, and the summaries with which they begin."""

    backward: list[InLine]
    forward: list[InLine]
    summaries: list[dict[str, Any]]


async def lineage(tenant: Tenant, session_id: str, user: str | None, agent: str | None = None) -> Lineage:
    """The line of the session, with its summaries, oldest first."""
    row = await session_row(tenant.views, session_id, user, agent)
    backward = await _line(tenant, row, attrgetter("public.parent_session_id"))
    forward = await _line(tenant, row, attrgetter("public.successor_session_id"))
    compacted = [each for each in (*reversed(backward), row, *forward) if each.private.summary]
    summaries = [await _summary_of(tenant, each) for each in compacted]
    return Lineage([_shown(each) for each in backward], [_shown(each) for each in forward], summaries)


async def uncompact(tenant: Tenant, session_id: str, caller: Caller, once: Idempotency | None = None) -> SessionBegun:
    """Begin a successor with the session's whole history: what was summarised, in the place of its summaries.

    The same key ``once`` gives the same successor. Raises ``SessionBusy`` while a turn is open, and
    ``SessionCompactConflict`` if the session is archived or changes meanwhile, was never compacted, or goes back to a
    session that was deleted.
    """
    begun = await tenant.operator.once(once, partial(_uncompact, tenant, session_id, caller, once), answer_before)
    assert isinstance(begun, SessionBegun)  # noqa: S101 - a ReplaceSession is answered by nothing else
    return begun


async def _uncompact(tenant: Tenant, session_id: str, caller: Caller, once: Idempotency | None) -> CommandAnswer:
    row = await idle(tenant, session_id, caller)
    line = [row]
    while (parent := await _row(tenant, line[-1].public.parent_session_id)) is not None and parent.private.summary:
        line.append(parent)
    if len(line) == 1:
        raise SessionCompactConflict("The session has its whole history: no message before it was summarised.")
    messages = await _messages(tenant, line[-1])
    for later in reversed(line[:-1]):
        messages += [message for message in await _messages(tenant, later) if not _is_copy(later, message)]
    for each in line:
        now = await _row(tenant, each.public.id)
        if now is None or now.public.status == "deleted":  # its messages may have been read when they were erased
            raise SessionCompactConflict(f"Session {each.public.id}, which this one goes back to, was deleted.")
    command = ReplaceSession(
        session_id=session_id,
        user=row.public.user_id,
        agent=caller.agent,
        messages=tuple(map(copied, messages)),
        if_position=row.private.position,
        actor=caller.actor,
        idempotency=once,
    )
    return await tenant.do(command)


async def live_end(tenant: Tenant, row: SessionRow, user: str) -> SessionRow:
    """The session that goes on with the row's, which is itself unless it is archived. Raises ``NotFound``."""
    while (successor := row.public.successor_session_id) is not None:
        row = await session_row(tenant.views, successor, user)
    return row


async def _row(tenant: Tenant, session_id: str | None) -> SessionRow | None:
    return None if session_id is None else await tenant.views.private_row(SESSIONS, session_id)


async def _messages(tenant: Tenant, row: SessionRow) -> list[Message]:
    return await said_before(tenant.log, tenant.views, row.public.id, tenant.log.head + 1)


def _is_copy(row: SessionRow, message: Message) -> bool:
    """Whether the session of the row began with the message: it is of none of its turns."""
    return session_of(message["thread_id"]) != row.public.id


async def _line(tenant: Tenant, row: SessionRow, next_id: Callable[[SessionRow], str | None]) -> list[SessionRow]:
    """The sessions that follow each other from this one on, without it."""
    found: list[SessionRow] = []
    while (next_row := await _row(tenant, next_id(row))) is not None:
        found.append(row := next_row)
    return found


def _shown(row: SessionRow) -> InLine:
    """A session in its line; of a deleted one no more than that."""
    session = row.public
    if row.public.status == "deleted":
        return InLine(session.id, deleted=True)
    return InLine(session.id, deleted=False, created_at=session.created_at, archived_at=session.archived_at)


async def _summary_of(tenant: Tenant, row: SessionRow) -> dict[str, Any]:
    """The summary of a compacted session, which its successor holds; without text once that is deleted."""
    stored = await tenant.views.private_row(SESSION_MESSAGES, row.private.summary or "")
    message = (await read_messages(tenant.log, [stored]))[0] if stored is not None else {"erased": True}
    is_erased = message.get("erased", False)
    return {
        "id": row.private.summary,
        "session_id": row.public.id,
        "successor_session_id": row.public.successor_session_id,
        "created_at": row.public.archived_at,
        "text": None if is_erased else message["content"],
    }
