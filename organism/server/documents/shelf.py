"""The finished documents of a server, each made when it is first asked for: that takes half a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson

from organism.server.call import Route
from organism.server.documents import asyncapi, openapi, page


class Shelf:
    """What is said of these routes, and of the socket."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._made: dict[str, bytes] = {}

    async def text(self, name: str) -> bytes:
        """A document by its name in ``MAKERS``. It is made in a thread: the loop has agents to serve."""
        if name not in self._made:
            self._made[name] = await asyncio.to_thread(MAKERS[name], self._routes)
        return self._made[name]


def _openapi(routes: Sequence[Route]) -> bytes:
    return orjson.dumps(openapi.document(routes), option=orjson.OPT_INDENT_2)


def _asyncapi(_routes: Sequence[Route]) -> bytes:
    return orjson.dumps(asyncapi.document(), option=orjson.OPT_INDENT_2)


def _docs(routes: Sequence[Route]) -> bytes:
    return page.page(openapi.document(routes))


MAKERS: Final[Mapping[str, Callable[[Sequence[Route]], bytes]]] = {
    "openapi": _openapi,
    "asyncapi": _asyncapi,
    "docs": _docs,
}
