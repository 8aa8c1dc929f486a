"""The filters that lists of what waits for people take, and the text that a list of threads takes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served

SOURCE = """
async def troubled(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "fail":
        raise ValueError("as it was told")
    if payload.text == "ask":
        await metadata.approve({"sum": 3})
    async def pay(key: str):
        await asyncio.sleep(60)
    await metadata.effect("pay", pay, kind="unsafe")

async def other(payload: Ask, metadata: HandlerMetadata):
    return await troubled(payload, metadata)
"""
KINDS = {  # a list: what to say so that it has a row, the event that tells of it, and where the row says when it began
    "dead_letters": ("fail", "dead_letter", "timestamp"),
    "approvals": ("ask", "approval", "requested_at"),
    "indeterminate": ("pay", "indeterminate", "since"),
}


async def waiting(server: Served, name: str) -> list[dict[str, Any]]:
    """Let each of the two agents leave a row in the list, one after the other."""
    text, event, _ = KINDS[name]
    async with server.socket("?since=0") as socket:
        frames = Frames(socket)
        for agent in ("troubled", "other"):
            await server.inject(agent, {"text": text}, wait=None)
            await frames.until(event)
    rows: list[dict[str, Any]] = (await server.get(f"/{name.replace('_', '-')}"))[name]
    return rows if name == "approvals" else rows[::-1]  # failures are listed newest first


@pytest.mark.parametrize("name", KINDS)
async def test_what_waits_for_people_is_found_by_its_agent_and_by_when_it_began(world: MakeWorld, name: str) -> None:
    keys = {"timeout_s": 0.2}
    async with served(world(SOURCE, {"troubled": keys, "other": keys}, retry={"attempts": 1}).config) as server:
        first, second = await waiting(server, name)
        path = f"/{name.replace('_', '-')}"
        since = second[KINDS[name][2]]
        for query, found in (
            ("agent=troubled", [first]),
            ("agent=other", [second]),
            ("agent=nobody", []),
            (f"since={first[KINDS[name][2]]}", [first, second] if name == "approvals" else [second, first]),
            (f"since={since}", [second]),
            ("since=2100-01-01T00:00:00Z", []),
            (f"agent=troubled&since={since}", []),
            (f"agent=other&at={second['position']}", [second] if name == "approvals" else None),
        ):
            page = await server.get(f"{path}?{query}")
            assert found is None or (page[name], page["total"]) == (found, len(found)), query


async def test_messages_are_found_by_the_status_of_their_threads(world: MakeWorld) -> None:
    async with served(world(SOURCE, {"troubled": {}}, retry={"attempts": 1}).config) as server:
        failed = await server.inject("troubled", {"text": "fail"})
        asked = await server.inject("troubled", {"text": "ask"}, wait=None)

        async def found(query: str, path: str = "/messages") -> list[str]:
            page = await server.get(f"{path}?{query}")
            assert page["total"] == page["count"]
            return [message["thread_id"] for message in page["messages"]]

        assert await found("status=error") == [failed["thread_id"]]
        assert await found("status=active&agent=troubled") == [asked["thread_id"]]
        assert await found("status=completed") == []
        path = f"/threads/{asked['thread_id']}/messages"
        assert (await found("status=active", path), await found("status=error", path)) == ([asked["thread_id"]], [])
        head = (await server.get("/organism"))["position"]
        await server.call("POST", f"/threads/{asked['thread_id']}/kill")
        assert await found("status=active") == []
        assert await found("status=killed") == [asked["thread_id"]]
        assert await found(f"status=active&at={head}") == [asked["thread_id"]]
        wrong = (await server.call("GET", "/messages?status=idle")).json()["error"]
        assert (wrong["code"], wrong["param"]) == ("invalid_field", "query.status")


async def test_agents_are_found_by_state_name_and_last_activity(hello: Served) -> None:
    injected = await hello.inject()
    await hello.call("POST", "/agents/shouter/pause")
    last = (await hello.get("/agents/shouter"))["last_activity"]
    for query, found in (
        ("status=paused", ["shouter"]),
        ("status=waiting", []),
        ("agent=greeter", ["greeter"]),
        ("agent=greeter&status=paused", []),
        (f"since={injected['thread']['created_at']}", ["greeter", "shouter", "response-handler"]),
        (f"since={last}&agent=greeter", []),
        ("since=0001-01-01T00:00:00Z&agent=shouter", ["shouter"]),
        ("since=2100-01-01T00:00:00Z", []),
    ):
        page = await hello.get(f"/agents?{query}")
        assert ([agent["name"] for agent in page["agents"]], page["total"]) == (found, len(found)), query
    wrong = (await hello.call("GET", "/agents?status=completed")).json()["error"]
    assert (wrong["code"], wrong["param"]) == ("invalid_field", "query.status")


async def test_a_text_finds_the_threads_in_one_of_whose_payloads_it_stands(hello: Served) -> None:
    zaphod = await hello.inject(payload={"name": "Zaphod"})
    ford = await hello.inject(payload={"name": "Ford"})
    found = {query: await hello.get(f"/threads?{query}") for query in ("q=zaphod", "q=hello", "q=nobody", "q=%25")}
    assert {query: [row["id"] for row in page["threads"]] for query, page in found.items()} == {
        "q=zaphod": [zaphod["thread_id"]],
        "q=hello": [ford["thread_id"], zaphod["thread_id"]],
        "q=nobody": [],
        "q=%25": [],
    }
    assert [page["total"] for page in found.values()] == [1, 2, 0, 0]
    assert (await hello.get("/threads?q=hello&status=killed"))["total"] == 0
    assert (await hello.get(f"/threads?q=ford&at={ford['position'] - 2}"))["total"] == 0
    assert (await hello.get(f"/threads?q=ford&at={ford['position']}"))["total"] == 1


async def test_messages_are_found_by_sender_receiver_type_and_cause(hello: Served) -> None:
    first = await hello.inject()
    await hello.inject(payload={"name": "Eve"})
    greeting, told, shouted, _ = messages = (await hello.get(f"/threads/{first['thread_id']}"))["messages"]
    in_thread = f"/threads/{first['thread_id']}/messages"
    for query, found in (
        ("from=greeter", [told]),
        ("to=greeter", [greeting]),
        ("from=greeter&to=shouter", [told]),
        ("from=greeter&to=console", []),
        ("type=Greeting", [greeting]),
        (f"cause={told['id']}", [shouted]),
        (f"cause={told['id']}&from=greeter", []),
        ("cause=msg-00000000", []),
        ("from=nobody", []),
        ("order=desc", messages[::-1]),
        (f"from=shouter&at={shouted['position'] - 1}", []),
    ):
        page = await hello.get(f"{in_thread}?{query}")
        assert (page["messages"], page["total"]) == (found, len(found)), query
    everywhere = await hello.get("/messages?from=greeter&type=GreetingResponse&order=desc&limit=1")
    assert (everywhere["messages"][0]["payload"]["message"], everywhere["total"]) == ("Hello, Eve!", 2)
    (rest,) = (await hello.get(f"/messages?from=greeter&type=GreetingResponse&order=desc&cursor={everywhere['next']}"))[
        "messages"
    ]
    assert rest == told


async def test_threads_are_found_by_when_they_were_last_active(hello: Served) -> None:
    threads = [(await hello.inject())["thread"] for _ in range(3)]
    path = f"/threads?until={threads[1]['last_activity']}"
    page = await hello.get(path)
    assert ([row["id"] for row in page["threads"]], page["total"]) == ([row["id"] for row in threads[1::-1]], 2)
    (only,) = (await hello.get(f"{path}&since={threads[1]['last_activity']}"))["threads"]
    assert only["id"] == threads[1]["id"]
    assert (await hello.get("/threads?until=1960-01-01T00:00:00Z"))["total"] == 0


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/messages?order=newest", "invalid_field"),
        ("/messages?order=", "invalid_field"),
        ("/messages?until=3", "unknown_field"),
        ("/threads?order=asc", "invalid_field"),
        ("/threads?until=3", "invalid_field"),
        ("/threads?from=greeter", "unknown_field"),
        ("/agents?order=asc", "unknown_field"),
    ],
)
async def test_what_a_list_does_not_take_is_refused(shared: Served, path: str, code: str) -> None:
    answer = await shared.call("GET", path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
