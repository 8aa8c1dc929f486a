"""A client that is cut at a thousand random points, over kills of the server: what it got is the log."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.e2e.serving import Process, serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LIVES, INJECTIONS, CUTS = 4, 25, 1000
FRAMES_BETWEEN_CUTS = 5
OWN = {"connected", "agent_state", "caught_up", "checkpoint", "fell_behind"}
BROKEN = (OSError, EOFError, WebSocketException)


@dataclass
class Place:
    """Where the server is, once it is ``up``; at the end it has ``settled``, with its log at ``head``."""

    up: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    bearer: dict[str, str] = field(default_factory=dict)
    head: int = 0

    def move(self, server: Process) -> None:
        """The server is there now."""
        self.url, self.bearer = server.url.replace("http", "ws", 1), server.bearer
        self.up.set()

    def settle(self, head: int) -> None:
        """Nothing more will come."""
        self.head = head
        self.settled.set()


@dataclass
class Follower:
    """A client that is cut again and again. ``frames`` is what it got, however often it was cut."""

    place: Place
    query: str
    passes: Callable[[dict[str, Any]], bool]
    chance: random.Random
    frames: list[dict[str, Any]] = field(default_factory=list)
    position: int = 0
    cuts: int = 0
    is_done: bool = False

    async def follow(self) -> None:
        """Connect, read a little, be cut; until the end of the log is reached."""
        while not self.is_done:
            await self.place.up.wait()
            with suppress(*BROKEN):
                await self._be_cut()
            self.cuts += 1
            await turn()

    async def _be_cut(self) -> None:
        address = f"{self.place.url}/ws?since={self.position}{self.query}"
        async with connect(address, additional_headers=self.place.bearer, compression=None, proxy=None) as socket:
            reading = asyncio.ensure_future(self._read(socket, self.chance.randint(1, FRAMES_BETWEEN_CUTS)))
            if not self.place.settled.is_set():  # after that no frame may come that it could wait for
                waiting = asyncio.ensure_future(self.place.settled.wait())
                await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            socket.transport.abort()

    async def _read(self, socket: ClientConnection, count: int) -> None:
        while count > 0 and not self.is_done:
            said = orjson.loads(await socket.recv())
            for frame in said if isinstance(said, list) else [said]:
                self._take(frame)
                count -= frame["event"] not in OWN

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["event"] not in OWN:
            self.frames.append(frame)
        self.position = max(self.position, frame.get("position", 0))
        if frame["event"] == "caught_up" and self.place.settled.is_set():
            self.is_done = self.position >= self.place.head


def turn() -> asyncio.Future[None]:
    """Done when the loop has turned once."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    return turned


async def load(server: Process) -> None:
    """Injections, all at once; the last of them may be killed."""
    async with server.client() as client:
        body = {"to": "greeter", "payload": {"name": "Dan"}}
        sending = [asyncio.ensure_future(client.post("/inject", json=body)) for _ in range(INJECTIONS)]
        for sent in asyncio.as_completed(sending):
            with suppress(httpx2.HTTPError):
                await sent


async def settled(server: Process) -> int:
    """The head, once no thread is active any more."""
    async with (
        server.client() as client,
        server.socket() as socket,
    ):
        while (shown := (await client.get("/organism")).json())["active_threads"]:
            await socket.recv()
    return int(shown["position"])


async def truth(server: Process) -> AsyncIterator[dict[str, Any]]:
    """The log's own events."""
    async with server.client() as client:
        after: int | None = 0
        while after is not None:
            page = (await client.get("/log", params={"after": after, "limit": 500})).json()
            for event in page["events"]:
                yield event
            after = page["next"]


def of_shouter(frame: dict[str, Any]) -> bool:
    """A message from or to the shouter."""
    message = frame.get("message", {})
    return frame["event"] == "message" and "shouter" in (message["from"], message["to"])


async def test_what_a_client_receives_across_reconnections_is_the_whole_log(tmp_path: Path) -> None:
    place, chance = Place(), random.Random(7)
    tastes: dict[str, Callable[[dict[str, Any]], bool]] = {
        "": lambda _: True,
        "&batch=true": lambda _: True,
        "&agents=shouter&events=message": of_shouter,
        "&events=thread_updated": lambda frame: frame["event"] == "thread_updated",
    }
    followers = [Follower(place, query, passes, random.Random(chance.random())) for query, passes in tastes.items()]
    following = [asyncio.ensure_future(follower.follow()) for follower in followers]
    for _ in range(LIVES - 1):
        async with serving(tmp_path / "data") as server:
            place.move(server)
            await load(server)
            place.up.clear()
            await server.end(signal.SIGKILL)
    async with serving(tmp_path / "data") as server:
        place.move(server)
        await load(server)
        place.settle(await settled(server))
        await asyncio.gather(*following)
        while sum(follower.cuts for follower in followers) < CUTS:
            followers.append(Follower(place, "", lambda _: True, random.Random(chance.random())))
            await followers[-1].follow()
        events = [event async for event in truth(server)]
    whole = followers[0].frames
    sent = [event["position"] for event in events if event["type"] == "message_sent"]
    assert len(sent) > INJECTIONS
    assert [frame["position"] for frame in whole if frame["event"] == "message"] == sent
    for follower in followers:
        positions = [frame["position"] for frame in follower.frames]
        assert positions == sorted(set(positions)), follower.query
        assert follower.frames == [frame for frame in whole if follower.passes(frame)], follower.query
