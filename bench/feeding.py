"""A server under measure, fed on order: it says so many messages, as fast as it can or at a pace, and tells when.

The order is a line of JSON on standard input, the answer one on standard output: for each message, by its number, when
it was known to be done (`CLOCK_MONOTONIC`, ns, which all processes of a machine share). Both sides are fed by it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass

IN_FLIGHT = 64
ANSWER_BYTES = 1 << 26
FRAMES_A_MESSAGE = 3
"""A message is a thread of its own: it is born, speaks, and ends; each is an event and a frame."""

Say = Callable[[int], Awaitable[int]]
"""Says the message of this number; gives when it was done and only had to be pushed."""


@dataclass(frozen=True, slots=True)
class Order:
    """So many messages from number ``first`` on; ``rate`` a second, or 0: as fast as it goes."""

    first: int
    count: int
    rate: float = 0

    def line(self) -> bytes:
        """The order as it is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"


async def serve_orders(url: str, say: Say) -> None:
    """Print the address; then carry out orders until there are no more."""
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(url, flush=True)
    while line := await reader.readline():
        print(json.dumps(await carried_out(Order(**json.loads(line)), say)), flush=True)


async def carried_out(order: Order, say: Say) -> list[int]:
    """When each message was done, in order of their numbers."""
    done = [0] * order.count
    numbers = iter(range(order.count))
    begun = time.perf_counter()

    async def slot(mine: Iterator[int]) -> None:
        for number in mine:
            if order.rate:
                await asyncio.sleep(begun + number / order.rate - time.perf_counter())
            done[number] = await say(order.first + number)

    await asyncio.gather(*(slot(numbers) for _ in range(IN_FLIGHT)))
    return done


@dataclass(frozen=True, slots=True)
class Fed:
    """A server in a process of its own that takes orders."""

    process: asyncio.subprocess.Process
    orders: asyncio.StreamWriter
    answers: asyncio.StreamReader
    url: str

    async def carry_out(self, order: Order) -> list[int]:
        """When each message was done."""
        self.orders.write(order.line())
        answer: list[int] = json.loads(await self.answers.readline())
        return answer


def free_port() -> int:
    """A port that was free just now, for a server that cannot tell which one it took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def fed_server(module: str) -> Fed:
    """Start ``python -m module``."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, stdin=pipe, stdout=pipe, limit=ANSWER_BYTES
    )
    orders, answers = process.stdin, process.stdout
    if orders is None or answers is None:
        raise RuntimeError("A process that was started with pipes has none.")
    return Fed(process, orders, answers, (await answers.readline()).decode().strip())
