"""A WebSocket application that does nothing: it accepts, sends one frame, and waits until the client is gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": '{"event":"connected"}'})
    while (await receive())["type"] != "websocket.disconnect":
        pass
