"""The product's server over a log of whole threads, with its pump: on order chains run beside the requests."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from bench import ours
from bench.feeding import serve_orders
from organism import bootstrap
from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import MessageSent, ThreadCompleted, ThreadCreated
from organism.tenants import Tenant
from organism.testing import Running

TOKEN = "bench-token-bench-token-bench-token"  # noqa: S105 - of a server that lives for this measurement
THREADS, MESSAGES = 16, 50
JSON, XML = b'{"n":%d,"message":"HELLO, DAN! WELCOME TO THE SOCIETY."}', b"<greeting>%d</greeting>"


def thread_id(number: int) -> str:
    return f"thr-{number:016x}"


def paths() -> list[str]:
    """The pages that are asked for."""
    return [f"/api/v1/threads/{thread_id(number)}/messages?limit={MESSAGES}" for number in range(THREADS)]


async def fill(tenant: Tenant) -> None:
    """Threads that lie in the log, a unit a message, as if each had been handled for itself."""
    for number in range(THREADS * MESSAGES):
        thread, turn = divmod(number, MESSAGES)
        await tenant.log.commit(Unit(thread_id(thread), told(number, turn), tenant.clock.now_us(), {}))


def told(number: int, turn: int) -> list[Record[Any]]:
    """A message to the outside; the first one begins the thread and the last one ends it."""
    sent = MessageSent(f"msg-{number:016x}", "greeter", "console", "Told", depth=1, token=f"c-{number:016x}")
    said = Record(sent, Content(thread_id(number // MESSAGES), JSON % number, XML % number))
    begin = [Record(ThreadCreated())] if turn == 0 else []
    end = [Record(ThreadCompleted())] if turn == MESSAGES - 1 else []
    return [*begin, said, *end]


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        started = Running(await bootstrap.start(ours.CONFIG, Path(folder)))
        await fill(started.tenant)

        async def say(number: int) -> int:
            await ours.chain(started, f"number {number}")
            return time.perf_counter_ns()

        async with ours.served(started.organism, TOKEN) as server:
            await serve_orders(server.url, say)


if __name__ == "__main__":
    uvloop.run(main())
