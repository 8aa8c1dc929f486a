"""Sending what is hostile and judging what comes back, and the proof that the organism lives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from organism.server.http import problems
from tests.server.hostile.http import Raw
from tests.server.served import Served

PATIENCE_SECONDS: Final = 10
AT_ONCE: Final = 16
CODES: Final = {entry["code"]: entry["http_status"] for entry in problems.table()["entries"]}
STRICT: Final = (b"x-content-type-options: nosniff", b"referrer-policy: no-referrer", b"default-src 'none'")


async def answered(server: Served, raw: Raw) -> str:
    """What is wrong with the answer to a hostile request; nothing: it is the documented one."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(raw.bytes)
    try:
        came = await asyncio.wait_for(first_answer(reader), PATIENCE_SECONDS)
    except TimeoutError:
        return f"{raw.name}: no answer, and the connection lives"
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return f"{raw.name}: {fault}" if (fault := _fault(came, raw.statuses)) else ""


async def first_answer(reader: asyncio.StreamReader) -> bytes:
    """One answer, or nothing if the server hangs up."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        return error.partial if isinstance(error, asyncio.IncompleteReadError) else b""
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + (await reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b"")


def _fault(said: bytes, statuses: tuple[int, ...]) -> str:
    if not statuses:
        return f"it was answered: {said[:80]!r}" if said else ""
    head, _, body = said.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head else 0
    if status not in statuses:
        return f"expected {statuses}, came {head[:60]!r} {body[:200]!r}"
    lower = head.lower()
    missing = [header.decode() for header in STRICT if header not in lower]
    if missing or b"\r\nserver:" in lower:
        return f"headers: without {missing}, or with a Server: {head!r}"
    return fault_of(orjson.loads(body), status)


def fault_of(body: Any, status: int) -> str:
    """What keeps a body from being a documented error of this status."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not {"type", "code", "message", "param", "request_id"} <= error.keys():
        return f"not the shape of an error: {body!r}"
    return "" if CODES.get(error["code"]) == status else f"{error['code']} is not documented with {status}"


async def faults_of(work: Iterable[Any]) -> list[str]:
    """What was wrong, of many asked at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(asked: Any) -> str:
        async with gate:
            return str(await asked)

    return [fault for fault in await asyncio.gather(*map(one, work)) if fault]


async def lives(server: Served) -> bool:
    """Whether an injection is handled to its end."""
    return str((await server.inject())["thread"]["status"]) == "completed"
