"""The documents: the API described for programs, and for people."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from organism.server.call import Answer, Call, Route
from organism.server.contract import Contract, Gives, gives
from organism.server.headers import JSON, PAGE, Header
from organism.server.shapes.words import Object

HTML: Final = b"text/html; charset=utf-8"


async def openapi(call: Call) -> Answer:
    """This document: the REST API as OpenAPI 3.1."""
    call.allow_query()
    return _tagged(await call.process.documents.text("openapi"))


async def asyncapi(call: Call) -> Answer:
    """The socket `/ws`, its frames and commands, as AsyncAPI 3.0."""
    call.allow_query()
    return _tagged(await call.process.documents.text("asyncapi"))


async def docs(call: Call) -> Answer:
    """The REST API as a page to read."""
    call.allow_query()
    return _tagged(await call.process.documents.text("docs"), kind=HTML, headers=PAGE)


def _tagged(body: bytes, kind: bytes = JSON, headers: tuple[Header, ...] = ()) -> Answer:
    tag = (b"etag", b'"%b"' % sha256(body).hexdigest()[:32].encode())
    return Answer(body, kind=kind, headers=(tag, *headers))


DOCUMENT: Final = Contract(gives=gives(Object), is_tagged=True)
READABLE: Final = Contract(gives=(Gives(str, kind="text/html"),), is_tagged=True)

ROUTES: Final = (
    Route("GET", "/openapi.json", openapi, contract=DOCUMENT),
    Route("GET", "/asyncapi.json", asyncapi, contract=DOCUMENT),
    Route("GET", "/docs", docs, contract=READABLE),
)
