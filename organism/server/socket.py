"""The WebSocket ``/ws``: who may open it, the first frame, the commands. What is pushed is ``push`` and ``viewer``.

accept ─▶ (token in a header, or ``auth`` within ten seconds) ─▶ ``connected`` ─▶ events and answers
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect

from organism.errors import (
    BadPosition,
    InvalidField,
    InvalidJson,
    MissingAuthorization,
    MissingField,
    OrganismError,
    TooManyFailures,
    UnknownField,
)
from organism.model.commands import Injected
from organism.model.events import Actor
from organism.model.principal import Principal
from organism.server import headers as fixed
from organism.server.auth import Tokens, token_in
from organism.server.bodies import parsed, payload_at
from organism.server.call import Process
from organism.server.commands import COMMANDS, Kind, Subscribe
from organism.server.edge import headers_of, problem, query_of
from organism.server.frames import encode
from organism.server.hosts import Hosts
from organism.server.push import Tail
from organism.server.rights import SOCKET
from organism.server.standing import organism_row, snapshot
from organism.server.transport import EXTENSION, FrameProtocol
from organism.server.viewer import Viewer
from organism.server.wire import frame, parse_json
from organism.tenants import Tenant

AUTH_SECONDS: Final = 10.0
MAX_UNKNOWN_SOCKETS: Final = 64
MAX_SOCKETS: Final = 1000
NOT_AUTHENTICATED: Final = 4401
NOT_ALLOWED: Final = 4403
POLICY: Final = 1008
RESTART: Final = 1012

_log = structlog.get_logger("organism.server")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a connection asks for by its URL: to go on after ``since`` in the timeline ``log``."""

    since: int | None
    log: str | None


