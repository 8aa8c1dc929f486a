"""A bare starlette WebSocket server that sends each event to each client in a loop: no log, no filter, no cursor.

As `bench.push_server` it is fed on order. A message is three events, of about the bytes that the product's frames have.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bench.feeding import serve_orders

CLIENTS: set[WebSocket] = set()
PLACE = "127.0.0.1"


async def endpoint(client: WebSocket) -> None:
    await client.accept()
    CLIENTS.add(client)
    await client.send_text('{"event":"connected"}')
    try:
        while True:
            await client.receive_text()
    except WebSocketDisconnect:
        CLIENTS.discard(client)


def events(number: int) -> list[dict[str, object]]:
    """What the product says of a message."""
    thread, time = f"thr-{number:016x}", "2026-01-11T21:47:49.000000Z"
    born: dict[str, object] = {
        "id": thread,
        "status": "active",
        "paused": False,
        "participants": ["greeter", "console"],
    }
    born |= {"message_count": 0, "created_at": time, "last_activity": time, "error": None, "session_id": None}
    said: dict[str, object] = {"id": f"msg-{number:016x}", "thread_id": thread, "from": "greeter", "to": "console"}
    said |= {"payload_type": "Told", "timestamp": time, "position": number, "cause": None, "payload": {"n": number}}
    ended = {"thread_id": thread, "status": "completed", "message_count": 1, "paused": False, "error": None}
    return [
        {"event": "thread_created", "position": number, "thread": born},
        {"event": "message", "position": number, "message": said},
        {"event": "thread_updated", "position": number, **ended, "last_activity": time},
    ]


async def say(number: int) -> int:
    done = time.perf_counter_ns()
    for event in events(number):
        text = json.dumps(event, separators=(",", ":"))
        for client in tuple(CLIENTS):
            await client.send_text(text)
    await asyncio.sleep(0)
    return done


async def main() -> None:
    listening = socket.create_server((PLACE, 0))
    app = Starlette(routes=[WebSocketRoute("/ws", endpoint)])
    config = uvicorn.Config(app, ws="websockets-sansio", ws_per_message_deflate=False, log_level="warning")
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve([listening]))
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0)
    await serve_orders(f"ws://{PLACE}:{listening.getsockname()[1]}/ws", say)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    uvloop.run(main())
