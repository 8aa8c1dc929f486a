"""A route of the table as an ASGI application: token, right, body, idempotency, ETag, in this order."""

from __future__ import annotations

import asyncio
import hashlib
from http import HTTPStatus
from typing import Final

import orjson
import structlog
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from organism.errors import OrganismError, Stopping
from organism.model.commands import Idempotency
from organism.server.http.auth import token_in
from organism.server.http.call import LEFT, READING, REQUEST_ID, USER, Call, JsonResponse, Process, Route
from organism.server.http.compression import compressed, is_compressible
from organism.server.http.connections import GATEWAY_QUOTA, USUAL_QUOTA
from organism.server.http.middleware import refuse_empty
from organism.server.http.rights import OPEN
from organism.views.keyed import Answer

TAG_CHARS: Final = 32
_log = structlog.get_logger("organism.server")


class Endpoint:
    """Serves one route. Its refusals are ``OrganismError``s, which the application answers."""

    def __init__(self, route: Route, process: Process) -> None:
        self._route = route
        self._process = process

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(scope, receive, send, self._process, self._route)
        call.access.route = self._route.address
        try:
            response = await self._answer(call)
        except OrganismError:
            raise
        except ClientDisconnect:
            response = LEFT
        except asyncio.CancelledError:  # the server ends, and did not wait for this any longer
            raise Stopping from None
        except Exception:  # noqa: BLE001 - the server's edge: it is recorded, and the client gets its id
            _log.exception(
                "request failed", request_id=call.request_id, method=scope["method"], route=self._route.address
            )
            raise OrganismError from None
        finally:
            call.release_body()
        await response(scope, receive, send)

    async def _answer(self, call: Call) -> Response:
        route = self._route
        if REQUEST_ID in route.headers:
            call.take_request_id()
        if route.right is not OPEN:
            client = call.client
            call.identify(self._process.authenticator.by_token(token_in(call.headers), client.host if client else ""))
            if REQUEST_ID in route.headers:
                call.refuse_secret_id()  # the caller's own token is known by now
            quota = GATEWAY_QUOTA if route.is_gateway else USUAL_QUOTA
            self._process.connections.note_request(call.who, quota, call.access.headers)
            route.right.check_early(call.who, call.path_params)
        if USER in route.headers:
            call.identify_user()
        tag = f'"{call.tenant.log.head}"' if route.by_head else None  # before the rows are read
        if call.method not in READING or call.announces_body:
            await call.body()
            if route.right is not OPEN:  # the token may have ended while the body came
                call.identify(self._process.authenticator.tokens.current(call.who))
                route.right.check_early(call.who, call.path_params)
        refuse_empty(call.query)
        once = call.idempotency() if route.is_recorded else None
        response = await (route.endpoint(call) if once is None else recorded_once(call, once))
        if route.is_tagged and call.method not in READING:  # an act that is answered by a thread: its position
            tag = f'"{orjson.loads(response.body)["position"]}"'
        if route.by_body:
            tag = f'"{hashlib.sha256(response.body).hexdigest()[:TAG_CHARS]}"'
        if tag is not None:
            response.raw_headers.append((b"etag", tag.encode()))
        return await as_accepted(call, response) if route.method == "GET" else response  # an act was done in any case


async def as_accepted(call: Call, response: Response) -> Response:
    """The response as the client accepts it, or a 304 if it has it already."""
    if is_compressible(response):
        response.headers.add_vary_header("Accept-Encoding")
    return await compressed(unless_known(call, response), call.headers.get("accept-encoding", ""))


def unless_known(call: Call, response: Response) -> Response:
    """The response, or a 304 if the client has it already."""
    wanted = call.headers.get("if-none-match")
    if wanted is None or response.status_code != HTTPStatus.OK or "etag" not in response.headers:
        return response
    known = {each.strip().removeprefix("W/") for each in wanted.split(",")}
    if response.headers["etag"] not in known and "*" not in known:
        return response
    of_body = {"content-length", "content-type"}
    headers = {name: value for name, value in response.headers.items() if name not in of_body}
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)


async def recorded_once(call: Call, once: Idempotency) -> Response:
    """The endpoint's answer, or the recorded one of this key, byte for byte (G5). What it raises is not recorded.

    The act's own unit records the key, so it is never done twice; the body follows as a ``call_answered``, and goes to
    the client once that is on disk. A crash in between leaves a key without a body: no client ever saw one, so the
    repetition's is the first.
    """

    async def act() -> Response:
        response = await call.route.endpoint(call)
        await call.tenant.operator.keep(once, call.actor, response.status_code, bytes(response.body))
        return response

    async def before(row: Answer) -> Response | None:
        content = await call.tenant.log.content(row.body_position) if row.body_position else None
        return None if content is None else JsonResponse(content[0], row.status)

    return await call.tenant.operator.once(once, act, before)
