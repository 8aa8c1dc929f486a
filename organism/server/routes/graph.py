"""The graph: who may write to whom, as data or as a diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from organism.config.settings import Settings
from organism.model.ids import CONSOLE
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import Contract, Gives, gives
from organism.server.lists import choice
from organism.server.shapes.configuration import Graph

FORMATS: Final = ("json", "mermaid")
TEXT: Final = b"text/plain; charset=utf-8"


async def graph(call: Call) -> Answer:
    """``{nodes, edges}``: each listener, each other name that is a peer, and an edge from each to its peers and tools.

    As ``mermaid`` it is the text of a flowchart, which many viewers of Markdown draw.
    """
    call.allow_query("format")
    drawn = choice(call, "format", FORMATS)
    settings = call.process.organism.settings
    nodes, edges = _nodes(settings), _edges(settings)
    if drawn == "json":
        return answer({"nodes": nodes, "edges": edges})
    return Answer(_mermaid(nodes, edges).encode(), kind=TEXT)


def _nodes(settings: Settings) -> list[dict[str, Any]]:
    """The listeners in the order of organism.yaml, then what is written to besides: the outside, and ``system``."""
    nodes: list[dict[str, Any]] = [
        {
            "name": listener.name,
            "kind": "agent" if listener.is_agent else "listener",
            "description": listener.description,
            "payload_class": listener.payload_class_path,
        }
        for listener in settings.listeners
    ]
    named = {CONSOLE: None} | {edge["to"]: None for edge in _edges(settings)}
    outside = [name for name in named if settings.listener(name) is None]
    return nodes + [
        {"name": name, "kind": "console" if name == CONSOLE else "system", "description": None, "payload_class": None}
        for name in outside
    ]


def _edges(settings: Settings) -> list[dict[str, str]]:
    """An edge to each peer and each tool; ``"*"`` in ``peers`` is an edge to each other listener."""
    everyone = tuple(listener.name for listener in settings.listeners)
    edges = []
    for listener in settings.listeners:
        others = tuple(name for name in everyone if name != listener.name) if listener.any_peer else ()
        peers = dict.fromkeys((*listener.peers, *listener.tools, *others))
        edges += [{"from": listener.name, "to": peer} for peer in peers if peer != "*"]
    return edges


_SHAPES: Final = {
    "agent": '{id}(["{name}"])',
    "listener": '{id}["{name}"]',
    "console": '{id}(("{name}"))',
    "system": '{id}[["{name}"]]',
}
"""How each kind is drawn. A name is letters, digits, ``_``, ``.`` and ``-``: nothing of it needs an escape."""


def _mermaid(nodes: Sequence[dict[str, Any]], edges: Sequence[dict[str, str]]) -> str:
    ids = {node["name"]: f"n{number}" for number, node in enumerate(nodes)}
    drawn = [_SHAPES[node["kind"]].format(id=ids[node["name"]], name=node["name"]) for node in nodes]
    drawn += [f"{ids[edge['from']]} --> {ids[edge['to']]}" for edge in edges]
    return "\n    ".join(("flowchart LR", *drawn)) + "\n"


GRAPH: Final = Contract(gives=gives(Graph, Gives(str, kind="text/plain")), query=("format",))

ROUTES: Final = (Route("GET", "/organism/graph", graph, by_head=True, contract=GRAPH),)
