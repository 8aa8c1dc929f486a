"""The past as one viewer wants it: read page by page, and no more of it than may pass the filter.

The filter goes down to the log (``planned``), which has indexes of the events of a thread and of the spans that have a
type; a filter by agents is applied to the frames alone. A thread's state before the page is looked up (``thread_at``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from organism.events import vocabulary as events
from organism.events.record import ORGANISM_STREAM, Record
from organism.log.log import SPAN_EVENTS, EventFilter, EventLog, span_of
from organism.server.push.filter import Chunk, Filter
from organism.server.push.frames import FOLDED, PAUSES, WITH_CONTENT, Details, Folded, types_of
from organism.views import threads
from organism.views.library import INDICES, LibraryIndex
from organism.views.threads import Thread
from organism.views.views import ViewStore

STEP_SPANS: Final = 8
"""Spans that are looked at in one go: others need the log's reading thread too."""
STEP_EVENTS: Final = STEP_SPANS * SPAN_EVENTS
LOOK_SPANS: Final = 512
"""Of so many spans at once it is looked up which hold some types."""


async def stretch(log: EventLog, types: Sequence[type[events.Event]], after: int, until: int) -> tuple[int, int]:
    """The next positions that may be of these types: low < position ≤ high. There are none if low is ``until``."""
    spans = await log.type_spans(types, span_of(after + 1), span_of(until), STEP_SPANS)
    if not spans:
        return until, until
    in_a_row = sum(span == spans[0] + at for at, span in enumerate(spans))
    return max(after, spans[0] * SPAN_EVENTS), min(until, (spans[0] + in_a_row) * SPAN_EVENTS)


async def read_records(
    log: EventLog, after: int, until: int, wanted: EventFilter, limit: int
) -> list[Record[events.Event]]:
    """Records with after < position ≤ until, in order, as ``EventLog.read`` gives them; what holds none is not read."""
    if not wanted.types or until - after <= STEP_EVENTS:
        return await log.read(after, until, wanted, limit)
    if wanted.threads:  # whose own events lie in an index; what is left out is what comes before the first of the types
        return await log.read((await stretch(log, wanted.types, after, until))[0], until, wanted, limit)
    found: list[Record[events.Event]] = []
    while after < until and len(found) < limit:
        low, after = await stretch(log, wanted.types, after, until)
        if low < after:
            found += await log.read(low, after, wanted, limit - len(found))
    return found


async def newest_records(
    log: EventLog, after: int, until: int, wanted: EventFilter, limit: int
) -> list[Record[events.Event]]:
    """The same with the newest first."""
    if not wanted.types or wanted.threads or until - after <= STEP_EVENTS:
        return await log.read(after, until, wanted, limit, reverse=True)
    found: list[Record[events.Event]] = []
    first, last = span_of(after + 1), span_of(until)
    for high in range(last, first - 1, -LOOK_SPANS):
        for span in reversed(await log.type_spans(wanted.types, max(first, high - LOOK_SPANS + 1), high, LOOK_SPANS)):
            bounds = max(after, span * SPAN_EVENTS), min(until, (span + 1) * SPAN_EVENTS)
            found += await log.read(*bounds, wanted, limit - len(found), reverse=True)
            if len(found) == limit:
                return found
    return found


FIRST_PAGE, LEAST_PAGE, MOST_PAGE = 64, 4, 512
PAGE_BYTES: Final = 64 << 10
"""The size that a page should have: about what a socket takes at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read of the log, up to ``until``; None: nothing there can pass."""

    selection: EventFilter | None
    until: int


