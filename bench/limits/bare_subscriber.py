"""What one WebSocket subscriber costs a bare uvicorn, set as the product sets it, whose application does nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from bench.feeding import free_port
from bench.load import Measurement, arguments
from bench.subscribers import QUICK_SUBSCRIBERS, SUBSCRIBERS, Server, kib_a_subscriber

LOOP = ("--loop", "uvloop", "--http", "httptools", "--lifespan", "off")
SOCKETS = ("--ws", "websockets-sansio", "--ws-per-message-deflate", "false")


def measure(count: int) -> Measurement:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "bench.limits.bare_app:app", "--port", str(port), *LOOP, *SOCKETS]
    with subprocess.Popen([*command, "--log-level", "warning"]) as process:
        try:
            server = Server(process.pid, f"ws://127.0.0.1:{port}/ws", {})
            return Measurement("bare uvicorn", "KiB", asyncio.run(kib_a_subscriber(server, count)))
        finally:
            process.terminate()


if __name__ == "__main__":
    print(measure(QUICK_SUBSCRIBERS if arguments(__doc__).quick else SUBSCRIBERS).line())
