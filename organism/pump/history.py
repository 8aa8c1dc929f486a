"""What commands read of the log before they decide: threads that have ended, dead letters, effects of the past."""

from __future__ import annotations

from typing import Final, TypeGuard, get_args

import orjson

from organism.errors import AlreadyResolved, NotFound
from organism.events.record import Record
from organism.events.vocabulary import (
    Event,
    MessageRefused,
    MessageSent,
    RefusalCode,
    StepRecorded,
    StepStarted,
    ThreadCompleted,
    ThreadFailed,
    ThreadReopened,
)
from organism.log.log import EventFilter, EventLog
from organism.model.thread import NO_ROOT, Root
from organism.pump.decide.replay import Letter
from organism.views.views import Query, Row, ViewStore, Where

_REFUSALS: Final = get_args(RefusalCode)
"""Codes of dead letters that are refused sends: they never made a thread fail."""
_STEPS_READ: Final = 1 << 20


async def thread_row(views: ViewStore, thread_id: str) -> Row:
    """The row of a thread, active or not. Raises ``NotFound``."""
    row = await views.private_row("threads", thread_id)
    if row is None:
        raise NotFound(f"There is no thread {thread_id!r}.", param="/thread_id")
    return row


async def reopening(log: EventLog, views: ViewStore, row: Row) -> ThreadReopened:
    """What reopening the thread of this row records: dead letters, pause, what outlived its end."""
    thread_id = row["id"]
    page = await views.rows("dead_letters", Query(where=(Where("thread_id", "=", thread_id),), limit=500))
    failed = [letter for letter in orjson.loads(page.rows) if letter["code"] not in _REFUSALS]
    ends = EventFilter(threads=(thread_id,), types=(ThreadCompleted, ThreadFailed))
    ended = (await log.read(wanted=ends, limit=1, reverse=True))[0].event
    assert isinstance(ended, ThreadCompleted | ThreadFailed)  # noqa: S101 - as it was asked for; narrows the type
    return ThreadReopened(
        failed=len(failed),
        reason=failed[-1]["reason"] if failed else "",
        paused=row["paused"],
        parent=ended.parent,
        todos=ended.todos,
        tokens=row["tokens"],
    )


async def dead_letter(log: EventLog, views: ViewStore, message_id: str) -> Letter:
    """The dead letter. Raises ``NotFound``, also if its content was erased, or ``AlreadyResolved``."""
    row = await views.private_row("dead_letters", message_id)
    content = await log.content(row["position"]) if row is not None else None
    closed = await views.private_row("closed_letters", message_id) if row is None else None
    if closed is not None:
        raise AlreadyResolved(f"This dead letter was {closed['status']} already.")
    if row is None or content is None:
        raise NotFound(f"There is no open dead letter {message_id!r}.")
    found = (await log.read(row["position"] - 1, row["position"], limit=1))[0]
    event = found.event
    assert isinstance(event, MessageSent | MessageRefused)  # noqa: S101 - where a dead letter lies; narrows the type
    handled = found if _is_sent(found) and found.event.reply else await _sent(log, views, found.cause)
    calls, root = await _calls_around(log, views, handled), await _root_of(log, views, found.correlation)
    return Letter(event, row["thread_id"], content[0], found.correlation, calls, root)


async def _root_of(log: EventLog, views: ViewStore, correlation: str | None) -> Root:
    """The injection of a chain, that may have ended long ago."""
    sent = await _sent(log, views, correlation)
    return NO_ROOT if sent is None or sent.actor is None else Root(sent.actor.principal, sent.event.caller_depth)


async def _calls_around(
    log: EventLog, views: ViewStore, sent: Record[MessageSent] | None
) -> tuple[tuple[str, str], ...]:
    """The call that handling this message stands in, and those around it, innermost first."""
    chain: list[tuple[str, str]] = []
    while sent is not None:
        request = await _sent(log, views, sent.event.call) if sent.event.reply else sent
        if request is None:
            break
        chain.append((request.event.message, request.event.sender))
        sent = await _sent(log, views, request.cause)
    return tuple(chain)


async def _sent(log: EventLog, views: ViewStore, message_id: str | None) -> Record[MessageSent] | None:
    row = await views.private_row("messages", message_id) if message_id else None
    if row is None:
        return None
    found = (await log.read(row["position"] - 1, row["position"], limit=1))[0]
    return found if _is_sent(found) else None


def _is_sent(record: Record[Event]) -> TypeGuard[Record[MessageSent]]:
    return isinstance(record.event, MessageSent)


async def was_indeterminate(log: EventLog, views: ViewStore, message_id: str, number: int) -> bool:
    """Whether the outcome of this step was ever unknown."""
    message = await views.row("messages", message_id)
    if message is None:
        return False
    wanted = EventFilter((orjson.loads(message)["thread_id"],), (StepStarted, StepRecorded))
    records = await log.read(wanted=wanted, limit=_STEPS_READ)
    return any(_is_in_doubt(record.event, message_id, number) for record in records)


def _is_in_doubt(event: Event, message_id: str, number: int) -> bool:
    """Whether it says of this step that nobody knows how it ended."""
    if not isinstance(event, StepStarted | StepRecorded) or (event.message, event.step) != (message_id, number):
        return False
    if isinstance(event, StepStarted):
        return event.unknown
    return event.error is not None and event.error.code == "unknown"
