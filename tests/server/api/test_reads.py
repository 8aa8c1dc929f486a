"""What can be read: shapes of the API, lists, filters, cursors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from organism.events.vocabulary import MessageRetried
from tests.flows.world import MakeWorld
from tests.server.served import OWN, Frames, Served, served


async def test_a_schema_is_xsd_or_json_schema_as_asked(hello: Served) -> None:
    xsd = await hello.call("GET", "/agents/greeter/schema")
    json = await hello.call("GET", "/agents/greeter/schema", headers={"Accept": "application/schema+json"})
    assert xsd.headers["content-type"] == "application/xml"
    assert '<xs:element name="Greeting"' in xsd.text
    assert json.headers["content-type"] == "application/schema+json"
    assert json.json()["properties"]["name"]["type"] == "string"
    assert xsd.headers["vary"] == json.headers["vary"] == "accept"


async def test_a_thread_that_is_there_may_have_no_such_message(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    page = await hello.get(f"/threads/{thread}/messages?agent=nobody")
    assert (page["messages"], page["total"]) == ([], 0)
    assert (await hello.call("GET", f"/threads/{thread}/messages?at=1")).status_code == 404


async def test_a_long_thread_comes_with_its_first_500_messages_and_where_they_go_on(world: MakeWorld) -> None:
    source = """
