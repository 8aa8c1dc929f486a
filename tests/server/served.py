"""A real organism behind a real server on a free port, in this process, for one test."""

from __future__ import annotations

import asyncio
import math
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import orjson
from websockets.asyncio.client import ClientConnection, connect

from organism import bootstrap
from organism.log.log import EventLog
from organism.model.ids import DEFAULT_TENANT
from organism.server.http.auth import Tokens
from organism.server.http.connections import Timeouts
from organism.server.runner import Secrets, ServerSettings, Serving, listen
from organism.views.views import ViewStore
from tests.server.contract import CheckedClient, CheckedSocket, contract

HELLO = Path(__file__).parents[2] / "organism.yaml"
OWN = ("greeter", "shouter", "response-handler", "prompt-shaper", "summarizer", "library")
AGENTS = ("berlin-rag", "berlin-tour", "concise-de", "librarian", "researcher-rag", "researcher")
TOOLS = ("calculator", "current_datetime", "wikipedia_search", "wikipedia_summary", "rag_query", "rag_index_list")
LISTENERS = [*OWN, *AGENTS, *TOOLS]
"""Those of the hello organism in their order: its own, the agents that have files, the tools that these name."""
TOKEN = "org_for_tests"
PATIENCE_SECONDS = 10
LOCAL = ServerSettings(port=0)
"""A free port of this machine."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""A context that loads no authorities: they cost more than a test."""


class Served:
    """A running server, and clients of it that hold its token."""

    def __init__(self, serving: Serving, organism: bootstrap.Organism, client: httpx2.AsyncClient) -> None:
        self.serving = serving
        self.client = client
        self.organism = organism
        self.url = serving.url
        self.bearer = {"Authorization": f"Bearer {TOKEN}"}

    @property
    def log(self) -> EventLog:
        """The default tenant's log."""
        return self.organism.tenants[DEFAULT_TENANT].log

    @property
    def views(self) -> ViewStore:
        """What is made of it."""
        return self.organism.tenants[DEFAULT_TENANT].views

    async def call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """One request with the token, below /api/v1 unless the path is at the root."""
        headers = {**self.bearer, **more.pop("headers", {})}
        base = "" if path.startswith("//") else "/api/v1"
        url = base + path.removeprefix("/" if not base else "")
        return await self.client.request(method, url, headers=headers, **more)

    async def get(self, path: str, **more: Any) -> Any:
        """The JSON of a GET that must be answered by 200."""
        answer = await self.call("GET", path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Ask something until it is so."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                await self.get("//healthz")

    async def inject(self, to: str = "greeter", payload: Any = None, **more: Any) -> Any:
        """The JSON of an injection that must be taken; it waits for its thread's end unless told otherwise."""
        body = {"to": to, "payload": {"name": "Dan"} if payload is None else payload, "wait": 10, **more}
        answer = await self.call("POST", "/inject", json={name: value for name, value in body.items() if value})
        assert answer.status_code in {200, 202}, answer.text
        return answer.json()

    def socket(self, query: str = "", headers: Mapping[str, str] | None = None, **more: Any) -> Any:
        """A WebSocket with the token; ``async with`` it.

        By default it takes each frame that comes: one that has stopped reading does not see the answer to its close.
        """
        url = self.url.replace("http", "ws", 1) + "/ws" + query
        given = self.bearer if headers is None else headers
        settings = {"compression": None, "proxy": None, "max_queue": None, **more}
        return connect(url, additional_headers=given, create_connection=CheckedSocket, **settings)


@dataclass
class Frames:
    """The frames of a socket, one by one, with patience for a busy machine."""

    socket: ClientConnection

    async def text(self) -> str:
        """The next frame as it came."""
        return str(await asyncio.wait_for(self.socket.recv(), PATIENCE_SECONDS))

    async def next(self) -> dict[str, Any]:
        """The next frame."""
        frame: dict[str, Any] = orjson.loads(await self.text())
        return frame

    async def until(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """The frames up to one of this event with these fields, it included."""
        seen = []
        while True:
            seen.append(await self.next())
            if seen[-1]["event"] == event and all(seen[-1].get(name) == value for name, value in fields.items()):
                return seen

    async def ask(self, cmd: str, **fields: Any) -> dict[str, Any]:
        """The answer to a command; what is pushed meanwhile is passed over."""
        mark = secrets.token_hex(4)
        await self.socket.send(orjson.dumps({"cmd": cmd, "id": mark, **fields}).decode())
        while (frame := await self.next()).get("id") != mark:
            pass
        return frame


async def lines_of(answer: httpx2.Response) -> AsyncIterator[str]:
    """The lines of a stream as they come. The client's own lines end at any separator that Unicode has."""
    rest = ""
    async for part in answer.aiter_text():
        *lines, rest = (rest + part).split("\n")
        for line in lines:
            yield line


def patience(**seconds: float) -> ServerSettings:
    """The same with other timeouts."""
    return replace(LOCAL, timeouts=Timeouts(**seconds))


@asynccontextmanager
async def served(
    config: Path = HELLO,
    data: Path | None = None,
    parts: bootstrap.Parts | None = None,
    settings: ServerSettings = LOCAL,
) -> AsyncIterator[Served]:
    """Start the organism of ``config``, in memory or on ``data``, behind a server; stop both at the end.

    That a busy machine holds up its loop is in no log.
    """
    contract()  # made before there is a loop that it could hold up
    parts = replace(parts or bootstrap.Parts(), blocked_seconds=math.inf)
    organism = await bootstrap.start(config, data, parts)
    key = secrets.token_bytes(32)
    tokens = Tokens(TOKEN, key, time.time)
    serving = Serving(organism, settings, listen(settings), Secrets(tokens, key))
    answers = asyncio.Event()
    running = asyncio.ensure_future(serving.run(answers.set))
    try:
        await asyncio.wait({running, asyncio.ensure_future(answers.wait())}, return_when=asyncio.FIRST_COMPLETED)
        async with CheckedClient(base_url=serving.url, trust_env=False, verify=NO_TLS, timeout=30) as client:
            yield Served(serving, organism, client)
    finally:
        serving.stop()
        await running
