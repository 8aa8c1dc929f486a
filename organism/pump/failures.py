"""Failures: what the open dead letters of a thread are about, read from rows and the log before a command decides."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeGuard, get_args

from organism.errors import AlreadyResolved, NotFound
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter, EventLog
from organism.model.thread import NO_ROOT
from organism.pump.decide.inject import DeadLetter, Failed
from organism.views.dead_letters import CLOSED_LETTERS, DEAD_LETTERS, DeadLetterHead
from organism.views.threads import MESSAGES, Thread
from organism.views.views import Query, ViewStore, Where, all_rows, rows_of
from organism.views.who import Resolved

MOST_FAILURES: Final = 500
"""So many dead letters of a thread are sent again, or discarded, by one act."""
_DEATHS: Final = get_args(events.DeathCode)
"""Codes of dead letters that made their thread fail: a refused send does not."""


class Failures:
    """The failures of one tenant. Decisions that are not in the rows yet are not seen."""

    def __init__(self, log: EventLog, views: ViewStore) -> None:
        self._log, self._views = log, views

    async def reopening(self, row: Thread) -> events.ThreadReopened:
        """What reopening the thread of this row records: dead letters, pause, what outlived its end."""
        thread_id = row.id
        where = (Where("thread_id", "=", thread_id), Where("code", "in", _DEATHS))
        failed = await self._views.rows("dead_letters", Query(where, "died_at", descending=True, limit=1))
        newest = rows_of(failed, DeadLetterHead)
        ends = EventFilter(threads=(thread_id,), types=(events.ThreadCompleted, events.ThreadFailed))
        ended = (await self._log.read(wanted=ends, limit=1, reverse=True))[0].event
        assert isinstance(ended, events.ThreadCompleted | events.ThreadFailed)  # noqa: S101 - as it was asked for; narrows the type
        return events.ThreadReopened(
            failed=failed.total,
            reason=newest[0].reason if newest else "",
            paused=row.paused,
            parent=ended.parent,
            todos=ended.todos,
            tokens=row.tokens,
        )

    async def of_thread(self, thread_id: str) -> list[Failed]:
        """The readable failures of the thread, as many as one act takes."""
        where = (Where("thread_id", "=", thread_id), Where("hangs_on", "=", ""))
        page = await self._views.rows("dead_letters", Query(where, "position", limit=MOST_FAILURES))
        failures: list[Failed] = []
        for row in rows_of(page, DeadLetterHead):
            with suppress(NotFound):  # its content was erased
                failures.append(await self.of_letter(row.id))
        return failures

    async def of_letter(self, message_id: str) -> Failed:
        """The failure behind an open dead letter. Raises as ``_dead_letter`` does."""
        letter = await self._dead_letter(message_id)
        row = await self._views.private_row(DEAD_LETTERS, message_id)
        root = message_id if row is None else row.private.hangs_on or message_id
        rows = await all_rows(self._views, "dead_letters", Query((Where("hangs_on", "=", root),)), DeadLetterHead)
        if not rows:
            return Failed(letter, {message_id: not letter.was_refused})
        if (first := await self._views.private_row(DEAD_LETTERS, root)) is not None:
            rows.append(first.public)
        outermost = min(rows, key=lambda each: each.position).id
        letters = {each.id: each.code in _DEATHS for each in rows}
        return Failed(letter if outermost == message_id else await self._dead_letter(outermost), letters)

    async def _dead_letter(self, message_id: str) -> DeadLetter:
        """The dead letter. Raises ``NotFound``, also if its content was erased, or ``AlreadyResolved``."""
        stored = await self._views.private_row(DEAD_LETTERS, message_id)
        row = None if stored is None else stored.public
        content = await self._log.content(row.position) if row is not None else None
        closed = await self._views.private_row(CLOSED_LETTERS, message_id) if row is None else None
        if closed is not None:
            resolved = Resolved(by=closed.by, at=closed.at, decision=closed.status)
            raise AlreadyResolved(f"This dead letter was {closed.status} already.", resolved=resolved)
        if row is None or content is None:
            raise NotFound(f"There is no open dead letter {message_id!r}.")
        found = (await self._log.read(row.position - 1, row.position, limit=1))[0]
        event = found.event
        assert isinstance(event, events.MessageSent | events.MessageRefused)  # noqa: S101 - where a dead letter lies; narrows the type
        handled = found if _is_sent(found) and found.event.reply else await self._sent(found.cause)
        calls, injected = await self._calls_around(handled), await self._sent(found.correlation)
        actor, depth = (injected.actor, injected.event.caller_depth) if injected is not None else (None, 0)
        root = events.Root(actor.principal, depth, actor.user) if actor is not None else NO_ROOT
        return DeadLetter(event, row.thread_id, content[0], found.correlation, calls, root)

    async def _calls_around(self, sent: Record[events.MessageSent] | None) -> tuple[tuple[str, str], ...]:
        """The call that handling this message stands in, and those around it, innermost first."""
        chain: list[tuple[str, str]] = []
        while sent is not None:
            request = await self._sent(sent.event.call) if sent.event.reply else sent
            if request is None:
                break
            chain.append((request.event.message, request.event.sender))
            sent = await self._sent(request.cause)
        return tuple(chain)

    async def _sent(self, message_id: str | None) -> Record[events.MessageSent] | None:
        row = await self._views.private_row(MESSAGES, message_id) if message_id else None
        if row is None:
            return None
        found = (await self._log.read(row.position - 1, row.position, limit=1))[0]
        return found if _is_sent(found) else None


def _is_sent(record: Record[events.Event]) -> TypeGuard[Record[events.MessageSent]]:
    return isinstance(record.event, events.MessageSent)