async def teller(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(Told(str(number)), to="console") for number in range(501)]
"""
    async with served(world(source, {"teller": {"peers": ["console"]}}).config) as server:
        thread_id = (await server.inject("teller", {"text": ""}))["thread_id"]
        thread = await server.get(f"/threads/{thread_id}")
        rest = await server.get(f"/threads/{thread_id}/messages?cursor={thread['next']}")
    assert (thread["message_count"], len(thread["messages"]), rest["count"], rest["next"]) == (502, 500, 2, None)
    texts = [message["payload"]["text"] for message in (*thread["messages"][1:], *rest["messages"])]
    assert texts == [str(number) for number in range(501)]


async def test_a_thread_comes_with_its_messages(hello: Served) -> None:
    injected = await hello.inject()
    thread = await hello.get(f"/threads/{injected['thread_id']}")
    messages = thread.pop("messages")
    assert thread.pop("next") is None
    assert (thread.pop("handlings"), thread.pop("open_handlings")) == ([], 0)
    assert thread == injected["thread"]
    assert [(message["from"], message["to"]) for message in messages] == [
        ("console", "greeter"),
        ("greeter", "shouter"),
        ("shouter", "response-handler"),
        ("response-handler", "console"),
    ]
    assert [message["cause"] for message in messages[1:]] == [message["id"] for message in messages[:-1]]


async def test_a_message_shows_its_envelope_when_asked(hello: Served) -> None:
    injected = await hello.inject()
    plain = await hello.get(f"/messages/{injected['message_id']}")
    full = await hello.get(f"/messages/{injected['message_id']}?xml=true")
    assert "xml" not in plain
    assert full.pop("xml").startswith('<message xmlns="urn:organism:envelope:1"><meta><from>console</from>')
    assert full == plain
    thread = f"/threads/{injected['thread_id']}"
    for path in (thread, f"{thread}/messages", f"/messages/{injected['replies'][0]['id']}/why"):
        listed = await hello.get(f"{path}?xml=true")
        assert [message.pop("xml")[:9] for message in listed["messages"]] == ["<message "] * 4
        assert listed == await hello.get(path)


async def test_lists_are_walked_by_their_cursor(hello: Served) -> None:
    for name in ("a", "b", "c"):
        await hello.inject(payload={"name": name})
    path = "/messages?limit=5&agent=greeter"
    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await hello.get(path + (f"&cursor={cursor}" if cursor else ""))
        assert page["count"] == len(page["messages"])
        assert page["total"] == 6
        seen += [message["position"] for message in page["messages"]]
        cursor = page["next"]
    assert seen == sorted(set(seen))
    assert len(seen) == 6


async def walked(server: Served, path: str, name: str, between: Callable[[list[str]], Awaitable[None]]) -> list[str]:
    """The ids in a list, in pages of two; ``between`` gets those so far and changes the list before the next page."""
    met: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await server.get(path + (f"&cursor={cursor}" if cursor else ""))
        met += [row["id"] for row in page[name]]
        cursor = page["next"]
        if cursor is not None:
            await between(met)
    return met


async def test_who_goes_through_threads_while_they_move_meets_each_once(hello: Served) -> None:
    threads = [(await hello.inject())["thread_id"] for _ in range(6)]

    async def between(met: list[str]) -> None:
        for thread in (met[-1], threads[0], None):  # one that was met, one that was not, and a new one
            await hello.inject(thread_id=thread)

    assert await walked(hello, "/threads?limit=2", "threads", between) == threads[::-1]


async def test_who_goes_through_dead_letters_while_they_are_closed_meets_each_once(world: MakeWorld) -> None:
    source = "async def broken(payload: Ask, metadata):\n    raise ValueError('no')\n"
    async with served(world(source, {"broken": {}}, retry={"attempts": 1}).config) as server:
        letters = [(await server.inject("broken", {"text": str(number)}))["message_id"] for number in range(6)]

        async def between(met: list[str]) -> None:
            assert (await server.call("DELETE", f"/dead-letters/{met[-1]}")).status_code == 200
            await server.inject("broken", {"text": "new"})

        assert await walked(server, "/dead-letters?limit=2", "dead_letters", between) == letters[::-1]


async def test_who_goes_through_approvals_while_they_are_resolved_meets_each_once(world: MakeWorld) -> None:
    source = "async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n"
    async with served(world(source, {"asker": {}}).config) as server, server.socket("?since=0") as socket:
        frames = Frames(socket)
        asked = []
        for number in range(6):
            await server.inject("asker", {"text": str(number)}, wait=None)
            asked.append((await frames.until("approval"))[-1]["approval"]["id"])

        async def between(met: list[str]) -> None:
            answer = await server.call("POST", f"/approvals/{met[-1]}/resolve", json={"decision": "reject"})
            assert answer.status_code == 200

        assert await walked(server, "/approvals?limit=2&status=pending", "approvals", between) == asked


@pytest.mark.parametrize("query", ["agent=shouter", "agent=greeter&q=x", "agent=greeter&offset=5"])
async def test_a_cursor_opens_no_other_list(hello: Served, query: str) -> None:
    for _ in range(3):
        await hello.inject()
    cursor = (await hello.get("/messages?limit=5&agent=greeter"))["next"]
    answer = await hello.call("GET", f"/messages?limit=5&{query}&cursor={cursor}")
    assert (answer.status_code, answer.json()["error"]["param"][:6]) == (400, "query.")


async def test_a_page_may_be_taken_by_its_offset(hello: Served) -> None:
    await hello.inject()
    page = await hello.get("/messages?limit=2&offset=2")
    assert (page["offset"], page["count"], page["total"], page["next"]) == (2, 2, 4, None)


async def test_threads_come_newest_activity_first_and_are_filtered(hello: Served) -> None:
    first = (await hello.inject())["thread_id"]
    second = await hello.inject()
    await hello.call("POST", f"/threads/{first}/kill")
    assert [thread["id"] for thread in (await hello.get("/threads"))["threads"]] == [first, second["thread_id"]]
    assert (await hello.get("/threads?status=killed"))["total"] == 1
    assert (await hello.get("/threads?agent=shouter"))["total"] == 2
    assert (await hello.get("/threads?agent=nobody"))["total"] == 0
    since = second["thread"]["created_at"]
    assert (await hello.get(f"/messages?since={since}"))["total"] == 4
    assert (await hello.get("/threads?since=2100-01-01T00:00:00Z"))["total"] == 0


async def test_the_log_is_read_in_pages_and_by_kind(hello: Served) -> None:
    injected = await hello.inject()
    head = (await hello.get("/organism"))["position"]
    events: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = await hello.get(f"/log?limit=3&after={after}")
        events += page["events"]
        after = page["next"]
    assert [event["position"] for event in events] == list(range(1, head + 1))
    sent = await hello.get(f"/log?type=message_sent&thread={injected['thread_id']}&content=true")
    assert sent["events"][0]["content"] == {"name": "Dan"}
    assert all(event["correlation"] == injected["message_id"] for event in sent["events"])
    assert (await hello.get("/log?until=2"))["events"][-1]["position"] == 2


async def test_dead_letters_are_listed_with_their_payload_replayed_and_discarded(world: MakeWorld) -> None:
    source = """
    async def picky(payload: Ask, metadata: HandlerMetadata):
        if payload.text != "right":
            raise ValueError("not right")
        return HandlerResponse.respond(Told("thanks"))
    """
    made = world(source, {"picky": {}}, retry={"attempts": 1})
    async with served(made.config) as server:
        failed = await server.inject("picky", {"text": "wrong"})
        assert (failed["thread"]["status"], failed["thread"]["error"]) == ("error", "ValueError: not right")
        (letter,) = (await server.get("/dead-letters"))["dead_letters"]
        assert (letter["agent"], letter["code"], letter["payload"]) == ("picky", "handler_error", {"text": "wrong"})
        bad = await server.call("POST", f"/dead-letters/{letter['id']}/replay", json={"payload": {"txt": 1}})
        assert bad.json()["error"]["details"][0]["param"].startswith("/payload/")
        sent = await server.call("POST", f"/dead-letters/{letter['id']}/replay", json={"payload": {"text": "right"}})
        assert (sent.status_code, set(sent.json())) == (202, {"thread_id", "message_id", "position"})
        assert (await server.get("/dead-letters"))["total"] == 0
        await server.inject("picky", {"text": "wrong"})
        (letter,) = (await server.get("/dead-letters"))["dead_letters"]
        gone = await server.call("DELETE", f"/dead-letters/{letter['id']}")
        assert (gone.status_code, gone.json()["id"]) == (200, letter["thread_id"])
        for method, act in (("DELETE", ""), ("POST", "/replay")):
            again = await server.call(method, f"/dead-letters/{letter['id']}{act}")
            assert (again.status_code, again.json()["error"]["code"]) == (409, "already_resolved")
            assert (await server.call(method, f"/dead-letters/msg-none{act}")).status_code == 404


async def test_why_is_the_path_of_causes_from_a_message_to_its_root(hello: Served) -> None:
    injected = await hello.inject()
    messages = (await hello.get(f"/threads/{injected['thread_id']}"))["messages"]
    why = await hello.get(f"/messages/{messages[-1]['id']}/why")
    assert why == {"messages": messages[::-1], "count": 4, "next": None}
    root = await hello.get(f"/messages/{injected['message_id']}/why")
    assert [message["id"] for message in root["messages"]] == [injected["message_id"]]


async def test_a_long_path_goes_on_at_the_message_that_is_named(hello: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("organism.server.http.lists.MAX_LIMIT", 3)
    injected = await hello.inject()
    first = await hello.get(f"/messages/{injected['replies'][0]['id']}/why")
    assert (first["count"], first["next"]) == (3, injected["message_id"])
    rest = await hello.get(f"/messages/{first['next']}/why")
    assert (rest["count"], rest["next"]) == (1, None)


SOURCE = """
async def careless(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("the key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 was not taken")
"""


async def test_what_looks_like_a_credential_is_masked_in_the_events_that_are_shown(world: MakeWorld) -> None:
    made = world(SOURCE, {"careless": {}}, retry={"attempts": 2, "base_delay_s": 0.01})
    async with served(made.config) as server:
        await server.inject("careless", {"text": ""})
        events = (await server.get("/log?limit=500"))["events"]
        (kept,) = [record.event for record in await server.log.read(0) if isinstance(record.event, MessageRetried)]
    assert "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789" in kept.error
    found = {event["type"]: event["data"] for event in events}
    shown = [found["message_retried"]["error"], found["message_dead"]["reason"], found["thread_failed"]["reason"]]
    assert shown == ["ValueError: the key [redacted] was not taken"] * 3


async def test_the_configuration_in_force_is_shown_whole(hello: Served) -> None:
    config = await hello.get("/organism/config")
    assert list(config) == ["organism", "limits", "retry", "models", "embeddings", "tools", "fx", "listeners"]
    assert config["organism"] == {"name": "hello-world", "imports": ["handlers"], "charter": True}
    assert [listener["name"] for listener in config["listeners"]] == list(OWN)
    assert config["listeners"][0]["prompt"] == "You are a friendly greeter."


async def test_an_agents_section_is_shown_as_it_was_written(hello: Served) -> None:
    assert await hello.get("/agents/greeter/config") == {
        "name": "greeter",
        "payload_class": "handlers.hello.Greeting",
        "handler": "handlers.hello.greet",
        "description": "Greeting agent - forwards to shouter",
        "agent": True,
        "peers": ["shouter"],
        "prompt": "You are a friendly greeter.",
    }


async def test_a_schema_comes_in_no_other_form(hello: Served) -> None:
    answer = await hello.call("GET", "/agents/greeter/schema", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (406, "not_acceptable")
    assert answer.json()["error"]["param"] == "headers.accept"
