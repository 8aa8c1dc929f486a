"""The WebSocket ``/ws``: who may open it, its first frame, its commands. Pushing is in ``viewer``.

accept ─▶ (token in a header, or ``auth`` within ten seconds) ─▶ ``connected`` ─▶ events and answers
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, NamedTuple

import msgspec
import orjson
import structlog
from msgspec import UNSET
from starlette.websockets import WebSocket, WebSocketDisconnect

from organism.errors import (
    BadPosition,
    Forbidden,
    InvalidField,
    InvalidJson,
    MissingAuthorization,
    MissingField,
    NotFound,
    OrganismError,
    RateLimitExceeded,
)
from organism.events.record import Actor
from organism.model.commands import Injected
from organism.model.principal import Principal
from organism.model.redact import Redactor
from organism.server.http import problems
from organism.server.http.auth import TICKET, token_in
from organism.server.http.bodies import NoBody, named_in, parsed, payload_at
from organism.server.http.call import Process, refuse_secret
from organism.server.http.connections import NOT_ALLOWED, NOT_AUTHENTICATED
from organism.server.http.middleware import refuse_empty
from organism.server.http.protocols import EXTENSION, FrameProtocol
from organism.server.http.rights import SOCKET
from organism.server.http.server_log import Access
from organism.server.json import parse_json
from organism.server.push.filter import websocket_frame
from organism.server.push.frames import FrameOf
from organism.server.push.snapshot import Start, start_from_position, start_from_snapshot
from organism.server.push.viewer import Viewer
from organism.server.ws.answers import CommandDone, CommandInjected, CommandRefused, Subscribed
from organism.server.ws.commands import COMMANDS, IN_ADDRESS, Auth, InjectCommand, Opening, Subscribe, opening_of

PATH: Final = "/ws"
MAX_ID_BYTES: Final = 200
MAX_UNAUTHENTICATED: Final = 64
MAX_UNDER_WAY: Final = 64
"""How many commands of one connection may run at once; no more are read until one of them is answered."""
AT_ONCE: Final = frozenset({"subscribe", "auth", "ping"})
"""The commands that write nothing: each is answered before the next one is read."""
NORMAL: Final = 1000
POLICY: Final = 1008
RESTART: Final = 1012
TRY_AGAIN_LATER: Final = 1013

_log = structlog.get_logger("organism.server")


class WebSockets:
    """All WebSockets of the process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._unauthenticated = asyncio.Semaphore(MAX_UNAUTHENTICATED)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one connection, from its handshake to its end."""
        access: Access = scope["state"]["access"]
        socket = WebSocket(scope, receive, send)
        if scope["path"] != PATH:
            raise NotFound(f"There is no WebSocket at {scope['path'][:200]!r}; it is at {PATH}.")
        access.route = PATH
        query: Mapping[str, str] = scope["state"]["query"]
        refuse_empty(query)
        begin = opening_of(query)
        if TICKET not in query and {"authorization", "x-api-key"}.isdisjoint(socket.headers):
            self._check_room()
        await socket.accept()
        connection = Connection(socket, scope["extensions"][EXTENSION], access, self.process.redactor)
        address = socket.client.host if socket.client else ""
        with suppress(WebSocketDisconnect):
            try:
                who = await self._authenticated(connection, socket.headers, query.get(TICKET), address)
                access.tenant = who.tenant
                await self._serve(connection, who, begin, address)
            except OrganismError as error:
                access.status = error.status
                connection.refuse(connection.first_id if access.tenant is None else None, error)
                refused = NOT_ALLOWED if isinstance(error, Forbidden) else POLICY
                await connection.close(NOT_AUTHENTICATED if access.tenant is None else refused)

    async def _serve(self, connection: Connection, who: Principal, begin: Opening, address: str) -> None:
        SOCKET.check(who)
        session = Session(self.process, connection, who, address)
        self.process.connections.add(session)
        connection.protocol.on_unread = session.hold_unread
        try:
            await session.run(begin)
        finally:
            connection.protocol.on_unread = None
            session.hold_unread(0)
            self.process.connections.remove(session)

    async def _authenticated(
        self, connection: Connection, headers: Mapping[str, str], ticket: str | None, address: str
    ) -> Principal:
        """Whose ticket or token it is: of the URL, a header, or the first message. Nothing is sent before."""
        authenticator, seconds = self.process.authenticator, self.process.timeouts.auth_seconds
        if ticket is not None:
            return authenticator.by_ticket(ticket, address)
        with suppress(MissingAuthorization):
            return authenticator.by_token(token_in(headers), address)
        self._check_room()
        async with self._unauthenticated:
            try:
                async with asyncio.timeout(seconds):
                    message = _json_of(await connection.receive())
            except TimeoutError:
                raise MissingAuthorization(f"No `auth` came within {seconds:.0f} seconds.") from None
        connection.first_id = _id_of(message)
        if not isinstance(message, dict) or message.get("cmd") != "auth":
            raise MissingAuthorization('Send {"cmd":"auth","token":"…"} first, or an Authorization header.')
        who = _principal(self.process, _command(message).body, address)
        position = self.process.organism.tenants[who.tenant].log.head
        connection.answer(CommandDone(id=_echo(connection.first_id), position=position))
        return who

    def _check_room(self) -> None:
        if self._unauthenticated.locked():
            raise RateLimitExceeded("Too many connections wait for their authentication.")


class Connection:
    """One accepted WebSocket: JSON in, frames out. ``first_id`` is of the message that should authenticate it."""

    def __init__(self, socket: WebSocket, protocol: FrameProtocol, access: Access, redactor: Redactor) -> None:
        self.protocol = protocol
        self.access = access
        self.first_id: Any = None
        self._redactor = redactor
        self._socket = socket

    async def receive(self) -> str | None:
        """The next message's text, None if it is a binary one. Raises ``WebSocketDisconnect`` at the end."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        text: str | None = message.get("text")
        return text

    def answer(self, said: FrameOf) -> None:
        """Answer a command."""
        self.protocol.write_frames(websocket_frame(self._redactor.masked_bytes(msgspec.json.encode(said))))

    def refuse(self, command_id: Any, error: OrganismError) -> None:
        """Answer a command with what was wrong."""
        fields = problems.fields(error)
        said = CommandRefused(
            id=command_id,
            code=error.code,
            error=fields.pop("message"),
            request_id=self.access.request_id,
            **fields,
        )
        self.protocol.write_frames(websocket_frame(self._redactor.shown(msgspec.json.encode(said))))

    @contextmanager
    def errors_answered(self, command_id: Any) -> Iterator[None]:
        """An error is the answer to the command, and the connection lives."""
        try:
            yield
        except OrganismError as error:
            self.refuse(command_id, error)
        except WebSocketDisconnect:
            raise
        except Exception:  # noqa: BLE001 - the server's edge: it is recorded, and the client gets its id
            _log.exception("command failed", request_id=self.access.request_id)
            self.refuse(command_id, OrganismError())

    async def close(self, code: int) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            await self._socket.close(code)


