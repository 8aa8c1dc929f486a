"""How an answer leaves: one write where its length is known, in the form that uvicorn itself gives it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from organism.server.exchange import OneWrite
from tests.server.served import Served
from tests.server.test_strict import Raw, opened

HEAD = [(b"content-type", b"text/plain"), (b"content-length", b"5")]


class Wire(asyncio.Transport):
    """A connection that keeps what is written to it, write by write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.writes.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def wire() -> Wire:
    return Wire()


def exchange(wire: Wire, *, keep_alive: bool = True) -> OneWrite:
    """An exchange over this connection."""
    log = logging.getLogger("uvicorn")
    return OneWrite(
        scope={"method": "GET"},  # type: ignore[typeddict-item] # what it looks at
        transport=wire,
        flow=FlowControl(wire),
        logger=log,
        access_logger=log,
        access_log=False,
        default_headers=[(b"date", b"today")],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: None,
    )


async def give(made: OneWrite, headers: list[tuple[bytes, bytes]], *bodies: bytes) -> None:
    """Answer by these headers, and a body in so many parts."""
    await made.send({"type": "http.response.start", "status": 200, "headers": headers})
    for number, body in enumerate(bodies, 1):
        part: Any = {"type": "http.response.body", "body": body, "more_body": number < len(bodies)}
        await made.send(part)


async def test_head_and_body_leave_in_one_write(wire: Wire) -> None:
    made = exchange(wire)
    await give(made, HEAD, b"hello")
    text = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello"
    assert wire.writes == [text]
    assert (made.response_started, made.response_complete, made.message_event.is_set()) == (True, True, True)
    assert not wire.is_closed


async def test_the_last_answer_of_a_connection_says_so_and_closes_it(wire: Wire) -> None:
    await give(exchange(wire, keep_alive=False), HEAD, b"hello")
    assert wire.writes[0].endswith(b"\r\nconnection: close\r\n\r\nhello")
    assert wire.is_closed


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: x", b"a\nb", b"a\rb"])
async def test_no_header_ends_a_line(wire: Wire, value: bytes) -> None:
    with pytest.raises(ValueError, match="end of a line"):
        await give(exchange(wire), [*HEAD, (b"x-said", value)], b"hello")
    assert wire.writes == []


@pytest.mark.parametrize(
    ("headers", "bodies"),
    [
        (HEAD[:1], [b"hel", b"lo"]),
        (HEAD, [b"hel", b"lo"]),
        ([*HEAD, (b"connection", b"close")], [b"hello"]),
    ],
    ids=["no length", "a body in parts", "an end of its own"],
)
async def test_any_other_answer_leaves_as_uvicorn_writes_it(
    wire: Wire, headers: list[tuple[bytes, bytes]], bodies: list[bytes]
) -> None:
    made = exchange(wire)
    await give(made, headers, *bodies)
    assert made.response_complete
    assert len(wire.writes) == 1 + len(bodies)
    assert wire.is_closed is (headers[-1][0] == b"connection")


async def test_the_head_of_a_stream_waits_for_nothing(wire: Wire) -> None:
    await give(exchange(wire), HEAD[:1])
    assert len(wire.writes) == 1


@pytest.fixture
async def connection(hello: Served) -> AsyncIterator[Raw]:
    """A bare connection to the server."""
    async with opened(hello) as made:
        yield made


async def test_requests_of_one_connection_are_answered_in_turn(connection: Raw) -> None:
    connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
    for _ in range(3):
        assert (await connection.answer()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_client_that_ends_the_connection_is_told_so(connection: Raw) -> None:
    connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"\r\nconnection: close\r\n" in await connection.rest()
