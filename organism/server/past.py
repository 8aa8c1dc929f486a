"""The past as one viewer wants it: read page by page, and no more of it than may pass the filter.

The naive way reads every event and filters the frames: who looks for one thread among a million events waits for all
of them. Here the filter goes down to the log (``planned``). A thread's events lie in an index. Of the agents it is
known in which threads they take part, of rare kinds of events in which threads they stand, and of every type in which
spans of the log. What is left out makes no frame that passes, so the frames are those of the naive way, which the
filter still looks at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from organism.log.log import SPAN_EVENTS, EventFilter, Log, Query, Where, span_of
from organism.model.events import ORGANISM, ORGANISM_STREAM, Event
from organism.projections.marks import MARKS
from organism.server.frames import NAMELESS, Folded, types_of
from organism.server.learn import learn
from organism.server.push import WITH_CONTENT, Chunk, Filter

STEP_SPANS: Final = 8
"""Spans that are looked at in one go: others need the log's reading thread too."""
STEP_EVENTS: Final = STEP_SPANS * SPAN_EVENTS


async def stretch(log: Log, types: Sequence[str], after: int, until: int) -> tuple[int, int]:
    """The next positions that may be of these types: low < position ≤ high. There are none if low is ``until``."""
    spans = await log.type_spans(types, span_of(after + 1), span_of(until), STEP_SPANS)
    if not spans:
        return until, until
    return max(after, spans[0] * SPAN_EVENTS), min(until, _end_of_run(spans) * SPAN_EVENTS)


def _end_of_run(spans: Sequence[int]) -> int:
    """The first span behind those that follow one another without a gap."""
    end = spans[0]
    for span in spans:
        if span != end:
            break
        end += 1
    return end


async def read_events(log: Log, after: int, until: int, wanted: EventFilter, limit: int) -> list[Event]:
    """Events with after < position ≤ until, in order, as ``Log.read`` gives them; what holds none is not read."""
    if not wanted.types or until - after <= STEP_EVENTS:
        return await log.read(after, until, wanted, limit)
    if wanted.threads:  # whose own events lie in an index; what is left out is what comes before the first of the types
        return await log.read((await stretch(log, wanted.types, after, until))[0], until, wanted, limit)
    found: list[Event] = []
    while after < until and len(found) < limit:
        low, after = await stretch(log, wanted.types, after, until)
        if low < after:
            found += await log.read(low, after, wanted, limit - len(found))
    return found


MANY_THREADS: Final = 500
"""With more threads than this, reading everything is as fast."""
MANY_AGENTS: Final = 8
FIRST_PAGE, LEAST_PAGE, MOST_PAGE = 64, 4, 512
PAGE_BYTES: Final = 64 << 10
"""The size that a page should have: about what a socket takes at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask the log for, up to ``until``; None: nothing there can pass.

    ``is_choice`` says that the threads were chosen for this span alone.
    """

    asked: EventFilter | None
    until: int
    is_choice: bool = False


class Past:
    """Reads on from ``position`` for one filter."""

    def __init__(self, log: Log, wanted: Filter, position: int) -> None:
        self.wanted = wanted
        self._log = log
        self._folded = Folded(position)
        self._plan = Plan(None, position)
        self._events = FIRST_PAGE

    @property
    def position(self) -> int:
        return self._folded.position

    async def read(self) -> Chunk:
        """The next page. What is not in it of the positions that it spans does not pass."""
        after = self.position
        if after >= self._plan.until:
            await self._plan_on(after)
        events, reached = await self._page(self._plan, after)
        await learn(self._log, self._folded, events)
        chunk = Chunk(after, reached, self._folded.frames(events))
        self._folded.position = reached
        self._events = _fitting(self._events, chunk.size)
        return chunk

    async def _plan_on(self, after: int) -> None:
        """Plan what follows. A thread that one of two plans leaves out has moved on unseen: it is forgotten."""
        before, self._plan = self._plan, await planned(self._log, self.wanted, after)
        if before.is_choice or self._plan.is_choice:
            folded = Folded(after)
            folded.is_paused, self._folded = self._folded.is_paused, folded

    async def _page(self, plan: Plan, after: int) -> tuple[list[Event], int]:
        if plan.asked is None:
            return [], plan.until
        until = plan.until if plan.asked.threads else min(plan.until, after + STEP_EVENTS)
        events = await self._log.read(after, until, plan.asked, self._events)
        reached = events[-1].position if len(events) == self._events else until
        if events and events[-1].type == "thread_created":  # its frame speaks of the message that follows it
            born = events[-1].position
            events += await self._log.read(born, born + 1, WITH_CONTENT)
            reached = max(reached, events[-1].position)
        return events, reached


def _fitting(events: int, size: int) -> int:
    """How many events the next page should have, after a page of so many had this size."""
    if size > 2 * PAGE_BYTES:
        return max(LEAST_PAGE, events // 2)
    return min(MOST_PAGE, events * 2) if size < PAGE_BYTES else events


async def planned(log: Log, wanted: Filter, after: int) -> Plan:
    """How to read what follows ``after`` and may pass the filter, up to the head."""
    head = log.head
    types = types_of(wanted.events)
    if not types:
        return Plan(None, head)
    asked, end = replace(WITH_CONTENT, types=types), head
    threads, is_choice = wanted.threads, False
    if head - after > STEP_EVENTS:
        if wanted.events is not None:
            begin, end = await stretch(log, types, after, head)
            if begin > after:
                return Plan(None, begin)
        if is_choice := threads is None:
            threads = await _chosen(log, wanted.agents, frozenset(types), after)
    if threads is None:
        return Plan(asked, end)
    return Plan(replace(asked, threads=(*threads, ORGANISM_STREAM)), head, is_choice)


async def _chosen(log: Log, agents: frozenset[str] | None, types: frozenset[str], after: int) -> frozenset[str] | None:
    """The threads with something after the position that may pass; None: too many to name, or nobody knows them."""
    rare = types - ORGANISM
    found = await _marked(log, rare, after) if rare <= MARKS.keys() else None
    if found is None and agents is not None:
        found = await _of_agents(log, agents, types, after)
    return found


async def _marked(log: Log, types: frozenset[str], after: int) -> frozenset[str] | None:
    """The threads with events of these types; None: too many to name."""
    marks = sorted({MARKS[kind] for kind in types})
    return await _named(log, "marks", (Where("mark", "in", marks), Where("position", ">", after)), "thread_id")


async def _of_agents(log: Log, agents: frozenset[str], types: frozenset[str], after: int) -> frozenset[str] | None:
    """The threads with something that may pass a filter by these agents; None: too many to name.

    A frame that names an agent is of a thread in which that agent takes part. Some name none, and pass.
    """
    if len(agents) > MANY_AGENTS:
        return None
    moved = Where("position", ">", after)
    parts = [await _named(log, "threads", (moved, Where("participants", "has", agent)), "id") for agent in agents]
    parts.append(await _marked(log, types & NAMELESS, after))
    found = [part for part in parts if part is not None]
    return frozenset().union(*found) if len(found) == len(parts) else None


async def _named(log: Log, model: str, where: tuple[Where, ...], field: str) -> frozenset[str] | None:
    """A field of the rows that fulfil the conditions; None: too many of them."""
    page = await log.rows(model, Query(where, limit=MANY_THREADS))
    return frozenset(row[field] for row in orjson.loads(page.rows)) if page.total == page.count else None
