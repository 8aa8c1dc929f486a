"""The product's server over a log in which one thread has a third of the messages, for who has the past played."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import uvloop

from bench import ours
from bench.feeding import serve_orders
from organism import bootstrap
from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import MessageSent, ThreadCreated
from organism.log.log import EventLog
from organism.model.ids import DEFAULT_TENANT
from organism.tenants import Tenant

TOKEN = "bench-token-bench-token-bench-token"  # noqa: S105 - of a server that lives for this measurement
LONG_THREAD = "thr-0000000000000000"
MESSAGES, THREADS = 30_000, 200
LONG_THREAD_EACH = 3
"""Each third message is the long thread's."""
COMMIT_UNITS = 500


def thread_of(number: int) -> str:
    return LONG_THREAD if number % LONG_THREAD_EACH == 0 else f"thr-{1 + number % THREADS:016x}"


def said(number: int, at: int) -> Unit:
    sent = MessageSent(f"msg-{number:016x}", "greeter", "console", "Told", depth=1, token=f"c-{number:016x}")
    thread = thread_of(number)
    return Unit(thread, [Record(sent, Content(thread, b'{"n":%d}' % number, b"<n/>"))], at, {})


async def fill(tenant: Tenant) -> None:
    log: EventLog = tenant.log
    for thread in dict.fromkeys(map(thread_of, range(MESSAGES))):
        log.append(Unit(thread, [Record(ThreadCreated())], tenant.clock.now_us(), {}))
    for number in range(MESSAGES):
        unit = said(number, tenant.clock.now_us())
        if number % COMMIT_UNITS and number < MESSAGES - 1:
            log.append(unit)
        else:
            await log.commit(unit)


async def nothing(_number: int) -> int:
    """Nothing more is said here."""
    return time.perf_counter_ns()


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        organism = await bootstrap.start(ours.CONFIG, Path(folder))
        await fill(organism.tenants[DEFAULT_TENANT])
        async with ours.served(organism, TOKEN) as server:
            await serve_orders(server.url.replace("http", "ws", 1) + "/ws", nothing)


if __name__ == "__main__":
    uvloop.run(main())
