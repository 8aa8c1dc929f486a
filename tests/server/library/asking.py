"""Asking a library over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from organism.rag.hashed_words import HashedWords
from tests.server.served import Served

DAN = {"SPASS-User-Id": "dan"}
TOR = {"id": "d1", "text": "Das Brandenburger Tor steht im Bezirk Mitte am Pariser Platz, gebaut 1791."}
PARK = {"id": "d2", "text": "Der Tiergarten ist der größte innerstädtische Park Berlins, 210 Hektar."}
DAMM = {"id": "d3", "text": "Der Kurfürstendamm im Westen ist die bekannteste Einkaufsstraße."}


class LibraryClient:
    """The library of the tenant whose token ``headers`` carry; by default the default one."""

    def __init__(self, server: Served, words: HashedWords, headers: Mapping[str, str] | None = None) -> None:
        self.server = server
        self.words = words
        self._headers = {**DAN, **(headers or {})}

    async def call(self, method: str, path: str = "", body: Any = None, **headers: str) -> httpx2.Response:
        """One request, below /a1/rag/indices."""
        given = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        more = {} if body is None else {"json": body}
        return await self.server.call(method, f"//a1/rag/indices{path}", headers=given, **more)

    async def ok(self, method: str, path: str = "", body: Any = None, **headers: str) -> Any:
        """The JSON of one that must be answered by 200."""
        answer = await self.call(method, path, body, **headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refused(self, status: int, method: str, path: str = "", body: Any = None, **headers: str) -> Any:
        """The error of one that must be refused so."""
        answer = await self.call(method, path, body, **headers)
        assert answer.status_code == status, answer.text
        return answer.json()["error"]

    async def put(self, index: str, *documents: Mapping[str, Any], **fields: Any) -> Any:
        """Full replace."""
        return await self.ok("POST", f"/{index}/documents", {"documents": list(documents), **fields})

    async def add(self, index: str, *documents: Mapping[str, Any], **fields: Any) -> Any:
        """Append."""
        return await self.ok("POST", f"/{index}/documents/append", {"documents": list(documents), **fields})

    async def found(self, index: str, query: str, **fields: Any) -> list[str]:
        """The ids of what is found, the best first."""
        answer = await self.ok("POST", f"/{index}/query", {"query": query, **fields})
        return [each["id"] for each in answer["results"]]

    async def ids(self, index: str) -> list[str]:
        """The ids of all documents, in order."""
        return [each["id"] for each in (await self.ok("GET", f"/{index}/documents?limit=500"))["documents"]]
