"""The graph of peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Any

import pytest

from organism.events.record import Record
from organism.events.vocabulary import ApprovalRequested, MessageDead, MessageHandled, MessageRefused, MessageSent
from organism.views.activity import LONG_SPAN, SPAN
from tests.flows.world import MakeWorld
from tests.server.long_past import tell
from tests.server.served import AGENTS, TOOLS, Served, served

ALL = 1 << 20


async def test_nodes_are_listeners_and_the_outside_and_edges_lead_to_all_that_are_asked(hello: Served) -> None:
    graph = await hello.get("/organism/graph")
    assert [(node["name"], node["kind"]) for node in graph["nodes"]] == [
        ("greeter", "agent"),
        ("shouter", "listener"),
        ("response-handler", "listener"),
        ("prompt-shaper", "agent"),
        ("summarizer", "agent"),
        ("library", "agent"),
        *((name, "agent") for name in AGENTS),
        *((name, "tool") for name in TOOLS),
        ("console", "console"),
    ]
    assert graph["nodes"][0]["payload_class"] == "handlers.hello.Greeting"
    assert [(edge["from"], edge["to"], edge["kind"]) for edge in graph["edges"]] == [
        ("greeter", "shouter", "peer"),
        ("shouter", "response-handler", "peer"),
        ("response-handler", "console", "outside"),
        ("library", "rag_query", "tool"),
        ("berlin-rag", "rag_query", "tool"),
        *(("librarian", name, "tool") for name in TOOLS[4:]),
        *(("researcher-rag", name, "tool") for name in (*TOOLS[:3], "rag_query")),
        *(("researcher", name, "tool") for name in TOOLS[:4]),
    ]


async def test_as_mermaid_it_is_the_text_of_a_flowchart(world: MakeWorld) -> None:
    source = "async def one(payload: Ask, metadata):\n    return None\n\n\ntwo = one\n"
    made = world(source, {"one": {"peers": ["two"], "agent": True}, "two": {"peers": ["console"]}})
    async with served(made.config) as server:
        answer = await server.call("GET", "/organism/graph?format=mermaid")
        refused = await server.call("GET", "/organism/graph?format=dot")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "query.format")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text.splitlines() == [
        "flowchart LR",
        '    n0(["one"])',
        '    n1["two"]',
        '    n2(("console"))',
        "    n0 --> n1",
        "    n1 --> n2",
    ]


async def test_who_may_write_to_all_has_edges_where_it_did(world: MakeWorld) -> None:
    source = "async def one(payload: Ask, metadata):\n    return HandlerResponse(Ask('x'), to='two')\n\n\n"
    source += "async def two(payload: Ask, metadata):\n    return None\n\n\nthree = two\n"
    made = world(source, {"one": {"peers": ["*"], "group": "first"}, "two": {"peers": ["system.todo"]}, "three": {}})
    async with served(made.config) as server:
        before = await server.get("/organism/graph")
        await server.inject("one", {"text": "x"})
        after = await server.get("/organism/graph")
        then = await server.get("/organism/graph?at=1")
    assert [(edge["from"], edge["to"], edge["kind"]) for edge in before["edges"]] == [("two", "system.todo", "peer")]
    assert [(edge["from"], edge["to"], edge["kind"], edge["messages"]) for edge in after["edges"]] == [
        ("two", "system.todo", "peer", 0),
        ("console", "one", "outside", 1),
        ("one", "two", "peer", 1),
    ]
    assert [(node["name"], node["any_peer"], node["group"], node["handled"]) for node in after["nodes"]][:2] == [
        ("one", True, "first", 1),
        ("two", False, None, 1),
    ]
    assert before["nodes"][-1]["kind"] == "system"
    assert then == before


async def test_a_reply_that_failed_is_counted_where_replies_are(world: MakeWorld) -> None:
    source = "async def one(payload: Ask | Told, metadata):\n    if isinstance(payload, Told):\n"
    source += "        raise ValueError('no')\n    return HandlerResponse(Ask('x'), to='two')\n\n\n"
    source += "async def two(payload: Ask, metadata):\n    return HandlerResponse.respond(Told('y'))\n"
    made = world(source, {"one": {"peers": ["two"]}, "two": {}})
    async with served(made.config) as server:
        await server.inject("one", {"text": "x"})
        found = await server.get("/organism/graph")
    assert [(edge["from"], edge["to"], edge["kind"], edge["messages"], edge["failed"]) for edge in found["edges"]] == [
        ("one", "two", "peer", 1, 0),
        ("console", "one", "outside", 1, 0),
        ("two", "one", "reply", 1, 1),
    ]


def counted(records: Sequence[Record[Any]], window_seconds: int) -> tuple[dict[str, list[int]], Counter[Any]]:
    """How long each agent's handlings took, and what else there was, by a look at every event."""
    begin = records[-1].at - window_seconds * 1_000_000
    durations: dict[str, list[int]] = {}
    counts = Counter[Any]()
    for record in (record for record in records if record.at > begin):
        match record.event:
            case MessageSent(sender=sender, to=to, reply=reply):
                counts["messages", sender, to, reply] += 1
            case MessageHandled(outcome="done", agent=agent, duration=duration):
                durations.setdefault(agent, []).append(duration)
            case MessageDead(sender=sender, agent=agent):
                counts["failed", agent] += 1
                counts["failed", sender, agent, False] += 1
            case MessageRefused(sender=sender, to=to):
                counts["failed", sender] += 1
                counts["failed", sender, to, False] += 1
            case ApprovalRequested(agent=agent):
                counts["asked", agent] += 1
    return durations, counts


def check(graph: Any, records: Sequence[Record[Any]], window_seconds: int) -> None:
    durations, counts = counted(records, window_seconds)
    found = Counter[Any]()
    for node in graph["nodes"]:
        took = sorted(durations.get(node["name"], []))
        assert node["handled"] == len(took)
        for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95)):
            exact = pytest.approx(took[ceil(len(took) * share) - 1] / 1000, rel=0.06) if took else None
            assert node[name] == exact
        found["failed", node["name"]] = node["failed"]
        found["asked", node["name"]] = node["asked"]
    for edge in graph["edges"]:
        key = edge["from"], edge["to"], edge["kind"] == "reply"
        found["messages", *key], found["failed", *key] = edge["messages"], edge["failed"]
        assert (edge["last_at"] is None) == (edge["types"] == []) == (edge["messages"] == 0)
    assert +found == counts


@pytest.mark.parametrize("window_seconds", [60, 3600, 86_400])
@pytest.mark.parametrize("back", [0, 1, 700, 1024, 2500, 3999])
async def test_its_counts_are_those_of_the_events_in_the_window(
    shared_past: Served, window_seconds: int, back: int
) -> None:
    until = shared_past.log.head - back
    graph = await shared_past.get(f"/organism/graph?at={until}&window={window_seconds}")
    check(graph, await shared_past.log.read(0, until, limit=ALL), window_seconds)


async def test_a_long_window_is_made_of_long_spans_too(hello: Served) -> None:
    await tell(hello.log, LONG_SPAN + 5 * SPAN, gaps=(0, 1, 1_000_000))
    graph = await hello.get("/organism/graph?window=86400")
    check(graph, await hello.log.read(limit=ALL), 86_400)


async def test_a_window_is_of_a_minute_to_a_day(shared: Served) -> None:
    for window in ("59", "86401", "x"):
        answer = await shared.call("GET", f"/organism/graph?window={window}")
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "query.window")
    assert (await shared.call("GET", "/organism/graph?at=0")).status_code == 404
