"""Restate with its Python SDK: a handler of three `run` steps for each request, which comes in by Restate's ingress.

Durable: the invocation, each step's result and the end are in Restate's replicated log before the next begins, on one
node with its defaults (24 partitions, a log server that syncs its write-ahead log for each batch).

Set as its documentation recommends: the handler is served by Hypercorn with the settings of its page on production, in
as many workers as the machine has cores, on uvloop; the records are msgspec's, the fastest that the SDK takes. Its
telemetry is off.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.error import URLError

import msgspec
import restate

from bench.door import Request, main, say
from bench.feeding import free_port
from bench.steps import ASKED

SERVER = Path(sys.prefix) / "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server"
HYPERCORN = """
bind = "127.0.0.1:{port}"
h2_max_concurrent_streams = 2147483647
keep_alive_max_requests = 2147483647
keep_alive_timeout = 2147483647
workers = {workers}
worker_class = "uvloop"
"""
START_SECONDS, LOOK_SECONDS = 60.0, 0.1


class Customer(msgspec.Struct):
    name: str
    number: int


class Order(msgspec.Struct):
    number: int
    note: str
    customer: Customer


def step(order: Order) -> Order:
    return msgspec.structs.replace(order, number=order.number + 1)


TYPED = restate.RunOptions(type_hint=Order)
orders = restate.Service("orders")


@orders.handler()
async def take(ctx: restate.Context, order: Order) -> Order:
    order = await ctx.run_typed("price", step, TYPED, order=order)
    order = await ctx.run_typed("pack", step, TYPED, order=order)
    return await ctx.run_typed("send", step, TYPED, order=order)


app = restate.app(services=[orders])


def serve(storage: str) -> None:
    """Hypercorn and Restate's server are children; the group that this process heads is ended as a whole."""
    node, ingress, admin, handler = (free_port() for _ in range(4))
    settings = Path(storage) / "hypercorn.toml"
    settings.write_text(HYPERCORN.format(port=handler, workers=os.cpu_count()), "utf-8")
    ports = {"BIND_PORT": node, "INGRESS__BIND_PORT": ingress, "ADMIN__BIND_PORT": admin}
    environment = {
        **os.environ,
        **{f"RESTATE_{name}": str(port) for name, port in ports.items()},
        "RESTATE_BIND_IP": "127.0.0.1",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BASE_DIR": storage,
        "RESTATE_LOG_FILTER": "error",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "hypercorn", "--config", settings, "bench.rivals.restate_door:app"]
    with (
        subprocess.Popen(command),
        subprocess.Popen([SERVER, "--no-logo"], env=environment, stdout=sys.stderr) as server,
    ):
        register(f"http://127.0.0.1:{admin}/deployments", f"http://127.0.0.1:{handler}")
        say(Request(f"http://127.0.0.1:{ingress}", "/orders/take", json.dumps(ASKED)))
        server.wait()


def register(url: str, handler: str) -> None:
    """Tell Restate where the handler is served; both may still be starting. Raises ``URLError``."""
    body, end = json.dumps({"uri": handler}).encode(), time.monotonic() + START_SECONDS
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - of this bench
    while True:
        try:
            urllib.request.urlopen(request).close()  # noqa: S310 - of this bench
        except URLError:
            if time.monotonic() > end:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return


if __name__ == "__main__":
    main(__doc__, serve)
