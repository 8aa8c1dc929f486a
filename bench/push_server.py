"""The product's server, fed without its pump: messages are appended to the log and pushed as they are on the disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import uvloop

from bench import ours
from bench.feeding import serve_orders
from organism import bootstrap
from organism.log.log import Log
from organism.model.events import Content, Event, Unit
from organism.model.ids import DEFAULT_TENANT

TOKEN = "bench-token-bench-token-bench-token"  # noqa: S105 - of a server that lives for this measurement


def told(number: int, at: int) -> Unit:
    """A thread that is born, says a message to the outside, and ends."""
    thread = f"thr-{number:016x}"
    sent = {"message": f"msg-{number:016x}", "from": "greeter", "to": "console", "type": "Told", "depth": 1}
    said = Event("message_sent", {**sent, "token": f"c-{number:016x}"}, Content(thread, b'{"n":%d}' % number, b"<n/>"))
    return Unit(thread, [Event("thread_created", {}), said, Event("thread_completed", {})], at, {})


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        organism = await bootstrap.start(ours.CONFIG, Path(folder))
        tenant = organism.tenants[DEFAULT_TENANT]
        log: Log = tenant.log

        async def say(number: int) -> int:
            await log.commit(told(number, tenant.clock.now_us()))
            return time.perf_counter_ns()

        async with ours.served(organism, TOKEN) as url:
            await serve_orders(url.replace("http", "ws", 1) + "/ws", say)


if __name__ == "__main__":
    uvloop.run(main())
