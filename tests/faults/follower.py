"""Followers: WebSocket clients that keep what they are shown, and resume by position when the server is back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.faults.client import HEADERS
from tests.faults.frames import Shown, Subscription, shown

BROKEN: Final = (OSError, EOFError, WebSocketException, TimeoutError)
ENDS: Final = frozenset({"completed", "error", "killed"})
MARKS: Final = frozenset({"caught_up", "checkpoint", "fell_behind"})


class Follower:
    """Follows from the first event on, over all lives.

    ``frames`` is what it was shown, ``position`` how far it came, ``active`` the threads that it knows as active.
    """

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.frames: list[Shown] = []
        self.position = 0
        self.resumes = 0
        self.faults: list[str] = []
        self.active: set[str] = set()
        self._timeline = ""
        self._news = asyncio.Condition()

    async def follow(self, url: str) -> None:
        """Resume, and follow until the connection ends."""
        address = url.replace("http://", "ws://") + "/ws"
        if not self.subscription.is_filter:
            address += f"?since={self.position}" + (f"&log={self._timeline}" if self._timeline else "")
        try:
            async with connect(
                address, additional_headers=HEADERS, compression=None, max_size=None, proxy=None
            ) as socket:
                await self._resume(socket)
                async for text in socket:
                    await self._take(orjson.loads(text))
        except BROKEN:
            return

    async def _resume(self, socket: ClientConnection) -> None:
        """What comes before ``subscribed`` is another filter's, and comes again if it is ours."""
        self.resumes += 1
        first = orjson.loads(await socket.recv())
        if first["event"] != "connected":
            self.faults.append(f"the first frame was {first}")
        self._timeline = first.get("log", "")
        if self.subscription.is_filter:
            command = {"cmd": "subscribe", "since": self.position, "log": self._timeline, **self.subscription.lists}
            await socket.send(orjson.dumps(command).decode())
            while orjson.loads(await socket.recv())["event"] != "subscribed":
                pass

    async def _take(self, frame: dict[str, Any]) -> None:
        position = frame.get("position")
        if frame["event"] == "error" and position is None:
            self.faults.append(f"the server refused: {frame}")
        if position is None:
            return
        if frame["event"] not in MARKS:
            self.frames.append(shown(frame))
            self._note(frame)
        self.position = max(self.position, position)
        async with self._news:
            self._news.notify_all()

    def _note(self, frame: dict[str, Any]) -> None:
        if frame["event"] == "thread_created":
            self.active.add(frame["thread"]["id"])
        elif frame["event"] == "thread_updated":
            change = self.active.discard if frame["status"] in ENDS else self.active.add
            change(frame["thread_id"])

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds after a frame, or holds already."""
        async with self._news:
            await self._news.wait_for(condition)

    async def until_position(self, position: int) -> None:
        """Wait until the follower has received everything up to a position."""
        await self.until(lambda: self.position >= position)
