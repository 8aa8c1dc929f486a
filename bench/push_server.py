"""The product's server, fed without its pump: messages are appended to the log and pushed as they are on the disk."""

from __future__ import annotations

import asyncio
import secrets
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
from organism.server.auth import Tokens
from organism.server.serve import Address, Secrets, Serving, listen

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
        address, key = Address(port=0), secrets.token_bytes(32)
        serving = Serving(organism, address, listen(address), Secrets(Tokens(TOKEN, key, time.time), key))
        ready = asyncio.Event()
        running = asyncio.ensure_future(serving.run(ready.set))
        await ready.wait()

        async def say(number: int) -> int:
            await log.commit(told(number, tenant.clock.now_us()))
            return time.perf_counter_ns()

        await serve_orders(serving.url.replace("http", "ws", 1) + "/ws", say)
        serving.stop()
        await running


if __name__ == "__main__":
    uvloop.run(main())
