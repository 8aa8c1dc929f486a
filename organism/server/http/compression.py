"""JSON in fewer bytes: the answers of reads by gzip, for who accepts it.

Acts are answered as they are: what they answer may hold a secret made just now (a ticket, a confirm token), which must
not be compressed next to text that others choose, since the length would tell of it.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from starlette.responses import Response

from organism.server.http.accept import weights
from organism.server.http.contract import JSON

LEAST_BYTES: Final = 1 << 10
IN_THREAD_BYTES: Final = 64 << 10
"""From here on compressing would hold up the loop for longer than handing it to a thread takes."""
_LEVEL: Final = 1  # a page of messages at level 6 is a tenth smaller, and takes three times as long
_GZIP: Final = 16 + zlib.MAX_WBITS


def accepts(header: str, coding: str) -> bool:
    """Whether an ``Accept-Encoding`` takes the coding."""
    wanted = weights(header)
    return wanted.get(coding, wanted.get("*", 0.0)) > 0


def is_compressible(response: Response) -> bool:
    """Whether what it says is sent in another form to who accepts that."""
    return response.headers.get("content-type") == JSON


async def compressed(response: Response, accept_encoding: str) -> Response:
    """The response, compressed if that is worth while and accepted."""
    body = bytes(response.body)
    if not is_compressible(response) or len(body) < LEAST_BYTES or not accepts(accept_encoding, "gzip"):
        return response
    response.body = _gzip(body) if len(body) < IN_THREAD_BYTES else await asyncio.to_thread(_gzip, body)
    response.headers["content-encoding"] = "gzip"
    response.headers["content-length"] = str(len(response.body))
    return response


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, _LEVEL, _GZIP)
