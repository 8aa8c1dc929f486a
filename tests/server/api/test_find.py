"""Finding agents, threads and messages by a part of a name or an id, or by a text; and where a text was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from organism.views.hits import HIT_CHARS, hit
from tests.flows.world import MakeWorld
from tests.server.contract import refusal_of
from tests.server.served import Served, served
from tests.server.tenanted import Wanted, bearer, hello_with

SOURCE = """
async def taker(payload: Ask, metadata: HandlerMetadata):
    if payload.text.startswith("fail"):
        raise ValueError("as it was told")
    return HandlerResponse.respond(Told("done"))
"""


@pytest.mark.parametrize(
    ("payload", "text", "piece", "found"),
    [
        (b'{"text":"My name is Dan."}', "dan", "My name is Dan.", "Dan"),
        (b'{"text":"said \\"hi\\" twice"}', '"hi"', 'said "hi" twice', '"hi"'),
        (b'{"text":"one\\ntwo"}', "two", "one\ntwo", "two"),
        (b'{"text":"one\\ntwo"}', "ntw", "one\\ntwo", "ntw"),
        (b'{"first":1,"name":"x"}', "NAME", "name", "name"),
        (b'{"count":427}', "27", ":427}", "27"),
        ('{"text":"über"}'.encode(), "über", "über", "über"),
        (b'{"text":"%b needle %b"}' % (b"\\\\" * 3000, b"\\n" * 3000), "needle", None, "needle"),
        (b'{"text":"%b needle"}' % (b'\\"' * 100_000), "needle", None, "needle"),
        (f'{{"text":"{"ü" * 3000} needle {"🎈" * 3000}"}}'.encode(), "needle", None, "needle"),
        (b'{"text":"%b"}' % (b"x" * 500), "x" * 300, "x" * HIT_CHARS, "x" * HIT_CHARS),
    ],
)
def test_a_hit_is_what_the_payload_says_around_the_text(
    payload: bytes, text: str, piece: str | None, found: str
) -> None:
    where = hit("msg-1", payload, text)
    assert where is not None
    assert where.text[where.start : where.end] == found
    assert len(where.text) <= HIT_CHARS
    assert where.text == (where.text if piece is None else piece)


def test_what_is_not_there_has_no_hit() -> None:
    assert hit("msg-1", b'{"text":"Dan"}', "Eve") is None


async def test_lists_show_where_a_text_was_found(world: MakeWorld) -> None:
    async with served(world(SOURCE, {"taker": {}}, retry={"attempts": 1}).config) as server:
        sent = await server.inject("taker", {"text": "fail for the refund of Ann"}, wait=None)
        await server.organism.tenants["default"].ended(sent["thread_id"], 10)
        await server.inject("taker", {"text": "other"})
        wanted = {"message_id": sent["message_id"], "text": "fail for the refund of Ann", "start": 13, "end": 19}
        for path, name in (
            ("/messages", "messages"),
            (f"/threads/{sent['thread_id']}/messages", "messages"),
            ("/threads", "threads"),
            ("/dead-letters", "dead_letters"),
        ):
            (row,) = (await server.get(f"{path}?q=REFUND"))[name]
            assert row["hit"] == wanted, path
            (row,) = (await server.get(f"{path}?q=refund&at={server.log.head}"))[name]
            assert row["hit"] == wanted, path
        (row,) = (await server.get("/messages?q=refund&payloads=0"))["messages"]
        assert (row["payload"], row["hit"]) == (None, wanted)
        (row, *_) = (await server.get("/messages"))["messages"]
        assert "hit" not in row


async def test_the_hit_of_a_thread_is_in_the_oldest_message_that_has_the_text(hello: Served) -> None:
    sent = await hello.inject(payload={"name": "Zaphod"})
    await hello.inject(payload={"name": "Zaphod II"}, thread_id=sent["thread_id"])
    (row,) = (await hello.get("/threads?q=zaphod"))["threads"]
    assert row["hit"] == {"message_id": sent["message_id"], "text": "Zaphod", "start": 0, "end": 6}


async def test_what_has_a_text_is_found_with_the_newest_first(hello: Served) -> None:
    first = await hello.inject(payload={"name": "Zaphod"})
    second = await hello.inject(payload={"name": "zaphod again"})
    found = await hello.get("/find?q=ZAPHOD")
    assert [thread["id"] for thread in found["threads"]] == [second["thread_id"], first["thread_id"]]
    assert found["threads"][1] == {"id": first["thread_id"], "title": "Zaphod", "status": "completed"}
    messages = found["messages"]
    assert [message["position"] for message in messages] == sorted(
        (message["position"] for message in messages), reverse=True
    )
    assert (len(messages), messages[-1]["id"], found["agents"], found["complete"]) == (8, first["message_id"], [], True)
    assert messages[-1]["hit"] == {"message_id": first["message_id"], "text": "Zaphod", "start": 0, "end": 6}
    shown = {"id", "thread_id", "from", "to", "payload_type", "timestamp", "position", "hit"}
    assert set(messages[0]) == shown


async def test_a_title_has_the_text_itself(hello: Served) -> None:
    sent = await hello.inject(payload={"name": "Zaphod"})
    found = await hello.get("/find?q=hello")
    assert (found["threads"], {each["thread_id"] for each in found["messages"]}) == ([], {sent["thread_id"]})


async def test_an_agent_is_found_by_a_part_of_its_name(hello: Served) -> None:
    found = await hello.get("/find?q=Reet")
    assert found["agents"] == [{"name": "greeter", "description": "Greeting agent - forwards to shouter"}]


@pytest.mark.parametrize("part", [slice(None), slice(-6, None), slice(0, 20)], ids=["whole", "end", "beginning"])
async def test_an_id_is_found_by_its_beginning_and_its_end(hello: Served, part: slice) -> None:
    sent = await hello.inject()
    await hello.inject()
    found = await hello.get(f"/find?q={sent['thread_id'][part]}&limit=50")
    assert sent["thread_id"] in [thread["id"] for thread in found["threads"]]
    found = await hello.get(f"/find?q={sent['message_id'][part]}&limit=50")
    (message,) = [message for message in found["messages"] if message["id"] == sent["message_id"]]
    assert message["hit"] is None


async def test_an_id_is_not_found_by_less_than_six_characters_or_by_its_middle(hello: Served) -> None:
    sent = await hello.inject()
    for text in (sent["message_id"][-5:], sent["message_id"][6:-2], "msg-*", "*" * 6):
        assert (await hello.get("/find", params={"q": text}))["messages"] == [], text


async def test_a_search_finds_more_than_it_reads_at_once(hello: Served) -> None:
    sent = [await hello.inject(payload={"name": "Zaphod"}) for _ in range(15)]
    found = await hello.get("/find?q=zaphod&limit=50")
    assert [thread["id"] for thread in found["threads"]] == [each["thread_id"] for each in reversed(sent)]
    assert (len(found["messages"]), found["complete"]) == (50, True)


async def test_a_search_that_ends_at_its_limit_says_so(hello: Served) -> None:
    await hello.inject(payload={"name": "Zaphod"})
    found = await hello.get("/find?q=zaphod&limit=1")
    assert ([len(found[name]) for name in ("threads", "messages")], found["complete"]) == ([1, 1], False)


async def test_what_was_erased_is_not_found(hello: Served) -> None:
    sent = await hello.inject(payload={"name": "Zaphod"})
    await hello.log.erase(sent["thread_id"], hello.log.last_at)
    found = await hello.get("/find?q=zaphod")
    assert (found["threads"], found["messages"], found["complete"]) == ([], [], True)


async def test_a_search_finds_what_is_the_callers_own_and_needs_the_whole_right(tmp_path: Path) -> None:
    tokens: Wanted = {"default": {"reader": ["read"], "one": ["read:agent:greeter"]}, "acme": {"boss": ["admin"]}}
    async with served(hello_with(tmp_path, tokens)) as server:
        sent = await server.inject(payload={"name": "Zaphod"})
        for who, status, found in (
            (("default", "reader"), 200, 4),
            (("default", "one"), 403, 0),
            (("acme", "boss"), 200, 0),
        ):
            for text, count in (("zaphod", found), (sent["message_id"], min(found, 1))):
                answer = await server.call("GET", f"/find?q={text}", headers=bearer(*who))
                assert answer.status_code == status, who
                assert len(answer.json().get("messages", ())) == count, who


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("", "missing_field", "query.q"),
        ("?q=x", "invalid_field", "query.q"),
        (f"?q={'x' * 201}", "invalid_field", "query.q"),
        ("?q=xx&limit=0", "invalid_field", "query.limit"),
        ("?q=xx&limit=51", "invalid_field", "query.limit"),
        ("?q=xx&at=1", "unknown_field", "query.at"),
    ],
)
async def test_a_search_that_cannot_be_made_is_refused(hello: Served, query: str, code: str, param: str) -> None:
    answer = await hello.call("GET", f"/find{query}")
    refused: dict[str, Any] = refusal_of(answer)
    assert (answer.status_code, refused["code"], refused["param"]) == (400, code, param)
