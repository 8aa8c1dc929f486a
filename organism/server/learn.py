"""What frames must know of the time before they begin: a thread as it stood, whether the organism was paused.

The naive way folds the thread's whole history, which may be a hundred thousand messages. But of a long history a frame
shows four things: two were settled by the last event of a kind, one is a number that an index counts, and those who
take part are listed in the order in which they came. So a thread costs a handful of look-ups, however long it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.log.log import EventFilter, Log, Query, Row, Where
from organism.model.events import ORGANISM_STREAM, Event
from organism.projections import threads
from organism.server.frames import FOLDED, PAUSES, Folded

STATUS: Final = ("thread_created", "thread_reopened", "thread_completed", "thread_failed", "thread_killed")
PAUSING: Final = ("thread_paused", "thread_resumed", "thread_killed")
HISTORY: Final = tuple(sorted(FOLDED))
SHORT_EVENTS: Final = 64
"""A history of fewer events is read: that takes one look, where a long one takes five."""


async def learn(log: Log, folded: Folded, events: Sequence[Event]) -> None:
    """Give ``folded`` what it must know before it can make the frames of ``events``."""
    for thread in folded.unknown(events):
        row = await thread_at(log, thread, folded.position)
        if row is not None:
            folded.learn(thread, row)
    if folded.is_paused is None and any(event.type == "organism_started" for event in events):
        paused = await _last(log, ORGANISM_STREAM, tuple(PAUSES), folded.position)
        folded.is_paused = paused is not None and PAUSES[paused.type]


async def thread_at(log: Log, thread: str, position: int) -> Row | None:
    """The thread's row as its frames showed it at ``position``; None if it was not born yet."""
    history = await log.read(0, position, EventFilter((thread,), HISTORY), SHORT_EVENTS)
    if len(history) == SHORT_EVENTS:
        return await _long_thread_at(log, thread, position)
    row: Row | None = None
    for event in history:
        row = threads.apply(thread, row, event)
    return row


async def _long_thread_at(log: Log, thread: str, position: int) -> Row | None:
    row = await log.private_row("threads", thread)
    status = await _last(log, thread, STATUS, position)
    if row is None or status is None:
        return None
    row |= {"status": "active", "error": None, "paused": False}
    if (pausing := await _last(log, thread, PAUSING, position)) is not None:
        threads.apply(thread, row, pausing)
    threads.apply(thread, row, status)
    row["message_count"] = await _count(log, thread, position)
    row["participants"] = await _present(log, row, position)
    return row


async def _last(log: Log, stream: str, types: tuple[str, ...], position: int) -> Event | None:
    found = await log.read(0, position, EventFilter((stream,), types), 1, reverse=True)
    return found[0] if found else None


async def _count(log: Log, thread: str, position: int, *more: Where) -> int:
    """How many messages of the thread there were at the position."""
    where = (Where("thread_id", "=", thread), Where("position", "<=", position), *more)
    return (await log.rows("messages", Query(where, limit=0))).total


async def _present(log: Log, row: Row, position: int) -> list[str]:
    """Who took part at the position: the names are listed in the order in which they came, so a first part of them."""
    names: list[str] = row["participants"]
    low, high = 0, len(names)
    while low < high:
        middle = (low + high + 1) // 2
        named = Where("sender", "=", names[middle - 1], ("sender", "receiver"))
        if await _count(log, row["id"], position, named):
            low = middle
        else:
            high = middle - 1
    return names[:low]