class Session:
    """An authenticated connection: one viewer, and the commands of its client."""

    def __init__(self, process: Process, connection: Connection, who: Principal, address: str) -> None:
        self.who = who
        self._process = process
        self._connection = connection
        self._address = address
        self._tenant = process.organism.tenants[who.tenant]
        self._tail = process.tail(self._tenant)
        self._viewer: Viewer
        self._closing: asyncio.Task[None] | None = None
        self._room = asyncio.Semaphore(MAX_UNDER_WAY)
        self._injecting = asyncio.Lock()
        self._held = process.bodies.body(who)

    async def run(self, begin: Opening) -> None:
        """Say how things stand, then serve until the client leaves or the log closes."""
        try:
            with self._tail.watched():  # what is committed while the snapshot is read stays in the tail's window
                start = await self._start(begin)
                self._viewer = Viewer(self._tail, begin.filter(), start)
                self._connection.protocol.write_frames(self._viewer.own(start.connected))
                await self._serve()
        except OrganismError as error:  # a position of no use; or the log is closing, or cannot be read just now
            self._connection.refuse(None, error)
            await self._connection.close(POLICY if isinstance(error, BadPosition) else RESTART)

    async def _start(self, begin: Opening) -> Start:
        if not begin.resumes:
            status = self._process.organism.status
            return await start_from_snapshot(self._tenant, self._tail.snapshots, status, begin.filter())
        with named_in(IN_ADDRESS):
            return start_from_position(self._tenant.log, begin.since, begin.log, begin.until)

    def dismiss(self, code: int) -> None:
        """Close the connection; see ``Subscriber``."""
        self._closing = self._closing or asyncio.ensure_future(self._connection.close(code))

    def hold_unread(self, size: int) -> None:
        """So many bytes of a message that is not whole are held; if they are too many, the connection ends."""
        try:
            self._held.hold(size)
        except OrganismError as error:
            self._connection.refuse(None, error)
            self.dismiss(TRY_AGAIN_LATER)

    async def _serve(self) -> None:
        """Push, and carry out commands until the client leaves or is dismissed; what was read is still carried out."""
        async with asyncio.TaskGroup() as under_way:
            pushing = under_way.create_task(self._push())
            with suppress(WebSocketDisconnect):
                while self._closing is None and await self._connection.protocol.drained():
                    command = self._read(await self._connection.receive())
                    if command is None:
                        continue
                    if command.name in AT_ONCE:
                        await self._carry_out(command)
                    else:
                        await self._room.acquire()
                        carrying_out = under_way.create_task(self._carry_out(command))
                        carrying_out.add_done_callback(lambda _: self._room.release())
            pushing.cancel()
        if self._closing is not None:
            await self._closing

    async def _push(self) -> None:
        """Send what the viewer reads, as fast as the client takes it; a client that takes nothing is cut off (S15)."""
        try:
            async for frames in self._viewer.stream():
                self._connection.protocol.write_frames(frames)
                if not await self._connection.protocol.drained():
                    return
        except Exception:  # noqa: BLE001 - whatever keeps it from being served: it may come back with its position
            _log.exception("viewer cut off", position=self._viewer.position)
        self.dismiss(NORMAL if self._viewer.has_reached_end else RESTART)

    def _read(self, text: str | None) -> _Command | None:
        """The command, or None if it was refused. What cannot be read counts too: it costs as much."""
        command: _Command | None = None
        with self._connection.errors_answered(None):
            try:
                message = _json_of(text)
            except OrganismError:
                self._process.connections.note_command(self.who)
                raise
            with self._connection.errors_answered(_id_of(message)):
                self._process.connections.note_command(self.who)
                command = _command(message)
        return command

    def _check_right(self, name: str, body: Any) -> None:
        right = COMMANDS[name].right
        right.check(self.who, {field: getattr(body, field, None) for field in right.objects})
        if isinstance(body, InjectCommand):
            for receiver in self._tenant.receivers(body.to):
                right.check(self.who, {"to": receiver})

    async def _carry_out(self, command: _Command) -> None:
        """Answer a command, unless the client was dismissed since it came."""
        with self._connection.errors_answered(command.id):
            if self._closing is None:
                self._check_right(command.name, command.body)
                self._connection.answer(await self._act(command))

    async def _act(self, command: _Command) -> FrameOf:
        """Do what a command asks for; gives its answer."""
        body, echo = command.body, _echo(command.id)
        if isinstance(body, Subscribe):
            self._subscribe(body)
            return Subscribed(id=echo, filter=body.shown(), position=self._viewer.position)
        if isinstance(body, Auth):  # the rights stay those of the token that came first
            _principal(self._process, body, self._address)
        if isinstance(body, Auth | NoBody):
            return CommandDone(id=echo, position=self._viewer.position)
        request_id = self._connection.access.request_id
        actor = Actor(self._tenant.id, request_id=request_id, principal=self.who.name)
        if not isinstance(body, InjectCommand):
            return CommandDone(id=echo, position=(await self._tenant.do(body.command(actor))).position)
        if body.idempotency_key:
            refuse_secret(self._process.redactor, body.idempotency_key, "/idempotency_key")
        with payload_at("/payload"):
            sent = await self._inject(body, actor)
        return CommandInjected(id=echo, thread_id=sent.thread_id, message_id=sent.message_id, position=sent.position)

    def _subscribe(self, body: Subscribe) -> None:
        """Replace the filter from the viewer's position on."""
        wanted = body.filter()
        start = start_from_position(self._tenant.log, body.since, body.log) if body.resumes else None
        self._viewer.want(wanted)
        if start is not None:
            self._viewer.begin(start)

    async def _inject(self, body: InjectCommand, actor: Actor) -> Injected:
        """Inject in the order of the commands: the next one begins once this one has its place in the log."""
        await self._injecting.acquire()
        with ExitStack() as turn:
            turn.callback(self._injecting.release)
            sent = await self._tenant.do(body.command(actor, on_sent=lambda *_ids: turn.close()))
        assert isinstance(sent, Injected)  # noqa: S101 - what injects is answered by nothing else; narrows the type
        return sent


