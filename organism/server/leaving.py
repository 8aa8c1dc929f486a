"""Clients that leave before they are answered. What they have begun goes on; nobody waits for its end any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from organism.server.call import Answer, Call, Receive

LEFT: Final = Answer(b"", 499)
"""What nobody gets; the status is for the server's own log."""


async def until_left(receive: Receive) -> None:
    """Wait until the client is gone. What it still sends is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_left(call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer; it is given up when the client leaves before."""
    doing = asyncio.ensure_future(answering)
    leaving = asyncio.ensure_future(call.until_left())
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else LEFT
    finally:
        leaving.cancel()
        if not doing.done():
            doing.cancel()
            with suppress(asyncio.CancelledError):
                await doing
