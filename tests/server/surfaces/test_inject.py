"""Inject: JSON and XML, with and without waiting."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from tests.flows.world import MakeWorld
from tests.server.logged import logged
from tests.server.served import Served, served

XML = {"Content-Type": "application/xml"}
ENVELOPE = (
    '<message xmlns="urn:organism:envelope:1"><meta><from>console</from><to>greeter</to></meta>'
    '<Greeting xmlns=""><name>Dan</name></Greeting></message>'
)


async def test_with_wait_it_is_answered_by_the_replies_and_the_thread(hello: Served) -> None:
    injected = await hello.inject()
    assert [(reply["from"], reply["to"], reply["payload"]) for reply in injected["replies"]] == [
        ("response-handler", "console", {"message": "HELLO, DAN!"})
    ]
    assert injected["thread"]["status"] == "completed"
    assert injected["thread"]["message_count"] == 4
    assert injected["thread"]["participants"] == ["console", "greeter", "shouter", "response-handler"]


async def test_replies_are_those_of_this_injection_alone(hello: Served) -> None:
    first = await hello.inject()
    second = await hello.inject(payload={"name": "Eve"}, thread_id=first["thread_id"])
    assert [reply["payload"]["message"] for reply in second["replies"]] == ["HELLO, EVE!"]
    assert second["thread"]["message_count"] == 8


async def test_a_wait_that_is_too_short_is_answered_by_the_acknowledgement(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n", {"asker": {}})
    async with served(made.config) as server:
        answer = await server.call("POST", "/inject", json={"to": "asker", "payload": {}, "wait": 0.05})
        assert answer.status_code == 202
        assert set(answer.json()) == {"thread_id", "message_id", "position"}


async def test_a_stop_ends_the_wait(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n", {"asker": {}})
    async with served(made.config) as server:
        server.serving.stop()
        answer = await server.call("POST", "/inject", json={"to": "asker", "payload": {}, "wait": 60})
        assert answer.status_code in {202, 503}


async def test_who_leaves_is_waited_for_no_longer_and_the_injection_stands(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n", {"asker": {}})
    async with served(made.config) as server:
        with logged() as log:
            async with httpx2.AsyncClient(trust_env=False) as client:
                body = {"to": "asker", "payload": {}, "wait": 60}
                url = f"{server.url}/api/v1/inject"
                waiting = asyncio.ensure_future(client.post(url, json=body, headers=server.bearer, timeout=None))
                await server.until(lambda: server.log.head >= 4)
                waiting.cancel()
            await server.until(lambda: "/api/v1/inject" in {entry.get("route") for entry in log.entries})
        assert (await server.get("/threads"))["threads"][0]["status"] == "active"


@pytest.mark.parametrize(
    "document",
    [
        "<Greeting><name>Dan</name></Greeting>",
        ENVELOPE,
    ],
)
async def test_a_document_or_an_envelope_is_taken_as_xml(hello: Served, document: str) -> None:
    answer = await hello.call("POST", "/inject?to=greeter&wait=10", content=document, headers=XML)
    assert answer.status_code == 200
    assert answer.json()["replies"][0]["payload"] == {"message": "HELLO, DAN!"}


async def test_an_envelope_that_names_another_sender_is_refused(hello: Served) -> None:
    envelope = (
        '<message xmlns="urn:organism:envelope:1"><meta><from>shouter</from></meta>'
        '<Greeting xmlns=""><name>Dan</name></Greeting></message>'
    )
    answer = await hello.call("POST", "/inject?to=greeter", content=envelope, headers=XML)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_payload")
    assert (await hello.get("/log?type=spoof_attempt"))["events"][0]["data"]["claimed"] == "shouter"


async def test_what_the_query_of_a_document_lacks_is_named(hello: Served) -> None:
    for query in (
        "",
        "to=greeter&wait=0",
        "to=greeter&wait=61",
        "to=greeter&wait=soon",
        "to=greeter&wait=nan",
        "to=a&x=1",
    ):
        answer = await hello.call("POST", f"/inject?{query}", content="<Greeting/>", headers=XML)
        assert (query, answer.status_code) == (query, 400)
        assert answer.json()["error"]["param"].startswith("query.")


async def test_a_document_that_does_not_fit_is_an_invalid_payload(hello: Served) -> None:
    hostile = "<!DOCTYPE x><Greeting><name>D</name></Greeting>"
    for document in ("", "<Greeting>", hostile, "<Other/>", "<Greeting><name>&x;</name></Greeting>"):
        answer = await hello.call("POST", "/inject?to=greeter", content=document, headers=XML)
        assert (document, answer.status_code) == (document, 400)
        assert answer.json()["error"]["code"] == "invalid_payload"


async def test_every_wrong_field_is_named_at_once(hello: Served) -> None:
    answer = await hello.call("POST", "/inject", json={"to": "", "wait": "long", "extra": 1})
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert {fault["param"] for fault in error["details"]} == {"/to", "/wait", "/extra", "/payload"}


async def test_an_unknown_receiver_or_thread_is_not_found(hello: Served) -> None:
    nobody = await hello.call("POST", "/inject", json={"to": "nobody", "payload": {}})
    nowhere = await hello.call(
        "POST", "/inject", json={"to": "greeter", "payload": {"name": "D"}, "thread_id": "thr-0"}
    )
    assert (nobody.status_code, nobody.json()["error"]["param"]) == (404, "/to")
    assert (nowhere.status_code, nowhere.json()["error"]["param"]) == (404, "/thread_id")


async def test_a_key_is_bound_to_what_the_address_says_of_a_document_too(hello: Served) -> None:
    headers = {"Content-Type": "application/xml", "Idempotency-Key": "key-1"}
    document = b"<Greeting><name>Dan</name></Greeting>"
    first = await hello.call("POST", "/inject?to=greeter", headers=headers, content=document)
    again = await hello.call("POST", "/inject?to=greeter", headers=headers, content=document)
    other = await hello.call("POST", "/inject?to=shouter", headers=headers, content=document)
    assert (first.status_code, again.content) == (202, first.content)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")


async def test_what_is_answered_from_memory_is_what_the_log_says_later(hello: Served) -> None:
    """The first answer is collected while the thread runs, its repetition is read from the log."""
    thread: str | None = None
    for turn in range(2):  # a new thread, then an older one
        body = {"to": "greeter", "payload": {"name": "Dan \u2603"}, "wait": 10, "thread_id": thread}
        key = {"Idempotency-Key": f"waited-{turn}"}
        first = await hello.call("POST", "/inject", json=body, headers=key)
        if turn:
            await hello.inject(thread_id=thread)  # the thread goes on; the answer stays that of its end before
        again = await hello.call("POST", "/inject", json=body, headers=key)
        assert (first.status_code, len(first.json()["replies"])) == (200, 1)
        assert again.content == first.content
        thread = first.json()["thread_id"]


async def test_who_waits_for_a_thread_that_is_killed_gets_it_as_it_was_then(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n", {"asker": {}})
    async with served(made.config) as server:
        body, key = {"to": "asker", "payload": {}, "wait": 30}, {"Idempotency-Key": "killed"}
        waiting = asyncio.ensure_future(server.call("POST", "/inject", json=body, headers=key))
        await server.until(lambda: server.log.head >= 4)
        thread = (await server.get("/threads"))["threads"][0]["id"]
        await server.call("POST", f"/threads/{thread}/kill")
        first = await waiting
        again = await server.call("POST", "/inject", json=body, headers=key)
        assert (first.status_code, first.json()["thread"]["status"]) == (200, "killed")
        assert again.content == first.content
