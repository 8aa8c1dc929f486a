"""No request costs more than in proportion to its size: nobody stops the server for everyone (S14, S15)."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import orjson
import pytest

from tests.growth import MOST, Growth, sizes
from tests.server.hostile.asking import first_answer
from tests.server.hostile.large import BODIES, COMMANDS, HEADS, MOST_HEAD_BYTES, Make
from tests.server.served import Frames, Served

MOST_ANSWER_BYTES = 12_000
MOST_COMMAND_BYTES = 128 << 10


async def asked(server: Served, text: str) -> bytes:
    """The answer to bytes over a connection of their own."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(text.encode())
        return await first_answer(reader)
    finally:
        writer.close()


async def growth_of(server: Served, make: Make, most: int) -> str:
    """What is wrong with how the work on a request grows; of this whole process, which rests otherwise."""
    growth = Growth()
    for size in sizes(most):
        text = make(size)
        taken = []
        for _ in range(2):
            began = time.process_time()
            answer_bytes = len(await asked(server, text))
            taken.append(time.process_time() - began)
            if answer_bytes > MOST_ANSWER_BYTES:
                return f"{size} bytes are answered by {answer_bytes}"
        if fault := growth.fault(size, min(taken)):
            return fault
    return ""


@pytest.mark.parametrize("name", HEADS)
async def test_a_head_costs_in_proportion_to_its_size(hello: Served, name: str) -> None:
    assert await growth_of(hello, HEADS[name], MOST_HEAD_BYTES) == ""


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_costs_in_proportion_to_its_size(hello: Served, name: str) -> None:
    assert await growth_of(hello, BODIES[name], MOST) == ""


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_costs_in_proportion_to_its_size(hello: Served, name: str) -> None:
    growth = Growth()
    async with hello.socket(max_size=None) as socket:
        frames = Frames(socket)
        await frames.until("connected")
        for size in sizes(MOST_COMMAND_BYTES):
            text = COMMANDS[name](size)
            began = time.process_time()
            await socket.send(text)
            said = await frames.next()
            taken = time.process_time() - began
            assert len(orjson.dumps(said)) <= MOST_ANSWER_BYTES
            assert growth.fault(size, taken) == ""
