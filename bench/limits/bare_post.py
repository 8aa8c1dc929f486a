"""A bare starlette server that takes a JSON body by POST and answers with another: no token and no log."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.limits.bare_rest import PLACE, config


async def answer(request: Request) -> JSONResponse:
    """The name that was given, and ids of the length that the product's have."""
    name = (await request.json())["payload"]["name"]
    return JSONResponse({"thread_id": "thr-" + "0" * 16, "message_id": "msg-" + "0" * 16, "name": name})


async def main() -> None:
    listening = socket.create_server((PLACE, 0))
    server = uvicorn.Server(config(Starlette(routes=[Route("/api/v1/inject", answer, methods=["POST"])])))
    print(f"http://{PLACE}:{listening.getsockname()[1]}", flush=True)
    await asyncio.ensure_future(server.serve([listening]))


if __name__ == "__main__":
    uvloop.run(main())
