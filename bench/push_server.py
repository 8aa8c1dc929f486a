"""The product's server, fed without its pump: messages are appended to the log and pushed as they are on the disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import uvloop

from bench import ours
from bench.feeding import serve_orders
from organism import bootstrap
from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import MessageSent, ThreadCompleted, ThreadCreated
from organism.log.log import EventLog
from organism.model.ids import DEFAULT_TENANT

TOKEN = "bench-token-bench-token-bench-token"  # noqa: S105 - of a server that lives for this measurement


def told(number: int, at: int) -> Unit:
    """A thread that is born, says a message to the outside, and ends."""
    thread = f"thr-{number:016x}"
    sent = MessageSent(f"msg-{number:016x}", "greeter", "console", "Told", depth=1, token=f"c-{number:016x}")
    said = Record(sent, Content(thread, b'{"n":%d}' % number, b"<n/>"))
    return Unit(thread, [Record(ThreadCreated()), said, Record(ThreadCompleted())], at, {})


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        organism = await bootstrap.start(ours.CONFIG, Path(folder))
        tenant = organism.tenants[DEFAULT_TENANT]
        log: EventLog = tenant.log

        async def say(number: int) -> int:
            await log.commit(told(number, tenant.clock.now_us()))
            return time.perf_counter_ns()

        async with ours.served(organism, TOKEN) as server:
            await serve_orders(server.url.replace("http", "ws", 1) + "/ws", say)


if __name__ == "__main__":
    uvloop.run(main())
