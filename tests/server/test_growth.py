"""No request costs more than in proportion to its size (S14, S15), and the limits that the contract names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import urlsplit

import orjson
import pytest

from tests.growth import MOST, Growth, no_collector, sizes
from tests.server.hostile.client import first_answer
from tests.server.hostile.large import BODIES, COMMANDS, HEADS, MOST_HEAD_BYTES, Make
from tests.server.served import Frames, Served

pytestmark = pytest.mark.thorough

MOST_ANSWER_BYTES = 12_000
MOST_COMMAND_BYTES = 128 << 10
FEWEST_RUNS, RUNS = 2, 5


async def asked(server: Served, text: str) -> int:
    """The length of the answer to bytes over a connection of their own."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(text.encode())
        return len(await first_answer(reader))
    finally:
        writer.close()


async def growth_of(asks: Callable[[str], Awaitable[int]], make: Make, most: int) -> str:
    """What is wrong with how the work on a request grows; of this whole process, which rests otherwise.

    ``asks`` sends it and gives the length of the answer.
    """
    growth = Growth()
    with no_collector():
        for size in sizes(most):
            text = make(size)
            faults: list[str] = []
            while len(faults) < RUNS and ("" not in faults or len(faults) < FEWEST_RUNS):
                began = time.process_time()
                answer_bytes = await asks(text)
                faults.append(growth.fault(size, time.process_time() - began))
                if answer_bytes > MOST_ANSWER_BYTES:
                    return f"{size} bytes are answered by {answer_bytes}"
            if "" not in faults:
                return faults[-1]
    return ""


@pytest.mark.parametrize("name", HEADS)
async def test_a_head_costs_in_proportion_to_its_size(hello: Served, name: str) -> None:
    assert await growth_of(partial(asked, hello), HEADS[name], MOST_HEAD_BYTES) == ""


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_costs_in_proportion_to_its_size(hello: Served, name: str) -> None:
    assert await growth_of(partial(asked, hello), BODIES[name], MOST) == ""


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_costs_in_proportion_to_its_size(hello: Served, name: str) -> None:
    async with hello.socket(max_size=None) as socket:
        frames = Frames(socket)
        await frames.until("connected")

        async def command(text: str) -> int:
            await socket.send(text)
            return len(orjson.dumps(await frames.next()))

        assert await growth_of(command, COMMANDS[name], MOST_COMMAND_BYTES) == ""
