"""Hostile HTTP over bare sockets: each gets its documented refusal, and the organism lives (S14, S15, S31)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.server.hostile.client import answered, faults_of, lives
from tests.server.hostile.http import POST, RAW
from tests.server.served import Served, patience, served


@pytest.fixture
async def impatient() -> AsyncIterator[Served]:
    """A server that waits a second for a request."""
    async with served(settings=patience(head_seconds=1.0, body_seconds=1.0)) as server:
        yield server


async def test_every_hostile_request_gets_its_documented_refusal(impatient: Served) -> None:
    assert len({raw.name for raw in RAW}) == len(RAW) > 200
    assert await faults_of(answered(impatient, raw) for raw in RAW) == []
    assert await lives(impatient)


async def test_nothing_that_hides_in_a_body_is_taken_for_a_request(impatient: Served) -> None:
    hidden = "POST /api/v1/organism/pause HTTP/1.1\r\nHost: localhost\r\n\r\n"
    port = int(impatient.url.rsplit(":", 1)[1])
    for length in (
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked\r\nContent-Length: 6",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{POST}{length}\r\n\r\n0\r\n\r\nX{hidden}".encode())
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        assert answer.count(b"\r\ncontent-length:") == 1
    assert await lives(impatient)


async def test_a_slow_client_and_a_crowd_of_silent_ones_delay_nobody(impatient: Served) -> None:
    port = int(impatient.url.rsplit(":", 1)[1])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
    assert await lives(impatient)
    ends = await asyncio.gather(*(asyncio.wait_for(reader.read(), 10) for reader, _ in silent), return_exceptions=True)
    for _, writer in silent:
        writer.close()
    assert all(end == b"" or isinstance(end, ConnectionError) for end in ends)


async def test_a_body_that_comes_byte_by_byte_is_cut_off_though_it_never_pauses(
    impatient: Served,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(impatient.url.rsplit(":", 1)[1]))
    writer.write(f"{POST}Content-Length: 1000000\r\n\r\n".encode())
    over = asyncio.ensure_future(reader.read())
    for _ in range(500):
        writer.write(b" ")
        if (await asyncio.wait([over], timeout=0.02))[0]:
            break
    writer.close()
    assert over.done()
    assert isinstance(over.exception(), ConnectionError) or over.result() == b""
    assert await lives(impatient)
