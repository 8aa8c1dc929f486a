"""Hostile frames and commands: an ``error`` or a close, and the organism lives in any case (S15)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import orjson
import pytest
from websockets.exceptions import ConnectionClosedError

from tests.server.hostile.client import CODES, faults_of, lives
from tests.server.hostile.commands import BAD_COMMANDS, BAD_FRAMES, BAD_TEXTS, PING
from tests.server.hostile.http import UPGRADE, WHO
from tests.server.hostile.texts import HUGE, STRANGE
from tests.server.logged import logged
from tests.server.served import Frames, Served


async def refusals(server: Served, said: Iterable[str | bytes]) -> list[str]:
    """The codes of the errors that these messages got, on one connection, which then still answers."""
    codes = []
    async with server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        for text in said:
            await socket.send(text)
            answer = (await frames.until("error"))[-1]
            assert answer["code"] in CODES, (text, answer)
            assert CODES[answer["code"]] < 500, (text, answer)
            codes.append(answer["code"])
        assert (await frames.ask("ping"))["event"] == "ok"
    return codes


async def test_whatever_is_no_json_gets_an_error_and_the_connection_lives(shared: Served) -> None:
    assert set(await refusals(shared, [*BAD_TEXTS, b"", PING, b"\xff" * 1000])) == {"invalid_json"}
    assert await lives(shared)


async def test_whatever_is_no_command_gets_an_error_and_the_connection_lives(hello: Served) -> None:
    before = (await hello.get("/organism"))["total_messages"]
    assert len({*BAD_COMMANDS, *BAD_TEXTS, *STRANGE}) > 250
    codes = await refusals(hello, BAD_COMMANDS)
    assert set(codes) >= {
        "missing_field",
        "invalid_field",
        "unknown_field",
        "not_found",
        "bad_position",
        "invalid_json",
    }
    assert (await hello.get("/organism"))["total_messages"] == before
    assert await lives(hello)


async def test_a_strange_text_as_a_command_or_an_id_does_no_harm(shared: Served) -> None:
    commands = [orjson.dumps({"cmd": text, "id": text}).decode() for text in STRANGE]
    named = [orjson.dumps({"cmd": "kill", "thread_id": text or "x", "id": text}).decode() for text in STRANGE]
    assert set(await refusals(shared, commands)) <= {"invalid_field", "missing_field"}
    assert set(await refusals(shared, named)) <= {"invalid_field", "not_found"}
    assert await lives(shared)


async def begun(server: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection after its handshake, to which frames are written byte for byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    writer.write(f"GET /ws?since={server.log.head} HTTP/1.1\r\n{UPGRADE}{WHO}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def closed_after(server: Served, name: str, sent: bytes) -> str:
    """What is wrong with how a connection ends after bytes that are no frame."""
    reader, writer = await begun(server)
    writer.write(sent)
    try:
        await asyncio.wait_for(reader.read(), 10)
    except TimeoutError:
        return f"{name}: the connection lives"
    except ConnectionError:
        return ""
    finally:
        writer.close()
    return ""


async def test_after_what_is_no_frame_the_connection_ends(shared: Served) -> None:
    assert await faults_of(closed_after(shared, name, sent) for name, sent in BAD_FRAMES.items()) == []
    assert await lives(shared)


async def test_what_is_no_utf_8_ends_its_connection_and_leaves_no_trace_in_the_log(shared: Served) -> None:
    with logged(level="warning") as log:
        texts = {name: sent for name, sent in BAD_FRAMES.items() if name.startswith("no UTF-8")}
        assert await faults_of(closed_after(shared, name, sent) for name, sent in texts.items()) == []
        assert await lives(shared)
    assert log.entries == []


@pytest.mark.parametrize("text", HUGE)
async def test_a_huge_name_key_or_id_is_refused_and_the_connection_lives(shared: Served, text: str) -> None:
    text = text[-60_000:]  # a frame has at most 256 KiB
    messages = [
        {"cmd": text},
        {"cmd": "kill", "thread_id": text},
        {"cmd": "pause", "agent": text},
        {"cmd": "inject", "to": text, "payload": {}},
        {"cmd": "inject", "to": "greeter", "payload": {text: 1}},
        {"cmd": "inject", "to": "greeter", "payload": {"name": "x"}, "idempotency_key": text},
        {"cmd": "subscribe", "events": [text]},
        {"cmd": "resolve", "approval": text, "decision": "approve"},
        {"cmd": "ping", text[:100_000]: 1},
    ]
    assert len(await refusals(shared, [orjson.dumps(each).decode() for each in messages])) == len(messages)


async def test_a_refused_auth_is_answered_with_its_id(hello: Served) -> None:
    async with hello.socket(headers={}) as socket:
        await socket.send('{"cmd":"auth","token":"x","id":[7]}')
        frame = orjson.loads(await socket.recv())
        assert (frame["event"], frame["id"], frame["code"]) == ("error", [7], "invalid_authorization")


@pytest.mark.parametrize("first", ["", "{", "[]", '{"cmd":"ping"}', '{"cmd":"auth"}', '{"cmd":"auth","token":"x"}'])
async def test_who_begins_otherwise_than_by_a_good_token_learns_nothing(hello: Served, first: str) -> None:
    async with hello.socket(headers={}) as socket:
        await socket.send(first)
        frame = orjson.loads(await socket.recv())
        assert (frame["event"], CODES[frame["code"]] in {400, 401}) == ("error", True)
        with pytest.raises(ConnectionClosedError) as over:
            await socket.recv()
        assert over.value.rcvd is not None
        assert over.value.rcvd.code == 4401
