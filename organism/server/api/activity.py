"""The activity: how much happened when, in at most 500 buckets, and what stands out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.json import Decoder
from starlette.responses import Response

from organism.errors import BadPosition, InvalidField, NotFound
from organism.events.entity import Entity
from organism.model import words
from organism.model.times import iso
from organism.server.http.bodies import Faults
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import gives
from organism.server.http.lists import position_in, time_in
from organism.server.http.rights import Right
from organism.views.activity import (
    DETAILS,
    SPAN,
    SPANS,
    TOTALS,
    AgentSums,
    Detail,
    Mark,
    MarkKind,
    Parts,
    detailed,
    parts_of,
    summed,
)
from organism.views.threads import MESSAGES
from organism.views.views import Query, Sums, Where, all_rows

DEFAULT_BUCKETS: Final = 200
MOST_MARKS: Final = 500
_MARKS: Final = Decoder(list[Mark])
_AGENTS: Final = Decoder(dict[str, AgentSums])
_OF_KIND: Final[Mapping[MarkKind, str]] = {"failure": "failures", "question": "approvals", "uncertain": "uncertain"}


class Bucket(Entity):
    """What happened from one position to another, the times of both, and how much of each."""

    first: words.Position
    last: words.Position
    since: words.Time = field(name="from")
    until: words.Time
    messages: words.Count
    failures: Annotated[words.Count, Meta(description="Dead letters: messages that failed for good, refused sends.")]
    approvals: Annotated[words.Count, Meta(description="How often a person was asked.")]
    uncertain: Annotated[words.Count, Meta(description="Unsafe effects that were found open.")]


class ShownMark(Entity):
    """Something that stands out; of ``count`` of its kind in a bucket the last one."""

    position: words.Position
    at: words.Time
    kind: MarkKind
    count: words.Count = 1
    thread_id: words.ThreadId | UnsetType = UNSET
    agent: words.AgentName | UnsetType = UNSET


class Activity(Entity):
    """What happened after a position and up to another; buckets in which nothing is counted are left out."""

    after: words.Position
    until: words.Position
    buckets: list[Bucket]
    marks: Annotated[list[ShownMark], Meta(description="All up to 500; of more, one a kind and bucket.")]
    marks_total: words.Count


async def activity(call: Call) -> Response:
    """How many messages, failures, questions and uncertain effects there were, in buckets of positions or of time.

    A bucket of more than 1,024 positions begins behind a multiple of 1,024. Of an agent it is what the agent got.
    """
    head, faults = call.tenant.log.head, Faults()
    given, after, until = call.parameters(faults), 0, head
    with faults:
        after = await position_in(call, "after") or 0
    with faults:
        found = await position_in(call, "until")
        until = head if found is None else found
    with faults:
        if after > until:
            raise InvalidField(f"`after` ({after}) lies behind `until` ({until}).", param="query.after")
    with faults:
        if "thread" in given and "agent" in given:
            raise InvalidField("`thread` and `agent` both say of whom; send one of them.", param="query.agent")
    faults.raise_found()
    wanted = await _wanted(call, given, until)
    stretch, buckets = await _stretch(call, after, until), given.get("buckets", DEFAULT_BUCKETS)
    if given.get("by") == "time":
        await _load(call, stretch, stretch.cut((after, until)))
        edges = stretch.edges(buckets, time_in(call, "after"), time_in(call, "until"))
        await _load(call, stretch, stretch.cut_by_times(edges))
        bounds = stretch.by_time(edges)
    else:
        bounds = by_position(after, until, buckets)
    await _load(call, stretch, stretch.cut(bounds))
    sent = None if wanted.thread is None else await _sent(call, wanted.thread, after, until)
    counts = stretch.counts(bounds, wanted, sent)
    marks = [mark for part in stretch.parts for mark in stretch.marks(part) if wanted.has(mark)]
    shown = [
        Bucket(low + 1, high, iso(stretch.time_at(low + 1)), iso(stretch.time_at(high)), *count)
        for (low, high), count in zip(pairwise(bounds), counts, strict=True)
        if any(count)
    ]
    return JsonResponse(Activity(after, until, shown, shown_marks(marks, bounds), len(marks)))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of which thread or agent; of all if both are None."""

    thread: str | None
    agent: str | None

    def has(self, mark: Mark) -> bool:
        return self.thread in {None, mark.thread} and self.agent in {None, mark.agent}


