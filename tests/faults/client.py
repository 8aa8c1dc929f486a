"""The server's API as the outside has it: answers as they came, and ``Gone`` when the connection broke instead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import orjson

PAGE: Final = 500
TOKEN: Final = "org_a_token_for_tests"
HEADERS: Final = {"Authorization": f"Bearer {TOKEN}"}


class Gone(Exception):
    """The connection broke, or was never made: whether the request was carried out is unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body's value."""
        return orjson.loads(self.body)

    def expect(self, *statuses: int) -> Any:
        """The body's value, if the answer has one of these statuses."""
        assert self.status in statuses, f"{self.status}, expected {statuses}: {self.body.decode()}"
        return self.json


class Client:
    """Speaks to whichever server lives at ``url`` now."""

    def __init__(self, http: httpx2.AsyncClient, url: str = "") -> None:
        self._http = http
        self.url = url

    async def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
        """One request, below ``/api/v1`` or for the user of ``/a1``. Raises ``Gone``."""
        headers = {"Idempotency-Key": key} if key else {}
        is_of_user = path.startswith("/a1/")
        headers |= {"SPASS-User-Id": "ann"} if is_of_user else {}
        content = None
        if body is not None:
            content = orjson.dumps(body)
            headers["Content-Type"] = "application/json"
        try:
            url = f"{self.url}{'' if is_of_user else '/api/v1'}{path}"
            answer = await self._http.request(method, url, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise Gone(repr(error)) from error
        return Answer(answer.status_code, answer.content)

    async def inject(self, to: str, payload: Any, key: str | None = None) -> Answer:
        """``POST /inject``."""
        return await self.call("POST", "/inject", {"to": to, "payload": payload}, key)

    async def get(self, path: str) -> Any:
        """The value of a GET that must be answered with 200."""
        return (await self.call("GET", path)).expect(200)

    async def rows(self, name: str) -> list[Any]:
        """Every row of a list route, as ``threads``."""
        rows: list[Any] = []
        while True:
            page = await self.get(f"/{name}?limit={PAGE}&offset={len(rows)}")
            rows += page[name.replace("-", "_")]
            if not page["count"] or len(rows) >= page["total"]:
                return rows

    async def events(self, after: int = 0) -> AsyncIterator[Any]:
        """Every event of the log after a position, with its content."""
        position: int | None = after
        while position is not None:
            page = await self.get(f"/log?after={position}&limit={PAGE}&content=true")
            for event in page["events"]:
                yield event
            position = page["next"]


@asynccontextmanager
async def client(url: str = "") -> AsyncIterator[Client]:
    """A client with its connections, while it lasts."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
    async with httpx2.AsyncClient(headers=HEADERS, verify=False, timeout=60, trust_env=False, limits=limits) as http:
        yield Client(http, url)
