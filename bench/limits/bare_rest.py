"""A bare starlette server that answers what the product answers, byte for byte, as JSON that SQLite joins from rows.

It first starts the product's server and asks it for its pages: their messages are the rows of its table. Then it only
looks up the rows of a thread, on one reader thread: no token, no filter, no cursor, no log behind the rows.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pysqlite3
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.askers import asking
from bench.feeding import fed_server
from bench.rest_server import TOKEN, paths

PLACE = "127.0.0.1"
TABLE = "CREATE TABLE messages (thread TEXT, position INTEGER, row TEXT, PRIMARY KEY (thread, position)) WITHOUT ROWID"
INSERT = "INSERT INTO messages VALUES (?, ?, ?)"
PAGE = (
    """SELECT '{"messages":[' || group_concat(row) || '],"count":' || count(*) || ',"total":' || count(*)"""
    """ || ',"limit":' || ?2 || ',"offset":0,"next":null}'"""
    " FROM (SELECT row FROM messages WHERE thread = ?1 ORDER BY position LIMIT ?2)"
)


async def pages() -> list[bytes]:
    """What the product answers."""
    product = await fed_server("bench.rest_server")
    try:
        return await bodies(product.url)
    finally:
        product.process.kill()
        await product.process.wait()


async def bodies(url: str) -> list[bytes]:
    """Each page that will be asked for, as this server answers it."""
    async with asking(url, paths(), TOKEN, 1) as client:
        return await client.bodies()


class Pages:
    """The table, in a file, read on a thread of its own."""

    def __init__(self, file: Path, pages: Sequence[bytes]) -> None:
        self._reader = ThreadPoolExecutor(1)
        self._connection = pysqlite3.connect(str(file), isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(TABLE)
        for message in (message for page in pages for message in orjson.loads(page)["messages"]):
            values = (message["thread_id"], message["position"], orjson.dumps(message).decode())
            self._connection.execute(INSERT, values)

    async def answer(self, request: Request) -> Response:
        asked = (request.path_params["id"], int(request.query_params["limit"]))
        body = await asyncio.get_running_loop().run_in_executor(self._reader, self._page, asked)
        return Response(body, media_type="application/json")

    def _page(self, asked: tuple[str, int]) -> str:
        page: str = self._connection.execute(PAGE, asked).fetchone()[0]
        return page


def check(given: Sequence[bytes], wanted: Sequence[bytes]) -> None:
    """Raises ``ValueError`` if it is not the very same that is answered."""
    if list(given) != list(wanted):
        raise ValueError(f"Expected {wanted[0][:300]!r} …, and the bare server gives {given[0][:300]!r} ….")


def config(app: Starlette) -> uvicorn.Config:
    """As the product sets it."""
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )


async def main() -> None:
    wanted = await pages()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        answer = Pages(Path(folder, "pages.sqlite"), wanted).answer
        listening = socket.create_server((PLACE, 0))
        url = f"http://{PLACE}:{listening.getsockname()[1]}"
        server = uvicorn.Server(config(Starlette(routes=[Route("/api/v1/threads/{id}/messages", answer)])))
        serving = asyncio.ensure_future(server.serve([listening]))
        check(await bodies(url), wanted)
        print(url, flush=True)
        await serving


if __name__ == "__main__":
    uvloop.run(main())