class Sockets:
    """All open sockets: the tail of each tenant that they share, and how many there are."""

    def __init__(self, process: Process, tokens: Tokens, hosts: Hosts) -> None:
        self.process = process
        self.tokens = tokens
        self._hosts = hosts
        self._tails: dict[str, Tail] = {}
        self._unknown = 0
        self._open: dict[str, int] = {}
        self._numbers = count(1)

    @property
    def watching(self) -> int:
        """How many authenticated connections there are."""
        return sum(self._open.values())

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one connection, from its handshake to its end."""
        request_id = f"ws-{self.process.life}-{next(self._numbers):x}"
        socket = WebSocket(scope, receive, send)
        try:
            headers = headers_of(scope["headers"])
            self._hosts.check_host(headers)
            self._hosts.check_origin(headers)
            asked = _asked(query_of(scope["query_string"]))
            if self._unknown >= MAX_UNKNOWN_SOCKETS:
                raise TooManyFailures("Too many connections wait for their authentication.")
        except OrganismError as error:
            await _refuse(socket, error, request_id)
            return
        await socket.accept(headers=list(fixed.STRICT))
        with suppress(WebSocketDisconnect):
            await self._serve(Connection(socket, scope["extensions"][EXTENSION], request_id), headers, asked)

    async def _serve(self, connection: Connection, headers: Mapping[bytes, bytes], asked: Asked) -> None:
        try:
            who = await self._authenticated(connection, headers)
        except OrganismError as error:
            connection.refuse(None, error)
            await connection.close(NOT_AUTHENTICATED)
            return
        try:
            SOCKET.check(who)
        except OrganismError as error:
            connection.refuse(None, error)
            await connection.close(NOT_ALLOWED)
            return
        opened = self._open.get(who.name, 0)
        if opened >= MAX_SOCKETS:
            await connection.close(POLICY)
            return
        self._open[who.name] = opened + 1
        try:
            tenant = self.process.organism.tenants[who.tenant]
            await Session(self.process, connection, who, tenant, self._tail(tenant)).run(asked)
        finally:
            self._open[who.name] -= 1

    async def _authenticated(self, connection: Connection, headers: Mapping[bytes, bytes]) -> Principal:
        """Whose token it is: of a header, or of the first message. Nothing is sent before."""
        with suppress(MissingAuthorization):
            return self.tokens.principal(token_in(headers))
        self._unknown += 1
        try:
            async with asyncio.timeout(AUTH_SECONDS):
                said = await connection.receive()
        except TimeoutError:
            raise MissingAuthorization(f"No `auth` came within {AUTH_SECONDS:.0f} seconds.") from None
        finally:
            self._unknown -= 1
        if not isinstance(said, dict) or said.get("cmd") != "auth":
            raise MissingAuthorization('Send {"cmd":"auth","token":"…"} first, or an Authorization header.')
        _, body, given = _command(said)
        who = self.tokens.principal(body.token.encode())
        connection.answer("ok", given, {"position": self.process.organism.tenants[who.tenant].log.head})
        return who

    def _tail(self, tenant: Tenant) -> Tail:
        if tenant.id not in self._tails:
            self._tails[tenant.id] = Tail(tenant.log)
        return self._tails[tenant.id]


class Connection:
    """One accepted WebSocket: JSON in, frames out."""

    def __init__(self, socket: WebSocket, protocol: FrameProtocol, request_id: str) -> None:
        self.protocol = protocol
        self.request_id = request_id
        self._socket = socket

    async def receive(self) -> Any:
        """The next message's JSON. Raises ``InvalidJson``, and ``WebSocketDisconnect`` at the end."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        text = message.get("text")
        if text is None:
            raise InvalidJson("Send text frames; a binary one came.")
        return parse_json(text.encode())

    def answer(self, event: str, given: Any, fields: Mapping[str, Any]) -> None:
        """Answer a command; its ``id`` is echoed if it had one."""
        echoed = {} if given is None else {"id": given}
        self.protocol.write_frames(frame(encode(event, {**echoed, **fields})))

    def refuse(self, given: Any, error: OrganismError) -> None:
        """Answer a command with what was wrong."""
        fields: dict[str, Any] = {"id": given, "code": error.code, "error": error.message, "param": error.param}
        if error.details:
            fields["details"] = [{"param": fault.pointer, "message": fault.message} for fault in error.details]
        self.protocol.write_frames(frame(encode("error", {**fields, "request_id": self.request_id})))

    async def close(self, code: int) -> None:
        """Close with a code."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self._socket.close(code)


class Session:
    """An authenticated connection: one viewer, and the commands of its client."""

    def __init__(self, process: Process, connection: Connection, who: Principal, tenant: Tenant, tail: Tail) -> None:
        self._process = process
        self._connection = connection
        self._who = who
        self._tenant = tenant
        self._tail = tail
        self._viewer = Viewer(tail, connection.protocol, self._hang_up)
        self._closing: asyncio.Task[None] | None = None

    async def run(self, asked: Asked) -> None:
        """Say how things stand, then serve until the client leaves or the log closes."""
        try:
            await self._begin(asked)
            while await self._connection.protocol.drained():
                await self._serve_one()
        finally:
            self._viewer.end()

    async def _begin(self, asked: Asked) -> None:
        if asked.since is not None or asked.log is not None:
            await self._resume(asked)
            return
        standing = await snapshot(self._tenant.log, self._tail.states)
        fields = {
            "position": standing.position,
            "log": self._tenant.log.timeline,
            "organism": organism_row(standing.organism, self._tenant, self._process.organism.status),
            "agents": standing.agents,
            "threads": standing.threads,
            "threads_total": standing.threads_total,
        }
        self._connection.protocol.write_frames(frame(encode("connected", fields)))
        self._viewer.begin(standing.position, states_at=standing.states_at, announce=False)

    async def _resume(self, asked: Asked) -> None:
        """The client has the state at ``since``; if this log never had that position, it must begin anew."""
        try:
            since = self._position(asked.since, asked.log)
        except BadPosition as error:
            self._connection.refuse(None, error)
            await self._connection.close(POLICY)
            return
        fields = {"position": since, "log": self._tenant.log.timeline}
        self._connection.protocol.write_frames(frame(encode("connected", fields)))
        self._viewer.begin(since, announce=True)

    def _position(self, since: int | None, log: str | None) -> int:
        """``since``, if it is a position of this log. Raises ``BadPosition``."""
        head, timeline = self._tenant.log.head, self._tenant.log.timeline
        if log is not None and log != timeline:
            raise BadPosition(f"The position belongs to the log {log[:40]!r}; this is {timeline!r}, restored or new.")
        if since is None:
            raise BadPosition("`log` says where `since` belongs; send `since` too.", param="query.since")
        if since > head:
            raise BadPosition(f"The position {since} is ahead of the log; its head is {head}.")
        return since

    async def _serve_one(self) -> None:
        """One message in, one answer out; whatever it is, the connection lives."""
        given: Any = None
        try:
            said = await self._connection.receive()
            given = said.get("id") if isinstance(said, dict) else None
            name, body, given = _command(said)
            await self._run(name, body, given)
        except OrganismError as error:
            self._connection.refuse(given, error)
        except WebSocketDisconnect:
            raise
        except Exception:  # noqa: BLE001 - the server's edge: it is recorded, and the client gets its id
            _log.exception("command failed", request_id=self._connection.request_id)
            self._connection.refuse(given, OrganismError())

    async def _run(self, name: str, body: Any, given: Any) -> None:
        right = COMMANDS[name].right
        right.check(self._who, {field: getattr(body, field, None) for field in right.objects})
        if isinstance(body, Subscribe):
            self._subscribe(body, given)
        elif name in {"ping", "auth"}:
            self._connection.answer("ok", given, {"position": self._viewer.position})
        else:
            actor = Actor(tenant=self._tenant.id, request_id=self._connection.request_id)
            with payload_at("/payload"):
                done = await self._tenant.do(body.command(actor))
            if isinstance(done, Injected):
                fields = {"thread_id": done.thread_id, "message_id": done.message_id, "position": done.position}
                self._connection.answer("injected", given, fields)
            else:
                self._connection.answer("ok", given, {"position": done.position})

    def _subscribe(self, body: Subscribe, given: Any) -> None:
        """The new filter holds from the answered position on."""
        wanted = body.filter()
        goes_back = body.since is not None or body.log is not None
        position = self._position(body.since, body.log) if goes_back else self._viewer.position
        self._viewer.filter = wanted
        self._connection.answer("subscribed", given, {"filter": body.shown(), "position": position})
        if goes_back:
            self._viewer.begin(position, announce=True)

    def _hang_up(self) -> None:
        """Nothing more can be pushed: the client shall come again."""
        self._closing = asyncio.ensure_future(self._connection.close(RESTART))


def _asked(query: Mapping[str, str]) -> Asked:
    for name in query:
        if name not in {"since", "log"}:
            raise UnknownField(
                f"The parameter {name!r} is not known here; /ws takes since, log.", param=f"query.{name}"
            )
    since = query.get("since")
    if since is not None and not (since.isascii() and since.isdigit() and len(since) < 20):  # noqa: PLR2004 - digits of 2⁶³
        raise InvalidField(f"`since` is a position, a whole number; came {since[:40]!r}.", param="query.since")
    return Asked(None if since is None else int(since), query.get("log"))


def _command(said: Any) -> tuple[str, Any, Any]:
    """The command's name, its parsed body, and the ``id`` that its answer shall carry."""
    if not isinstance(said, dict):
        raise InvalidField('A command is a JSON object as {"cmd":"ping"}.')
    name, given = said.get("cmd"), said.get("id")
    if name is None:
        raise MissingField(f"`cmd` is missing; it is one of {', '.join(COMMANDS)}.", param="/cmd")
    kind: Kind | None = COMMANDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidField(f"There is no command {str(name)[:40]!r}; there are {', '.join(COMMANDS)}.", param="/cmd")
    body = parsed(kind.body, {key: value for key, value in said.items() if key not in {"cmd", "id"}})
    return str(name), body, given


async def _refuse(socket: WebSocket, error: OrganismError, request_id: str) -> None:
    """Refuse the handshake with the HTTP answer that says why."""
    said = problem(error, request_id)
    headers = [(b"content-type", said.kind), (b"x-request-id", request_id.encode()), *said.headers, *fixed.API]
    await socket.send({"type": "websocket.http.response.start", "status": said.status, "headers": headers})
    await socket.send({"type": "websocket.http.response.body", "body": said.body})
