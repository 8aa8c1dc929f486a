"""Why a message was sent."""

from __future__ import annotations

import pytest

from tests.server.served import Served


async def test_why_is_the_path_of_causes_from_a_message_to_its_root(hello: Served) -> None:
    said = await hello.inject()
    messages = (await hello.get(f"/threads/{said['thread_id']}"))["messages"]
    why = await hello.get(f"/messages/{messages[-1]['id']}/why")
    assert why == {"messages": messages[::-1], "count": 4, "next": None}
    root = await hello.get(f"/messages/{said['message_id']}/why")
    assert [message["id"] for message in root["messages"]] == [said["message_id"]]


async def test_the_path_comes_with_envelopes_when_asked(hello: Served) -> None:
    said = await hello.inject()
    why = await hello.get(f"/messages/{said['replies'][0]['id']}/why?xml=true")
    assert all("<meta>" in message["xml"] for message in why["messages"])


async def test_a_long_path_goes_on_at_the_message_that_is_named(hello: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("organism.server.routes.messages.MAX_LIMIT", 3)
    said = await hello.inject()
    first = await hello.get(f"/messages/{said['replies'][0]['id']}/why")
    assert (first["count"], first["next"]) == (3, said["message_id"])
    rest = await hello.get(f"/messages/{first['next']}/why")
    assert (rest["count"], rest["next"]) == (1, None)


async def test_there_is_no_reason_for_what_there_is_not(hello: Served) -> None:
    answer = await hello.call("GET", "/messages/msg-0/why")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def test_a_thread_shows_the_envelopes_of_its_messages_when_asked(hello: Served) -> None:
    said = await hello.inject()
    plain = await hello.get(f"/threads/{said['thread_id']}")
    full = await hello.get(f"/threads/{said['thread_id']}?xml=true")
    assert [message.pop("xml")[:9] for message in full["messages"]] == ["<message "] * 4
    assert full == plain
