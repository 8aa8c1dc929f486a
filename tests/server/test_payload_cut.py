"""``payloads=BYTES``: of what is longer the beginning, in reads and in what is pushed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from organism.views.views import ERASED, cut_payload
from tests.flows.world import World
from tests.server.served import Frames, Served, served
from tests.server.test_socket import logged
from tests.server.test_stream import listening

SOURCE = """
async def broken(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("no")

async def asker(payload: Ask, metadata: HandlerMetadata):
    await metadata.approve({"note": payload.text})
"""
TEXT = "ä" * 300
PAYLOAD = {"text": TEXT}
JSON = orjson.dumps(PAYLOAD)
MOST = 100
CUT = {"bytes": len(JSON), "text": JSON[:MOST].decode("utf-8", "ignore")}


@pytest.mark.parametrize("most", range(len(b'{"a":"\xc3\xa4\xf0\x9f\x90\x9d"}') + 1))
def test_the_beginning_has_whole_characters_and_no_more_bytes_than_were_asked_for(most: int) -> None:
    payload = '{"a":"ä🐝"}'.encode()
    row = orjson.loads(cut_payload(b'{"id":"m","payload":%b}' % payload, most))
    if most >= len(payload):
        assert row == {"id": "m", "payload": {"a": "ä🐝"}}
        return
    text = row["payload_cut"]["text"]
    assert (row["id"], row["payload"], row["payload_cut"]["bytes"]) == ("m", None, len(payload))
    assert payload.startswith(text.encode())
    assert most - 3 <= len(text.encode()) <= most


def test_that_a_payload_was_erased_is_never_cut() -> None:
    row = b'{"id":"m","payload":%b}' % ERASED
    assert cut_payload(row, 0) == row


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_play(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One who fails and one who asks, each with a long payload, and what they did."""
    made = World(tmp_path_factory.mktemp("cut"), SOURCE, {"broken": {}, "asker": {}}, retry={"attempts": 1})
    async with served(made.config) as server:
        await server.inject("broken", PAYLOAD)
        await server.inject("broken", {"text": "short"})
        async with server.socket() as socket:
            await server.inject("asker", PAYLOAD, wait=None)
            await Frames(socket).until("approval")
        yield server


def rows_in(found: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.get("messages") or found.get("dead_letters") or [found]
    return rows


async def test_reads_of_messages_and_dead_letters_are_cut(shared_play: Served) -> None:
    first = (await shared_play.get("/messages?limit=1"))["messages"][0]
    for path in (
        "/messages",
        f"/messages/{first['id']}",
        f"/messages/{first['id']}/why",
        f"/threads/{first['thread_id']}",
        f"/threads/{first['thread_id']}/messages",
        "/dead-letters",
    ):
        whole = rows_in(await shared_play.get(path))
        cut = rows_in(await shared_play.get(f"{path}?payloads={MOST}"))
        long = [row["payload"] == PAYLOAD for row in whole]
        assert any(long), path
        for row, then, is_long in zip(whole, cut, long, strict=True):
            assert then == ({**row, "payload": None, "payload_cut": CUT} if is_long else row), path
        assert rows_in(await shared_play.get(f"{path}?payloads={len(JSON)}")) == whole, path
    row = await shared_play.get(f"/messages/{first['id']}?payloads=0&xml=true")
    assert (row["payload_cut"]["text"], TEXT in row["xml"]) == ("", True)


async def test_a_cut_page_goes_on_where_a_whole_one_does(shared_play: Served) -> None:
    page = await shared_play.get("/messages?limit=1&payloads=0")
    rest = await shared_play.get(f"/messages?limit=10&cursor={page['next']}")
    assert [row["position"] for row in rest["messages"]] > [page["messages"][0]["position"]]


async def test_pushed_and_played_frames_are_cut_alike_and_by_subscription_too(shared_play: Served) -> None:
    head = shared_play.log.head
    stretch = f"since=0&until={head}"
    async with shared_play.socket(f"?{stretch}") as socket:
        whole = logged(await Frames(socket).until("caught_up"))
    expected = []
    for frame in whole:
        kind = {"message": "payload", "approval": "preview"}.get(frame["event"], "")
        inner = frame[frame["event"]] if kind else {}
        if len(orjson.dumps(inner.get(kind))) > MOST:
            json = orjson.dumps(inner[kind])
            cut = {"bytes": len(json), "text": json[:MOST].decode("utf-8", "ignore")}
            frame = {**frame, frame["event"]: {**inner, kind: None, "payload_cut": cut}}  # noqa: PLW2901 - as expected
        expected.append(frame)
    assert sum(frame != then for frame, then in zip(whole, expected, strict=True)) == 3
    async with shared_play.socket(f"?{stretch}&payloads={MOST}") as socket:
        assert logged(await Frames(socket).until("caught_up")) == expected
    async with listening(shared_play, f"?{stretch}&payloads={MOST}") as events:
        assert logged([said for _, said in await events.until("caught_up")]) == expected
    async with shared_play.socket(f"?since={head}&events=message") as socket:
        frames = Frames(socket)
        await frames.until("caught_up")
        answer = await frames.ask("subscribe", since=0, events=["message"], payloads=MOST)
        assert answer["filter"] == {"events": ["message"], "payloads": MOST}
        played = logged(await frames.until("caught_up"))
        assert played == [frame for frame in expected if frame["event"] == "message"]
        await frames.ask("subscribe", events=["message"])
        await shared_play.inject("broken", PAYLOAD)
        assert (await frames.until("message"))[-1]["message"]["payload"] == PAYLOAD


@pytest.mark.parametrize("payloads", ["-1", "65537", "x", "1.5", ""])
async def test_another_number_of_bytes_is_refused(shared: Served, payloads: str) -> None:
    for path in ("/messages", "/dead-letters", "/events"):
        answer = await shared.call("GET", f"{path}?payloads={payloads}")
        refused = answer.json()["error"]
        assert (answer.status_code, refused["code"], refused["param"]) == (400, "invalid_field", "query.payloads")


@pytest.mark.parametrize("payloads", [-1, 65537, "5", 1.5, True])
async def test_a_subscription_refuses_it_likewise(shared: Served, payloads: Any) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        await frames.next()
        refused = await frames.ask("subscribe", payloads=payloads)
        assert (refused["code"], refused["param"]) == ("invalid_field", "/payloads")
