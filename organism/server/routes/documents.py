"""The documents: the API described for programs, and for people."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from organism.server.call import Answer, Call, Route
from organism.server.contract import Contract, gives
from organism.server.shapes.words import Object


async def openapi(call: Call) -> Answer:
    """This document: the REST API as OpenAPI 3.1."""
    call.allow_query()
    return _tagged(await call.process.documents.text("openapi"))


async def asyncapi(call: Call) -> Answer:
    """The socket `/ws`, its frames and commands, as AsyncAPI 3.0."""
    call.allow_query()
    return _tagged(await call.process.documents.text("asyncapi"))


def _tagged(body: bytes) -> Answer:
    return Answer(body, headers=((b"etag", b'"%b"' % sha256(body).hexdigest()[:32].encode()),))


DOCUMENT: Final = Contract(gives=gives(Object), is_tagged=True)

ROUTES: Final = (
    Route("GET", "/openapi.json", openapi, contract=DOCUMENT),
    Route("GET", "/asyncapi.json", asyncapi, contract=DOCUMENT),
)