def _principal(process: Process, body: Auth, address: str) -> Principal:
    """Whose token an ``auth`` names. Raises ``InvalidAuthorization``."""
    with named_in({"headers.authorization": "/token"}):
        return process.authenticator.by_token(body.token.encode(), address)


class _Command(NamedTuple):
    name: str
    body: Any
    id: Any


def _echo(command_id: Any) -> Any:
    """The ``id`` of an answer: the command's, left out if it had none."""
    return UNSET if command_id is None else command_id


def _json_of(text: str | None) -> Any:
    if text is None:
        raise InvalidJson("Send text frames; a binary one came.")
    return parse_json(text.encode())


def _command(message: Any) -> _Command:
    """The command of a message, its body parsed."""
    if not isinstance(message, dict):
        raise InvalidField('A command is a JSON object as {"cmd":"ping"}.')
    name, command_id = message.get("cmd"), _id_of(message)
    if command_id is None and message.get("id") is not None:
        raise InvalidField(f"An `id` has at most {MAX_ID_BYTES} bytes of JSON; a longer one came.", param="/id")
    if name is None:
        raise MissingField(f"`cmd` is missing; it is one of {', '.join(COMMANDS)}.", param="/cmd")
    if not isinstance(name, str) or name not in COMMANDS:
        raise InvalidField(f"There is no command {str(name)[:40]!r}; there are {', '.join(COMMANDS)}.", param="/cmd")
    fields = {key: value for key, value in message.items() if key not in {"cmd", "id"}}
    return _Command(name, parsed(COMMANDS[name].body, fields), command_id)


def _id_of(message: Any) -> Any:
    """The ``id`` of a command, which its answer carries; None if it has none, or one that is too long."""
    command_id = message.get("id") if isinstance(message, dict) else None
    return command_id if len(orjson.dumps(command_id)) <= MAX_ID_BYTES else None