async def _wanted(call: Call, given: Mapping[str, Any], until: int) -> Wanted:
    """What the call asks for. Raises ``Forbidden`` or ``NotFound``."""
    call.permit(**{name: given[name] for name in ("thread", "agent") if name in given})
    thread, agent = given.get("thread"), given.get("agent")
    if thread is not None:
        await call.row("threads", thread)
    if agent is not None and await call.tenant.views.row("agents", agent) is None:
        await call.row("agents", agent, until)  # it may have been there then
    return Wanted(thread, agent)


async def _stretch(call: Call, after: int, until: int) -> Stretch:
    """The sums of the spans that the stretch touches; those of the last one may end with the stretch."""
    if after == until:
        return Stretch([], after, until)
    where = (Where("position", ">", after), Where("position", "<", until + SPAN))
    found = await all_rows(call.tenant.views, SPANS.name, Query(where, order_by="position"), Parts)
    reached = found[-1].position if found else after - after % SPAN
    if reached >= until:
        return Stretch(found, after, until)
    records = await call.tenant.log.read(reached, until, limit=SPAN)
    return Stretch([*found, parts_of(summed(records))], after, until, detailed(records))


async def _load(call: Call, stretch: Stretch, positions: Collection[int]) -> None:
    """Let the stretch know what is where in the spans at these positions."""
    where = (Where("position", "in", sorted(set(positions) - stretch.details.keys())),)
    for detail in await all_rows(call.tenant.views, DETAILS.name, Query(where, order_by="position"), Detail):
        stretch.details[detail.position] = detail


async def _sent(call: Call, thread: str, after: int, until: int) -> list[int]:
    """The positions of the thread's messages."""
    where = (Where("thread_id", "=", thread), Where("position", ">", after), Where("position", "<=", until))
    return [position for position, _ in await call.tenant.views.sums(MESSAGES.name, Sums(("position",), where))]


