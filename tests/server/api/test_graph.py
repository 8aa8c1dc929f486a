"""The graph of peers."""

from __future__ import annotations

from tests.flows.world import MakeWorld
from tests.server.served import AGENTS, TOOLS, Served, served


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
        *((name, "listener") for name in TOOLS),
        ("console", "console"),
    ]
    assert graph["nodes"][0]["payload_class"] == "handlers.hello.Greeting"
    assert graph["edges"] == [
        {"from": "greeter", "to": "shouter"},
        {"from": "shouter", "to": "response-handler"},
        {"from": "response-handler", "to": "console"},
        {"from": "library", "to": "rag_query"},
        {"from": "berlin-rag", "to": "rag_query"},
        *({"from": "librarian", "to": name} for name in TOOLS[4:]),
        *({"from": "researcher-rag", "to": name} for name in (*TOOLS[:3], "rag_query")),
        *({"from": "researcher", "to": name} for name in TOOLS[:4]),
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


async def test_anyone_who_may_write_to_all_has_an_edge_to_each_other_listener(world: MakeWorld) -> None:
    source = "async def one(payload: Ask, metadata):\n    return None\n\n\ntwo = three = one\n"
    made = world(source, {"one": {"peers": ["*"]}, "two": {"peers": ["system.todo"]}, "three": {}})
    async with served(made.config) as server:
        graph = await server.get("/organism/graph")
    assert [(edge["from"], edge["to"]) for edge in graph["edges"]] == [
        ("one", "two"),
        ("one", "three"),
        ("two", "system.todo"),
    ]
    assert graph["nodes"][-1]["kind"] == "system"
