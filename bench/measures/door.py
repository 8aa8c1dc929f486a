"""The product asked by HTTP for three durable steps, beside what peers do for the same request.

Durable: the injection and the end of each handling are commits of their own before anything follows from them, with
`synchronous=FULL`. All settings are the defaults: each message is validated by its XSD, tokens and the audit are on.
"""

from __future__ import annotations

import json
from pathlib import Path

import uvloop

from bench import ours
from bench.door import TOKEN, Request, main, say
from bench.steps import ASKED, Order, step
from organism import HandlerMetadata, HandlerResponse

CONFIG = Path(__file__).parents[1] / "door.yaml"
LONGEST_WAIT_SECONDS = 30


async def price(payload: Order, metadata: HandlerMetadata) -> HandlerResponse:
    """Take the first step."""
    return HandlerResponse(step(payload), to="packer")


async def pack(payload: Order, metadata: HandlerMetadata) -> HandlerResponse:
    """Take the second step."""
    return HandlerResponse(step(payload), to="sender")


async def send(payload: Order, metadata: HandlerMetadata) -> HandlerResponse:
    """Take the third step."""
    return HandlerResponse(step(payload), to="console")


async def run(folder: Path) -> None:
    body = json.dumps({"to": "pricer", "payload": ASKED, "wait": LONGEST_WAIT_SECONDS})
    async with ours.organism(folder, CONFIG) as started, ours.served(started.organism, TOKEN) as server:
        say(Request(server.url, "/api/v1/inject", body))
        await server.process.stopping


def serve(storage: str) -> None:
    uvloop.run(run(Path(storage)))


if __name__ == "__main__":
    main(__doc__, serve)