def by_position(after: int, until: int, buckets: int) -> list[int]:
    """Where buckets of as many positions end, the beginning of the first before them."""
    begin, size = after, -((after - until) // buckets)
    if size > SPAN:
        begin = after - after % SPAN
        size = -((begin - until) // (buckets * SPAN)) * SPAN
    return [after, *range(begin + size, until, size), until] if after < until else [after]


def shown_marks(marks: Sequence[Mark], bounds: Sequence[int]) -> list[ShownMark]:
    """All of them, or if they are too many the last one of each kind in each bucket."""
    if len(marks) <= MOST_MARKS:
        return [_shown(mark) for mark in marks]
    last: dict[tuple[MarkKind, int], ShownMark] = {}
    for mark in marks:
        key = mark.kind, bisect_left(bounds, mark.position)
        count = last[key].count + 1 if key in last else 1
        last[key] = _shown(mark, count)
    return sorted(last.values(), key=lambda mark: mark.position)


def _shown(mark: Mark, count: int = 1) -> ShownMark:
    return ShownMark(mark.position, iso(mark.at), mark.kind, count, mark.thread or UNSET, mark.agent or UNSET)


class Stretch:
    """The positions after ``after`` up to ``until``, and the sums of the spans that they touch."""

    def __init__(self, parts: Sequence[Parts], after: int, until: int, last: Detail | None = None) -> None:
        self.parts = parts
        self.details = {} if last is None else {last.position: last}
        self._after, self._until = after, until
        self._ends = [part.position for part in parts]
        self._begins = [part.begin for part in parts]
        self._marks: dict[int, list[Mark]] = {}

    def cut(self, bounds: Sequence[int]) -> list[int]:
        """The spans that a bound lies inside of, by their positions."""
        inside = {bisect_right(self._ends, bound) for bound in bounds if bound % SPAN}
        return [self._ends[number] for number in inside if number < len(self._ends)]

    def time_at(self, position: int) -> int:
        """When the event at a position was, in µs."""
        part = self.parts[bisect_left(self._ends, position)]
        if position == part.position:
            return part.end
        if position == part.first:
            return part.begin
        times = self.details[part.position].times
        return part.begin + times[bisect_right(times, position - part.first, key=_second) - 1][0]

    def marks(self, part: Parts) -> list[Mark]:
        """What stands out in the part, as far as it belongs to the stretch."""
        if part.position not in self._marks:
            found = _MARKS.decode(part.marks)
            self._marks[part.position] = [mark for mark in found if self._after < mark.position <= self._until]
        return self._marks[part.position]

    def edges(self, buckets: int, begin: int | None, end: int | None) -> list[int]:
        """The times that divide the time from ``begin`` (or the first event) to ``end`` (or the last one)."""
        if not self.parts:
            return []
        begin = self.time_at(self._after + 1) if begin is None else begin
        end = self.time_at(self._until) if end is None else end
        return [begin + (end - begin) * number // buckets for number in range(1, buckets)]

    def cut_by_times(self, times: Sequence[int]) -> list[int]:
        """The spans that one of these times lies in, by their positions."""
        return [self._part_at(at).position for at in times if self._part_at(at).end > at]

    def by_time(self, edges: Sequence[int]) -> list[int]:
        """Where buckets that end at these times end, the beginning of the first before them.

        One of more than ``SPAN`` positions begins behind a multiple of it.
        """
        bounds = [self._until]
        for edge in reversed(edges):
            bound = min(bounds[-1], max(self._after, self._reached(edge)))
            if bounds[-1] - bound > SPAN:
                bound = max(self._after, bound - bound % SPAN)
            bounds.append(bound)
        return sorted({self._after, *bounds})

    def counts(self, bounds: Sequence[int], wanted: Wanted, sent: Sequence[int] | None) -> list[list[int]]:
        """Of each bucket the ``TOTALS``; ``sent`` are where a thread's messages lie."""
        counts = [[0] * len(TOTALS) for _ in bounds[1:]]
        if sent is not None:
            _count(counts, bounds, 0, sent)
        for part in self.parts:
            low, high = bisect_right(bounds, part.first - 1), bisect_left(bounds, part.position)
            if wanted.thread is None and low == high and 0 < low < len(bounds):
                sums = part if wanted.agent is None else _AGENTS.decode(part.agents).get(wanted.agent)
                if sums is not None:
                    for place, name in enumerate(TOTALS):
                        counts[low - 1][place] += getattr(sums, name)
                continue
            if wanted.thread is None:
                _count(counts, bounds, 0, self._sent(part, wanted.agent))
            for kind, name in _OF_KIND.items():
                found = [mark.position for mark in self.marks(part) if mark.kind == kind and wanted.has(mark)]
                _count(counts, bounds, TOTALS.index(name), found)
        return counts

    def _reached(self, at: int) -> int:
        """The last position whose event is not after a time that lies in the stretch."""
        part = self._part_at(at)
        if part.end <= at:
            return part.position
        times = self.details[part.position].times
        return part.first + times[bisect_right(times, at - part.begin, key=_first)][1] - 1

    def _sent(self, part: Parts, agent: str | None) -> list[int]:
        """The positions of the messages, all or those that the agent got."""
        detail = self.details[part.position]
        if agent is None:
            return [part.first + at for at in detail.sent]
        place = detail.names.index(agent) if agent in detail.names else None
        got = zip(detail.sent, detail.receivers, strict=True)
        return [part.first + at for at, receiver in got if receiver == place]

    def _part_at(self, at: int) -> Parts:
        return self.parts[max(0, bisect_right(self._begins, at) - 1)]


def _count(counts: Sequence[list[int]], bounds: Sequence[int], place: int, positions: Sequence[int]) -> None:
    """Count positions, which rise, in the buckets that they lie in."""
    if not positions:
        return
    low, high = bisect_left(bounds, positions[0]), bisect_left(bounds, positions[-1])
    for bucket in range(max(1, low), min(high, len(counts)) + 1):
        begin, end = bounds[bucket - 1], bounds[bucket]
        counts[bucket - 1][place] += bisect_right(positions, end) - bisect_right(positions, begin)


def _first(pair: tuple[int, int]) -> int:
    return pair[0]


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


NARROW: Final = {
    "after": Annotated[
        words.Position | words.Time, Meta(description="What follows this position, or the last one of this time.")
    ],
    "until": Annotated[
        words.Position | words.Time,
        Meta(description="Up to this position, or the last one of this time; by default to the head."),
    ],
    "by": Annotated[Literal["position", "time"], Meta(description="Buckets of as many positions, or of as much time.")],
    "buckets": Annotated[int, Meta(ge=1, le=500, description="How many at most; 200 by default.", examples=[200])],
    "thread": Annotated[words.ThreadId, Meta(min_length=1, description="Only of this thread.")],
    "agent": Annotated[words.AgentName, Meta(description="Only what this one got.")],
}

ROUTES: Final = tagged(
    Tag("activity", __doc__),
    Route(
        "GET /organism/activity",
        activity,
        right=Right("read", {"thread": "thread", "agent": "agent"}, in_body=True),
        by_head=True,
        gives=gives(Activity),
        query=tuple(NARROW),
        narrow=NARROW,
        refuses=(BadPosition, NotFound),
    ),
)
