"""A server of models in a process of its own, which says what its script says: ``python -m tests.agents.peer``.

It speaks the chat completions API and the messages API, whatever stands before ``/chat/completions`` and
``/messages``. Its address is the first line that it prints; it ends when its standard input does. What steers it
stands below ``/_peer``, and ``steering.py`` puts it into Python.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.agents.peer.answers import Answer, from_json
from tests.agents.peer.playing import Connection, play

UNSCRIPTED = Answer(text="Nobody told me what to say.")


class Peer:
    """The script, and what was asked so far."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._open = 0
        self._forget()

    def _forget(self) -> None:
        self._script: list[list[Any]] = []
        self._requests: list[dict[str, Any]] = []

    def count(self, more: int) -> None:
        """So many connections more are open."""
        self._open += more
        self._tell_later()

    async def taken(self, connection: Connection, method: str, target: str, body: bytes) -> None:
        """Answer a request, whether it steers the peer or is one for a model."""
        url = urlsplit(target)
        if url.path.startswith("/_peer"):
            connection.say(await self._steered(method, url.path, url.query, body))
        else:
            await self._asked(connection, method, url.path, body)

    async def _steered(self, method: str, path: str, query: str, body: bytes) -> Any:
        if method == "DELETE":
            self._forget()
        elif path == "/_peer/script":
            self._script += [[answer, answer.times] for answer in map(from_json, json.loads(body))]
        elif path == "/_peer/until":
            await self._until({name: int(value[0]) for name, value in parse_qs(query).items()})
        await self._tell()
        return self._requests

    async def _until(self, wanted: dict[str, int]) -> None:
        """Wait until there were so many requests, answered, gone or cut ones, or so many connections are open."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._fits(wanted))

    def _fits(self, wanted: dict[str, int]) -> bool:
        ends = [request["end"] for request in self._requests]
        now = {"requests": len(ends), **{end: ends.count(end) for end in ("answered", "gone", "cut")}}
        least = all(now[name] >= count for name, count in wanted.items() if name != "open")
        return least and wanted.get("open", self._open) == self._open

    async def _asked(self, connection: Connection, method: str, path: str, body: bytes) -> None:
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        request = {"method": method, "path": path, "headers": connection.headers, "body": asked, "end": None}
        self._requests.append(request)
        answer = self._answer()
        await self._tell()
        request["end"] = await play(answer, connection, asked, path)
        await self._tell()

    def _answer(self) -> Answer:
        """The first of the script that is not used up."""
        for entry in self._script:
            answer, left = entry
            if left or not answer.times:
                entry[1] -= 1
                scripted: Answer = answer
                return scripted
        return UNSCRIPTED

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _tell_later(self) -> None:
        self._telling = asyncio.ensure_future(self._tell())


async def main() -> None:
    loop, peer = asyncio.get_running_loop(), Peer()
    server = await loop.create_server(lambda: Connection(peer.taken, peer.count), "127.0.0.1", 0)
    print("http://{}:{}".format(*server.sockets[0].getsockname()), flush=True)  # noqa: T201 - for the process that started it
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