class Past:
    """Reads on from ``position`` for one filter, up to ``until`` or to the head as it moves."""

    def __init__(
        self, log: EventLog, views: ViewStore, wanted: Filter, position: int, until: int | None = None
    ) -> None:
        self.wanted = wanted
        self._log, self._views, self._until = log, views, until
        self._folded = Folded(position)
        self._plan = Plan(None, position)
        self._events = FIRST_PAGE

    @property
    def position(self) -> int:
        return self._folded.position

    def goes_on(self, position: int, wanted: Filter) -> bool:
        """Whether its next page is what follows the position for this filter."""
        return self.wanted is wanted and self.position == position

    async def read(self) -> Chunk:
        """The next page. What is not in it of the positions that it spans does not pass."""
        after = self.position
        if after >= self._plan.until:
            self._plan = await planned(self._log, self.wanted, after, self._until)
        records, reached = await self._page(self._plan, after)
        await load_unknown(self._log, self._views, self._folded, records)
        frames = self._folded.frames(records)
        if self._until is not None and reached > self._until:
            frames, reached = [frame for frame in frames if frame.position <= self._until], self._until
        chunk = Chunk(after, reached, frames, Details.of(records))
        self._folded.position = reached
        if chunk.size_bytes > 2 * PAGE_BYTES:
            self._events = max(LEAST_PAGE, self._events // 2)
        elif chunk.size_bytes < PAGE_BYTES:
            self._events = min(MOST_PAGE, self._events * 2)
        return chunk

    async def _page(self, plan: Plan, after: int) -> tuple[list[Record[events.Event]], int]:
        if plan.selection is None:
            return [], plan.until
        until = plan.until if plan.selection.threads else min(plan.until, after + STEP_EVENTS)
        records = await self._log.read(after, until, plan.selection, self._events)
        reached = records[-1].position if len(records) == self._events else until
        if records and isinstance(
            records[-1].event, events.ThreadCreated
        ):  # its frame speaks of the message that follows it
            born = records[-1].position
            records += await self._log.read(born, born + 1, WITH_CONTENT)
            reached = max(reached, records[-1].position)
        return records, reached


async def planned(log: EventLog, wanted: Filter, after: int, until: int | None = None) -> Plan:
    """How to read what follows ``after`` and may pass the filter, up to ``until``, by default to the head."""
    head = log.head if until is None else until
    types = types_of(wanted.events)
    if not types:
        return Plan(None, head)
    selection, end = replace(WITH_CONTENT, types=types), head
    if wanted.events is not None and head - after > STEP_EVENTS:
        begin, end = await stretch(log, types, after, head)
        if begin > after:
            return Plan(None, begin)
    if wanted.threads is None:
        return Plan(selection, end)
    return Plan(replace(selection, threads=(*wanted.threads, ORGANISM_STREAM)), head)


# -- a thread as it stood


async def load_unknown(
    log: EventLog, views: ViewStore, folded: Folded, records: Sequence[Record[events.Event]]
) -> None:
    """Load what ``folded`` must know before it can make the frames of ``records``."""
    for thread in folded.unknown(records):
        row = await thread_at(log, views, thread, folded.position)
        if row is not None:
            folded.threads[thread] = row
    for index in folded.unknown_indices(records):
        shown = await views.row(INDICES.name, index, folded.position)
        if shown is not None:
            folded.models[index] = msgspec.json.decode(shown, type=LibraryIndex).embedding_model
    if folded.is_paused is None and any(isinstance(record.event, events.OrganismStarted) for record in records):
        wanted = EventFilter((ORGANISM_STREAM,), tuple(PAUSES))
        last = await log.read(0, folded.position, wanted, 1, reverse=True)
        folded.is_paused = bool(last) and PAUSES[type(last[0].event)]


async def thread_at(log: EventLog, views: ViewStore, thread: str, position: int) -> Thread | None:
    """The thread's row at ``position``; None if it was not born yet.

    In the middle of a unit a row is as the unit leaves it (V4): then the row before the unit is folded on.
    """
    at, step = position, 1
    while (row := await _row_at(views, thread, at)) is not None and row.position > at:
        at, step = max(0, at - step), step * 2
    if at < position:
        for record in await log.read(at, position, EventFilter((thread,), tuple(FOLDED)), position - at):
            row = threads.apply(thread, row, record)
    return row


async def _row_at(views: ViewStore, thread: str, at: int) -> Thread | None:
    row = await views.row("threads", thread, at)
    return None if row is None else msgspec.json.decode(row, type=Thread)
