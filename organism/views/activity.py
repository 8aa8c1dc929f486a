"""What happened in each span of positions: sums, so that a stretch of any length is read without its events.

A row is made of the events of its span alone, when the log reaches the span's end; a long span's row is the sum of
those in it. What lies beyond the last whole span is read from the log and summed by the same function (``summed``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import compress as _where
from itertools import repeat
from math import ceil, expm1, floor, log, log1p
from operator import attrgetter, itemgetter
from operator import is_ as _is
from operator import mul as _times
from operator import sub as _minus
from typing import Any, Final, Literal

import msgspec
from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.views.views import ReadModel

SPAN: Final = 1024
LONG_SPAN: Final = 32 * SPAN
STEP: Final = log(1.12)
"""A duration is counted among those of at most 12 % more; their middle is within 6 % of each."""

_AT, _POSITION, _RECEIVER = attrgetter("at"), attrgetter("position"), attrgetter("event.to")
_KIND: Final = attrgetter("event.__class__")
_ROUTE, _EDGE = attrgetter("event.sender", "event.to", "event.reply", "event.type"), itemgetter(0, 1, 2)
_AGENT, _OUTCOME, _DURATION = attrgetter("event.agent"), attrgetter("event.outcome"), attrgetter("event.duration")

MarkKind = Literal["failure", "question", "uncertain", "start", "stop", "reload", "pause", "resume"]


class Mark(Entity, array_like=True):
    """An event that stands out; ``at`` in µs."""

    position: int
    at: int
    kind: MarkKind
    thread: str | None
    agent: str | None


class AgentSums(Entity, array_like=True):
    """What an agent got and did. ``durations``: how many of its handlings took so long (``duration_us``)."""

    messages: int = 0
    failures: int = 0
    approvals: int = 0
    uncertain: int = 0
    durations: dict[int, int] = field(default_factory=dict)
    cost_usd: Decimal = Decimal(0)


class EdgeSums(Entity, array_like=True):
    """What one sent another; ``types`` counts the classes of the payloads, ``last_at`` is in µs."""

    messages: int = 0
    failed: int = 0
    last_at: int = 0
    types: dict[str, int] = field(default_factory=dict)


class Sums(Entity, kw_only=True):
    """What happened up to ``position``, since the span before."""

    position: int
    messages: int = 0
    failures: int = 0
    approvals: int = 0
    uncertain: int = 0
    agents: dict[str, AgentSums] = field(default_factory=dict)


class Detail(Entity, kw_only=True):
    """What was where in a span. ``times`` are (µs, position) of the first event of each time.

    ``sent`` are the positions of the messages, and ``receivers`` their places in ``names``. Times and positions are
    counted from those of the span's first event.
    """

    position: int
    times: list[tuple[int, int]]
    sent: list[int]
    receivers: list[int]
    names: list[str]


class Parts(Entity, kw_only=True):
    """What a span's reader needs to count parts of it; what few need is decoded when it is needed.

    ``begin`` and ``end`` are the times of its first and last event in µs. ``agents`` are an ``AgentSums`` each, by
    name, ``marks`` a list of ``Mark``.
    """

    position: int
    first: int
    begin: int
    end: int
    messages: int
    failures: int
    approvals: int
    uncertain: int
    agents: msgspec.Raw
    marks: msgspec.Raw


class LongSpan(Sums, kw_only=True):
    """The sums of a long span. ``edges`` are named ``from to``, those of replies ``from to reply``."""

    edges: dict[str, EdgeSums] = field(default_factory=dict)


class Span(LongSpan, kw_only=True):
    """The sums of a span, and what parts of it are counted by: see ``Parts``."""

    first: int
    begin: int
    end: int
    marks: list[Mark] = field(default_factory=list)


def parts_of(span: Span) -> Parts:
    """The span as its readers read it."""
    return msgspec.json.decode(msgspec.json.encode(span), type=Parts)


def duration_us(step: int) -> float:
    """The middle of the durations that are counted at this step."""
    return expm1((step + 0.5) * STEP)


def quantile_us(durations: Mapping[int, int], share: float) -> float | None:
    """The duration that this share of all does not exceed, within 6 %; None if there are none."""
    left = ceil(sum(durations.values()) * share)
    for step in sorted(durations):
        left -= durations[step]
        if left <= 0:
            return duration_us(step)
    return None


def summed(records: Sequence[Record[Any]]) -> Span:
    """The sums of these events, which follow each other.

    What each hop has is counted by the library's loops instead of Python's, since each hop pays for it.
    """
    first, last = records[0], records[-1]
    span = Span(position=last.position, first=first.position, begin=first.at, end=last.at)
    _count_sent(span, _of_kind(records, events.MessageSent))
    _count_handled(span, _of_kind(records, events.MessageHandled))
    for record in _where(records, map(_COUNTS.__contains__, map(_KIND, records))):
        _COUNTS[type(record.event)](span, record)
    return span


def detailed(records: Sequence[Record[Any]]) -> Detail:
    """What is where in these events, which follow each other."""
    first, backward, sent = records[0], records[::-1], _of_kind(records, events.MessageSent)
    ats, positions = _after(first.at, map(_AT, backward)), _after(first.position, map(_POSITION, backward))
    receivers = list(map(_RECEIVER, sent))
    places = {name: place for place, name in enumerate(dict.fromkeys(receivers))}
    return Detail(
        position=records[-1].position,
        times=sorted(dict(zip(ats, positions, strict=True)).items()),
        sent=list(_after(first.position, map(_POSITION, sent))),
        receivers=list(map(places.__getitem__, receivers)),
        names=list(places),
    )


def _of_kind(records: Sequence[Record[Any]], kind: type[events.Event]) -> list[Record[Any]]:
    return list(_where(records, map(_is, map(_KIND, records), repeat(kind))))


def _after(begin: int, numbers: Iterable[int]) -> Iterator[int]:
    return map(_minus, numbers, repeat(begin))


def _count_sent(span: Span, sent: Sequence[Record[events.MessageSent]]) -> None:
    span.messages = len(sent)
    routes = list(map(_ROUTE, sent))
    last_at = dict(zip(map(_EDGE, routes), map(_AT, sent), strict=True))
    for (sender, to, is_reply, kind), count in Counter(routes).items():
        _agent(span, to).messages += count
        edge = _edge(span, sender, to, is_reply=is_reply)
        edge.messages += count
        edge.last_at = last_at[sender, to, is_reply]
        edge.types[kind] = count


def _count_handled(span: Span, handled: Sequence[Record[events.MessageHandled]]) -> None:
    done = list(_where(handled, map("done".__eq__, map(_OUTCOME, handled))))
    steps = map(floor, map(_times, map(log1p, map(_DURATION, done)), repeat(1 / STEP)))
    for (agent, step), count in Counter(zip(map(_AGENT, done), steps, strict=True)).items():
        _agent(span, agent).durations[step] = count


def add(sums: LongSpan, more: LongSpan | Span) -> None:
    """Add what happened after it."""
    sums.position = more.position
    for name in TOTALS:
        setattr(sums, name, getattr(sums, name) + getattr(more, name))
    for name, other in more.agents.items():
        agent = _agent(sums, name)
        for total in TOTALS:
            setattr(agent, total, getattr(agent, total) + getattr(other, total))
        _add_counts(agent.durations, other.durations)
        agent.cost_usd += other.cost_usd
    for name, sent in more.edges.items():
        add_edge(_edge_named(sums, name), sent)


def add_edge(edge: EdgeSums, more: EdgeSums) -> None:
    """Add what else was sent there."""
    edge.messages += more.messages
    edge.failed += more.failed
    edge.last_at = max(edge.last_at, more.last_at)
    _add_counts(edge.types, more.types)


def _add_counts(counts: dict[Any, int], more: Mapping[Any, int]) -> None:
    for key, count in more.items():
        counts[key] = counts.get(key, 0) + count


def _agent(span: Sums, name: str) -> AgentSums:
    if (found := span.agents.get(name)) is None:
        found = span.agents[name] = AgentSums()
    return found


def _edge(span: Span, sender: str, to: str, *, is_reply: bool = False) -> EdgeSums:
    return _edge_named(span, f"{sender} {to} reply" if is_reply else f"{sender} {to}")


def _edge_named(span: LongSpan | Span, name: str) -> EdgeSums:
    if (found := span.edges.get(name)) is None:
        found = span.edges[name] = EdgeSums()
    return found


def _mark(span: Span, record: Record[Any], kind: MarkKind, agent: str | None = None) -> None:
    span.marks.append(Mark(record.position, record.at, kind, record.thread, agent))


def _dead(span: Span, record: Record[events.MessageDead]) -> None:
    event = record.event
    span.failures += 1
    _agent(span, event.agent).failures += 1
    _edge(span, event.sender, event.agent, is_reply=event.reply).failed += 1
    _mark(span, record, "failure", event.agent)


def _refused(span: Span, record: Record[events.MessageRefused]) -> None:
    """A failure of the one who wanted to send it, as its dead letter says."""
    event = record.event
    span.failures += 1
    _agent(span, event.sender).failures += 1
    if event.why != "unknown_receiver":
        _edge(span, event.sender, event.to).failed += 1
    _mark(span, record, "failure", event.sender)


def _asked(span: Span, record: Record[events.ApprovalRequested]) -> None:
    span.approvals += 1
    _agent(span, record.event.agent).approvals += 1
    _mark(span, record, "question", record.event.agent)


def _step(span: Span, record: Record[events.StepStarted]) -> None:
    if record.event.unknown:
        span.uncertain += 1
        _agent(span, record.event.agent).uncertain += 1
        _mark(span, record, "uncertain", record.event.agent)


def _called(span: Span, record: Record[events.ModelCalled]) -> None:
    _agent(span, record.event.agent).cost_usd += Decimal(record.event.cost_usd)


def _marks(kind: MarkKind) -> Callable[[Span, Record[Any]], None]:
    return lambda span, record: _mark(span, record, kind, getattr(record.event, "agent", None))


TOTALS: Final = ("messages", "failures", "approvals", "uncertain")
_COUNTS: Final[Mapping[type[events.Event], Callable[[Span, Record[Any]], None]]] = {
    events.MessageDead: _dead,
    events.MessageRefused: _refused,
    events.ApprovalRequested: _asked,
    events.StepStarted: _step,
    events.ModelCalled: _called,
    events.OrganismStarted: _marks("start"),
    events.OrganismStopped: _marks("stop"),
    events.OrganismReloaded: _marks("reload"),
    **dict.fromkeys((events.OrganismPaused, events.AgentPaused, events.ThreadPaused), _marks("pause")),
    **dict.fromkeys((events.OrganismResumed, events.AgentResumed, events.ThreadResumed), _marks("resume")),
}
MARKING: Final = tuple(kind for kind in _COUNTS if kind is not events.ModelCalled)
"""The events that may be a mark."""


def _fold_span(rows: dict[str, Span], records: Sequence[Record[Any]]) -> None:
    rows[str(records[-1].position)] = summed(records)


def _fold_detail(rows: dict[str, Detail], records: Sequence[Record[Any]]) -> None:
    rows[str(records[-1].position)] = detailed(records)


def _fold_long_span(rows: dict[str, LongSpan], parts: Sequence[Any]) -> None:
    long = rows[str(parts[-1].position)] = LongSpan(position=0)
    for part in parts:
        add(long, part)


DETAILS: ReadModel[Detail] = ReadModel(
    name="span_details",
    version=1,
    types=frozenset(events.EVENTS.values()),
    fold=_fold_detail,
    row=Detail,
    columns={"position": "INTEGER"},
    is_final=True,
    span=SPAN,
)
SPANS: ReadModel[Span] = ReadModel(
    name="spans",
    version=1,
    types=frozenset(events.EVENTS.values()),
    fold=_fold_span,
    row=Span,
    columns={"position": "INTEGER"},
    is_final=True,
    span=SPAN,
)
LONG_SPANS: ReadModel[LongSpan] = ReadModel(
    name="long_spans",
    version=1,
    types=(),
    fold=_fold_long_span,
    row=LongSpan,
    columns={"position": "INTEGER"},
    is_final=True,
    span=LONG_SPAN,
)
