"""The graph: who may write to whom, and what they did lately, as data or as a diagram."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta, field
from starlette.responses import PlainTextResponse, Response

from organism.errors import NotFound
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import ORGANISM_STREAM
from organism.log.log import EventFilter
from organism.model import words
from organism.model.ids import CONSOLE
from organism.model.money import plain
from organism.model.times import iso
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import Gives, gives
from organism.server.http.lists import AT, as_of
from organism.server.http.rights import READ
from organism.views.activity import (
    LONG_SPAN,
    LONG_SPANS,
    SPAN,
    SPANS,
    AgentSums,
    EdgeSums,
    LongSpan,
    add,
    add_edge,
    quantile_us,
    summed,
)
from organism.views.organism import LISTING
from organism.views.views import Query, ReadModel, Where, all_rows

ANYONE: Final = "*"
HOUR_SECONDS: Final = 3600
MOST_TYPES: Final = 5
NodeKind = Literal["agent", "listener", "tool", "console", "system"]
EdgeKind = Literal["peer", "tool", "reply", "outside"]
EdgeKey = tuple[str, str, EdgeKind]


class Node(Entity, kw_only=True):
    """Who writes or is written to, and what it did in the window."""

    name: words.AgentName
    kind: NodeKind
    description: Annotated[str, Meta(examples=["Greets whoever is named"])] | None = None
    payload_class: Annotated[str, Meta(examples=["handlers.hello.Greeting"])] | None = None
    group: Annotated[str | None, Meta(description="Which others it is shown with, if it says.")] = None
    any_peer: Annotated[bool, Meta(description="It may write to anyone.")] = False
    handled: words.Count = 0
    failed: words.Count = 0
    asked: Annotated[words.Count, Meta(description="How often it asked a person.")] = 0
    cost_usd: words.Money = "0"
    p50_ms: Annotated[float | None, Meta(description="Half of its handlings took at most so long, within 6 %.")] = None
    p95_ms: Annotated[float | None, Meta(description="19 of 20 handlings took at most so long, within 6 %.")] = None


class Edge(Entity, kw_only=True):
    """Who may write to whom, or did: replies, and what anyone sent who may write to all."""

    sender: words.AgentName = field(name="from")
    to: Annotated[words.AgentName, Meta(examples=["shouter"])]
    kind: EdgeKind
    messages: words.Count = 0
    failed: words.Count = 0
    last_at: words.Time | None = None
    types: Annotated[list[words.PayloadType], Meta(description="At most five, the most frequent first.")] = field(
        default_factory=list
    )


class Graph(Entity):
    """Who may write to whom, and what they did lately."""

    nodes: list[Node]
    edges: list[Edge]


async def graph(call: Call) -> Response:
    """``{nodes, edges}``: the listeners, each other name that is a peer, and who may write to whom, or did.

    Counts are of the ``window`` of seconds up to the last event. As ``mermaid`` it is the text of a flowchart, which
    many viewers of Markdown draw.
    """
    given = call.parameters()
    at = await as_of(call)
    until = call.tenant.log.head if at is None else at
    listeners = await _listeners(call, until)
    (last,) = await call.tenant.log.read(until - 1, until)
    begin = await call.tenant.log.position_at(last.at - given.get("window", HOUR_SECONDS) * 1_000_000)
    found = made(listeners, await _sums(call, begin, until))
    if given.get("format") == "mermaid":
        return PlainTextResponse(_mermaid(found))
    return JsonResponse(found)


async def _listeners(call: Call, until: int) -> Sequence[events.Declared]:
    """Those of the last start or reload."""
    wanted = EventFilter((ORGANISM_STREAM,), LISTING)
    for record in await call.tenant.log.read(0, until, wanted, 1, reverse=True):
        if isinstance(record.event, LISTING):
            return record.event.listeners
    raise NotFound(f"There was no organism yet at position {until}.")


async def _sums(call: Call, after: int, until: int) -> LongSpan:
    """What happened between two positions: the fewest whole spans, and the events before and behind them."""
    begin, end = after + -after % SPAN, until - until % SPAN
    if begin > end:
        return await _read(call, LongSpan(position=0), (after, until))
    long = await _whole(call, LONG_SPANS, begin, end)
    middle = (long[0].position - LONG_SPAN, long[-1].position) if long else (end, end)
    sums = LongSpan(position=0)
    for part in (
        *await _whole(call, SPANS, begin, middle[0]),
        *long,
        *await _whole(call, SPANS, middle[1], end),
    ):
        add(sums, part)
    return await _read(call, sums, (after, begin), (end, until))


async def _whole(call: Call, model: ReadModel, after: int, until: int) -> list[LongSpan]:
    """The sums of the spans that lie between two positions."""
    where = (Where("position", ">=", after + model.span), Where("position", "<=", until))
    return await all_rows(call.tenant.views, model.name, Query(where, order_by="position"), LongSpan)


async def _read(call: Call, sums: LongSpan, *stretches: tuple[int, int]) -> LongSpan:
    """The sums with those of the events between these positions."""
    for after, until in stretches:
        if after < until:
            add(sums, summed(await call.tenant.log.read(after, until, limit=2 * SPAN)))
    return sums


def made(listeners: Sequence[events.Declared], sums: LongSpan) -> Graph:
    """The listeners in their order, what is written to besides, and the edges: the declared ones first."""
    tools = {tool for listener in listeners for tool in listener.tools}
    nodes = {listener.name: _node(listener, is_tool=listener.name in tools) for listener in listeners}
    nodes[CONSOLE] = _outside(CONSOLE)
    edges: dict[EdgeKey, EdgeSums] = {}
    for listener in listeners:
        for to in dict.fromkeys((*listener.peers, *listener.tools)):
            if to != ANYONE:
                nodes.setdefault(to, _outside(to))
                edges[listener.name, to, _kind(listener.name, to, tools)] = EdgeSums()
    for name, sent in sums.edges.items():
        sender, to, *reply = name.split(" ")
        if sender in nodes and to in nodes:
            add_edge(edges.setdefault((sender, to, _kind(sender, to, tools, is_reply=bool(reply))), EdgeSums()), sent)
    for name, agent in sums.agents.items():
        if name in nodes:
            _count(nodes[name], agent)
    return Graph(list(nodes.values()), [_edge(*each) for each in edges.items()])


def _node(listener: events.Declared, *, is_tool: bool) -> Node:
    return Node(
        name=listener.name,
        kind="agent" if listener.is_agent else "tool" if is_tool else "listener",
        description=listener.description,
        payload_class=listener.payload_class,
        group=listener.group,
        any_peer=ANYONE in listener.peers,
    )


def _outside(name: str) -> Node:
    return Node(name=name, kind="console" if name == CONSOLE else "system")


def _kind(sender: str, to: str, tools: Collection[str], *, is_reply: bool = False) -> EdgeKind:
    if CONSOLE in {sender, to}:
        return "outside"
    if is_reply:
        return "reply"
    return "tool" if to in tools else "peer"


def _count(node: Node, agent: AgentSums) -> None:
    node.handled, node.failed, node.asked = sum(agent.durations.values()), agent.failures, agent.approvals
    node.cost_usd = plain(agent.cost_usd)
    node.p50_ms, node.p95_ms = (_milliseconds(quantile_us(agent.durations, share)) for share in (0.5, 0.95))


def _milliseconds(duration_us: float | None) -> float | None:
    return None if duration_us is None else round(duration_us / 1000, 3)


def _edge(key: EdgeKey, sent: EdgeSums) -> Edge:
    sender, to, kind = key
    return Edge(
        sender=sender,
        to=to,
        kind=kind,
        messages=sent.messages,
        failed=sent.failed,
        last_at=iso(sent.last_at) if sent.last_at else None,
        types=sorted(sent.types, key=sent.types.__getitem__, reverse=True)[:MOST_TYPES],
    )


_SHAPES: Final[Mapping[NodeKind, str]] = {
    "agent": '{id}(["{name}"])',
    "listener": '{id}["{name}"]',
    "tool": '{id}[/"{name}"/]',
    "console": '{id}(("{name}"))',
    "system": '{id}[["{name}"]]',
}
"""How each kind is drawn. A name is letters, digits, ``_``, ``.`` and ``-``: nothing of it needs an escape."""


def _mermaid(drawn: Graph) -> str:
    ids = {node.name: f"n{number}" for number, node in enumerate(drawn.nodes)}
    lines = [_SHAPES[node.kind].format(id=ids[node.name], name=node.name) for node in drawn.nodes]
    lines += [f"{ids[edge.sender]} {'-.->' if edge.kind == 'reply' else '-->'} {ids[edge.to]}" for edge in drawn.edges]
    return "\n    ".join(("flowchart LR", *lines)) + "\n"


WINDOW: Final = Annotated[
    int, Meta(ge=60, le=86_400, description="Of so many seconds before; 3,600 by default.", examples=[3600])
]
ROUTES: Final = tagged(
    Tag("graph", __doc__),
    Route(
        "GET /organism/graph",
        graph,
        right=READ,
        by_head=True,
        gives=gives(Graph, Gives(str, kind="text/plain")),
        query=("format", AT, "window"),
        narrow={"window": WINDOW},
        refuses=(NotFound,),
    ),
)
