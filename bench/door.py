"""Three durable steps asked for by HTTP: answers a second, what one takes, and what all processes of a system use.

The client runs in the environment of the system that it measures, on the standard library and uvloop. It starts the
module that called ``main`` once more as the server, and a database beside it where the system needs one.
"""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import uvloop

from bench.askers import JSON, Body, asking
from bench.load import Load, Measurement, arguments, percentiles_us
from bench.postgres import postgres
from bench.steps import ANSWERED
from bench.usage import usage

FILES, POSTGRES, SERVE = "files", "postgres", "serve"
TOKEN = "bench-token-bench-token-bench-token"  # noqa: S105 - of a server that lives for this measurement
START_SECONDS, STOP_SECONDS, LOOK_SECONDS = 60, 20, 0.05
DONE = re.compile(rf"\bnumber\W+{ANSWERED['number']}\b.*\bname\W+{ANSWERED['customer']['name']}\b".encode(), re.DOTALL)


@dataclass(frozen=True, slots=True)
class Request:
    """How a server is asked for the three steps."""

    url: str
    path: str
    body: str
    kind: str = JSON


Serve = Callable[[str], None]
"""Serves on a storage (a folder, or the address of a database) until the process is terminated, and says when."""


def say(request: Request) -> None:
    """Tell the client that the server can be asked."""
    print(json.dumps(asdict(request)), flush=True)


def main(description: str | None, serve: Serve, storages: tuple[str, ...] = (FILES,)) -> None:
    """Measure the server, or be it."""
    if sys.argv[1] == SERVE:
        _, _, storage, folder = sys.argv
        threading.Thread(target=_end_with_client, daemon=True).start()
        with STORAGES[storage](Path(folder)) as place:
            serve(place)
    else:
        options = arguments(description, in_flight=16, what=storages)
        print(uvloop.run(measure(options.what, options.in_flight, options.seconds)).line())


def _end_with_client() -> None:
    """Terminate this process and its children when the client closes its end of standard input, or is gone."""
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGTERM)


STORAGES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    FILES: lambda folder: nullcontext(str(folder)),
    POSTGRES: postgres,
}


async def measure(storage: str, connections: int, seconds: float) -> Measurement:
    """Answers a second of all connections together."""
    async with serving(storage) as (request, pid):
        post = Body(request.body, request.kind)
        async with asking(request.url, [request.path], TOKEN, connections, post) as clients:

            async def chain(_key: str) -> None:
                await clients.once()

            load = Load(chain, connections, seconds, look=partial(usage, pid))
            check(await asyncio.wait_for(clients.once(), START_SECONDS))
            await load.run()
            check(await clients.once())
    also = {**percentiles_us(load.latencies), **load.used()}
    return Measurement("door", "requests/s", load.chains_a_second, also)


@asynccontextmanager
async def serving(storage: str) -> AsyncIterator[tuple[Request, int]]:
    """The server in a process of its own, which heads the group of all that it starts; at the end all of it ends."""
    spec = sys.modules["__main__"].__spec__
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = (sys.executable, "-m", str(spec and spec.name), SERVE, storage, folder)
        server = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("A process that was started with pipes has none.")
        try:
            line = await asyncio.wait_for(server.stdout.readline(), START_SECONDS)
            if not line:
                raise RuntimeError("The server ended before it could be asked; its words are above.")
            yield Request(**json.loads(line)), server.pid
        finally:
            server.stdin.close()
            await _until_ended(server.pid)
            await server.wait()


async def _until_ended(group: int) -> None:
    """Wait for all processes of a group; kill what does not end."""
    end = time.monotonic() + STOP_SECONDS
    with suppress(ProcessLookupError):  # none is left
        while time.monotonic() < end:
            os.killpg(group, 0)
            await asyncio.sleep(LOOK_SECONDS)
        os.killpg(group, signal.SIGKILL)


def check(answer: bytes) -> None:
    """Raises ``ValueError`` if the three steps were not taken."""
    if not DONE.search(answer):
        raise ValueError(f"Expected {ANSWERED} in the answer, got {answer[:1000]!r}.")
