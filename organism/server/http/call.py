"""What an endpoint gets and gives, and a line of the route table. An endpoint refuses by an ``OrganismError``."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from organism.bootstrap import Organism
from organism.errors import BodyTooLarge, Forbidden, InvalidField, MissingField, NotFound, UnsupportedMediaType
from organism.events.record import Actor
from organism.model.commands import Command, CommandAnswer, Idempotency, Injected
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import Principal
from organism.model.redact import Redactor
from organism.server.http.auth import Authenticator, Tokens
from organism.server.http.bodies import Body, Faults, Places, named_in, parsed, payload_at, refuse_unknown
from organism.server.http.connections import BodyBudget, BodyUnderWay, ConnectionRegistry, Timeouts
from organism.server.http.contract import Contract, read_parameter
from organism.server.http.rights import Right
from organism.server.http.server_log import Access
from organism.server.json import (
    MAX_ELEMENTS,
    MAX_GATEWAY_ELEMENTS,
    Cursors,
    encoded,
    parse_json,
    whole_number,
)
from organism.server.metrics import Metrics
from organism.server.push.viewer import Tail
from organism.tenants import Tenant

T = TypeVar("T")
MAX_BODY_BYTES: Final = 1 << 20
MAX_GATEWAY_BODY_BYTES: Final = 32 << 20
"""Of a body for ``GATEWAY``: a talk with images, texts to embed."""
GATEWAY: Final = ("/v1/", "/a1/")
"""The beginnings of the addresses that programs use as they use a provider of models."""
NOBODY: Final = Principal(DEFAULT_TENANT, "nobody", frozenset())
WATCH_AFTER_SECONDS: Final = 0.1
"""A request is watched for its client's leaving only after this long: most have been answered by then."""
LEFT: Final = Response(status_code=499)
"""Never sent, since the client has left; the status is for the server's own log."""
_OF_BODY: Final = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
IN_PATH: Final[Places] = {"/thread_id": None, "/agent": None, "/approval": None, "/to": None, "/session_id": None}
"""What an act concerns stands in its path: no field is to blame."""
_TAG: Final = re.compile(r'(?:W/)?"?(\d{1,19})"?')

DEPTH: Final = "SPASS-Caller-Depth"
PARENT: Final = "SPASS-Parent-Request-Id"
CALLER: Final = (DEPTH, PARENT)
USER: Final = "SPASS-User-Id"
REQUEST_ID: Final = "SPASS-Request-Id"
FOR_USER: Final = (USER, REQUEST_ID)
UNUSED: Final = "SPASS-Parameters-Unused"
READING: Final = frozenset({"GET", "HEAD"})
_USER: Final = re.compile(r"[A-Za-z0-9._@-]{1,128}")
MOST_DEPTH: Final = 1_000_000


class JsonResponse(Response):
    """A value as JSON; ``bytes`` are finished JSON already."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encoded(content)


class Process:
    """What endpoints and sockets share of the running server. ``stopping`` is done once the graceful stop begins."""

    def __init__(self, organism: Organism, tokens: Tokens, key: bytes, timeouts: Timeouts) -> None:
        self.organism = organism
        self.timeouts = timeouts
        self.redactor = organism.parts.redactor
        self.cursors = Cursors(key)
        self.authenticator = Authenticator(tokens, self._seconds, self.redactor.add)
        self.connections = ConnectionRegistry(tokens, self._seconds)
        self.bodies = BodyBudget()
        self.metrics = Metrics()
        self.stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tails: dict[str, Tail] = {}

    def tail(self, tenant: Tenant) -> Tail:
        """The tail that all who watch a tenant share."""
        if tenant.id not in self._tails:
            log, views, now = tenant.log, tenant.views, tenant.clock.now_us
            self._tails[tenant.id] = Tail(log, views, now, feed=tenant.feed, library=tenant.library)
        return self._tails[tenant.id]

    def request_stop(self) -> None:
        """Begin the graceful stop."""
        if not self.stopping.done():
            self.stopping.set_result(None)

    def _seconds(self) -> float:
        return self.organism.parts.monotonic_ns() / 1e9


class Call(Request):
    """One request to a route: authenticated, its body read into ``content``.

    ``query`` has each parameter once; who needs no token is ``NOBODY`` in the tenant ``default``. ``end_user`` is
    the user of the tenant for whom it is, None if the request names none.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, process: Process, route: Route) -> None:
        super().__init__(scope, receive, send)
        self.process = process
        self.route = route
        self.access: Access = scope["state"]["access"]
        self._own_id = self.access.request_id
        self.query: Mapping[str, str] = scope["state"]["query"]
        self.who = NOBODY
        self.tenant = process.organism.tenants[NOBODY.tenant]
        self.content = b""
        self._digest = hashlib.sha256()  # of the body of a request that may be repeated
        self._held: BodyUnderWay | None = None
        self.end_user: str | None = None

    def identify(self, who: Principal) -> None:
        """The request is of ``who``, in their tenant."""
        self.who = who
        self.tenant = self.process.organism.tenants[who.tenant]
        self.access.tenant = who.tenant

    def identify_user(self) -> None:
        """The request is for the user whom its header names; an administrator of the tenant reads without.

        Raises ``MissingField``, ``InvalidField`` or ``Forbidden``.
        """
        place = f"headers.{USER.lower()}"
        user = self.headers.get(USER)
        if self.route.needs_user and "user_id" in self.query:
            raise InvalidField(f"The user is named by the header {USER} alone.", param="query.user_id")
        if user is None:
            if self.route.needs_user and not (self.method in READING and self.who.is_tenant_admin):
                raise self._no_user()
            return
        if not _USER.fullmatch(user):
            raise InvalidField(f"{USER} is 1 to 128 letters, digits, `.`, `_`, `@` and `-`.", param=place)
        refuse_secret(self.process.redactor, user, place)
        if not self.who.may_act_as(user):
            raise Forbidden("This token may not act for that user.", param=place)
        self.end_user = user

    @property
    def named_user(self) -> str:
        """The user for whom it is. Raises ``MissingField`` if the request names none."""
        if self.end_user is None:
            raise self._no_user()
        return self.end_user

    def _no_user(self) -> MissingField:
        place = f"headers.{USER.lower()}"
        return MissingField(f"The header {USER} is missing; it names the user for whom this is.", param=place)

    def take_request_id(self) -> None:
        """The request is called as the caller calls it. Raises ``InvalidField``."""
        self.access.is_named = True
        for name in (REQUEST_ID, "X-Request-Id"):
            if (request_id := self.headers.get(name)) is not None:
                if not _KEY.fullmatch(request_id):
                    raise InvalidField(f"{name} is 1 to 255 visible ASCII characters.", param=f"headers.{name.lower()}")
                refuse_secret(self.process.redactor, request_id, f"headers.{name.lower()}")
                self.access.request_id = request_id
                return

    def refuse_secret_id(self) -> None:
        """Raise ``InvalidField`` if the caller has named the request by a live secret; then it has our own name."""
        given, self.access.request_id = self.access.request_id, self._own_id
        refuse_secret(self.process.redactor, given, f"headers.{REQUEST_ID.lower()}")
        self.access.request_id = given

    @property
    def request_id(self) -> str:
        return self.access.request_id

    @property
    def path(self) -> str:
        path: str = self.scope["path"]
        return path

    @property
    def actor(self) -> Actor:
        """The cause, in the log, of what this call does."""
        return Actor(self.tenant.id, self.end_user, self.request_id, self.who.name)

    @property
    def content_kind(self) -> str:
        """The media type of the body, lower-case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def announces_body(self) -> bool:
        return any(name in _OF_BODY for name, _ in self.scope["headers"])

    def allow_query(self, *names: str) -> None:
        """Raise ``UnknownField`` for parameters that this route does not take."""
        refuse_unknown(self.query, names)

    def parameters(self, faults: Faults | None = None) -> Mapping[str, Any]:
        """The query's parameters as the route declares them. Raises what is wrong, or adds it to ``faults``."""
        found, declared, given = faults or Faults(), self.route.parameters(), dict[str, Any]()
        with found:
            refuse_unknown(self.query, tuple(declared))
        for name in self.route.requires:
            with found:
                if name not in self.query:
                    raise MissingField(f"The parameter `{name}` is missing.", param=f"query.{name}")
        for name in [name for name in self.query if name in declared]:
            with found:
                given[name] = read_parameter(declared[name], self.query[name], name)
        if faults is None:
            found.raise_found()
        return given

    def permit(self, **fields: str) -> None:
        """Raise ``Forbidden`` unless the token may do this to what the body names."""
        self.route.right.check(self.who, fields)

    async def body(self) -> bytes:
        """Read the body, and keep it if the route takes one.

        Raises ``UnsupportedMediaType`` if it is encoded, ``BodyTooLarge`` once that is known, ``RateLimitExceeded`` or
        ``Overloaded`` if too much is under way. What is counted is what came: who only announces much holds nothing.
        """
        if (coding := self.headers.get("content-encoding", "identity").lower()) not in {"identity", ""}:
            raise UnsupportedMediaType(
                f"A body comes as it is, without a Content-Encoding; came {coding[:40]!r}.",
                param="headers.content-encoding",
            )
        most = MAX_GATEWAY_BODY_BYTES if self.route.is_gateway else MAX_BODY_BYTES
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            raise BodyTooLarge(f"A body here has at most {most} bytes; {int(length)} are announced.")
        parts, size, held = [], 0, self.process.bodies.body(self.who)
        self._held = held
        async for part in self.stream():
            size += len(part)
            if size > most:
                raise BodyTooLarge(f"A body here has at most {most} bytes; more came.")
            if self.route.takes is not None:
                held.hold(size)
                parts.append(part)
        self.content = b"".join(parts)
        if "idempotency-key" in self.headers:
            self._digest.update(self.content)
        return self.content

    def release_body(self) -> None:
        """The request is answered, or its answer has begun: nothing needs the body any more."""
        self.content = b""
        if self._held is not None:
            self._held.hold(0)

    async def json(self) -> Any:
        """The body's value; an empty body is an empty object."""
        if not self.content:
            return {}
        if self.content_kind != "application/json":
            raise UnsupportedMediaType(
                f"This route takes application/json; came {self.content_kind or 'no Content-Type'!r}.",
                param="headers.content-type",
            )
        most = MAX_GATEWAY_ELEMENTS if self.route.is_gateway else MAX_ELEMENTS
        if len(self.content) > MAX_BODY_BYTES:  # takes a while, and the loop has agents to serve
            return await asyncio.to_thread(parse_json, self.content, most)
        return parse_json(self.content, most)

    async def body_as(self, kind: type[Body], *parameters: str) -> Body:
        """The body; its request takes these parameters alone. Raises an ``InvalidRequest`` that names what is wrong."""
        self.allow_query(*parameters)
        value = await self.json()
        if self.route.needs_user and isinstance(value, dict) and "user_id" in value:
            raise InvalidField(f"The user is named by the header {USER} alone.", param="/user_id")
        return parsed(kind, value)

    async def until_left(self) -> None:
        """Wait until the client is gone."""
        await until_left(self.receive)

    async def until_any(self, ends: Collection[asyncio.Future[Any]], seconds: float | None = None) -> None:
        """Wait until one of them is done, the client has left, or the seconds are over."""
        loop = asyncio.get_running_loop()
        end = math.inf if seconds is None else loop.time() + seconds
        early = min(WATCH_AFTER_SECONDS, end - loop.time())
        done, _ = await asyncio.wait(ends, timeout=early, return_when=asyncio.FIRST_COMPLETED)
        if done or loop.time() >= end:
            return
        leaving = asyncio.ensure_future(self.until_left())
        try:
            rest = None if seconds is None else end - loop.time()
            await asyncio.wait({*ends, leaving}, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()

    async def unless_left(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives. If the client leaves first, the work is cancelled; then raises ``ClientDisconnect``."""
        working = asyncio.ensure_future(work)
        try:
            await self.until_any((working,))
            if not working.done():
                raise ClientDisconnect
            return working.result()
        finally:
            if not working.done():
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working

    def command_fields(self, *, of_thread: bool = True) -> dict[str, Any]:
        """What every command takes from the request's headers. ``If-Match`` is refused unless it guards a thread."""
        if not of_thread:
            self.refuse_if_match()
        return {"actor": self.actor, "idempotency": self.idempotency(), "if_position": self._if_position()}

    def refuse_if_match(self) -> None:
        """Raise ``InvalidField`` for an If-Match."""
        if self._if_position() is not None:
            raise InvalidField("If-Match guards a thread; this acts on none.", param="headers.if-match")

    def idempotency(self) -> Idempotency | None:
        """The idempotency key and what it is bound to, if the request has one. Raises ``InvalidField``."""
        key = self.headers.get("idempotency-key")
        if key is None:
            return None
        self._if_position()  # one that cannot be read is refused, though the answer may be a recorded one
        key = key.strip()
        if not _KEY.fullmatch(key):
            raise InvalidField(
                "An Idempotency-Key is 1 to 255 visible ASCII characters.", param="headers.idempotency-key"
            )
        refuse_secret(self.process.redactor, key, "headers.idempotency-key")
        digest = self._digest.copy()
        if self.query:
            digest.update(repr(sorted(self.query.items())).encode())
        path = self.path if self.end_user is None else f"{self.path}#{self.end_user}"  # no user meets another one's key
        return Idempotency(key, self.method, path, digest.hexdigest())

    def _if_position(self) -> int | None:
        tag = self.headers.get("if-match", "*").strip()
        if tag == "*":
            return None
        if not (match := _TAG.fullmatch(tag)):
            raise InvalidField(
                f'If-Match takes a position as "123", the ETag of the thread; came {tag[:40]!r}.',
                param="headers.if-match",
            )
        return int(match[1])

    async def do(self, command: Command, places: Places = IN_PATH) -> CommandAnswer:
        """Carry out a command. ``places`` say where its fields stand in the request, if not in the body."""
        with named_in(places):
            return await self.tenant.do(command)

    async def send(self, command: Command, place: str = "/payload", places: Places = IN_PATH) -> Injected:
        """Carry out a command that sends a payload, which stands at ``place`` in the body."""
        with payload_at(place):
            sent = await self.do(command, places)
        assert isinstance(sent, Injected)  # noqa: S101 - what sends is answered by nothing else; narrows the type
        return sent

    async def row(self, model: str, key: str, at: int | None = None) -> bytes:
        """A row's JSON, as it stood ``at`` a position if one is given. Raises ``NotFound``."""
        if (row := await self.tenant.views.row(model, key, at)) is None:
            then = "" if at is None else f" at position {at}"
            kind = "index" if model == "indices" else model.removesuffix("s")
            raise NotFound(f"There is no {kind} {key[:80]!r}{then}.")
        return row


Endpoint = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Tag:
    """A group of routes in the documents, which the first paragraph of ``text`` describes."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Route(Contract):
    """A line of the route table: an ``operation`` like ``GET /threads``, below ``mount``, and the right it needs.

    ``by_head``: the answer depends on the log alone; the head is its ETag, and an unchanged head is a 304.
    ``by_body``: it depends on more, so its ETag is a digest of it.
    ``is_recorded``: the answer shows what is in no row, or not as it then stood; under an idempotency key it is
    recorded whole. All others are made again of the rows as of the act's position.
    ``needs_user``: the caller says for which user of the tenant it is.
    ``takes_slashes``: the name at the end of its path may hold some.
    ``tag``: its group in the documents, set by ``tagged``.
    """

    operation: str
    endpoint: Endpoint
    right: Right = field(kw_only=True)
    by_head: bool = field(default=False, kw_only=True)
    by_body: bool = field(default=False, kw_only=True)
    is_recorded: bool = field(default=False, kw_only=True)
    needs_user: bool = field(default=False, kw_only=True)
    takes_slashes: bool = field(default=False, kw_only=True)
    mount: str = field(default="", kw_only=True)
    tag: Tag | None = field(default=None, kw_only=True)

    @property
    def method(self) -> str:
        return self.operation.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.operation.partition(" ")[2]

    @property
    def address(self) -> str:
        return self.mount + self.path

    @property
    def is_gateway(self) -> bool:
        """Whether it is of ``GATEWAY``."""
        return self.address.startswith(GATEWAY)


def tagged(tag: Tag, *routes: Route) -> tuple[Route, ...]:
    """These routes as one group of the documents."""
    return tuple(replace(route, tag=tag) for route in routes)


def refuse_secret(redactor: Redactor, key: str, pointer: str) -> None:
    """Raise ``InvalidField`` for a key or an id that holds a live secret: it would be stored."""
    if redactor.holds_live(key):
        raise InvalidField("A token or key of this server stands here; make one by chance.", param=pointer)


def caller_fields(call: Call) -> dict[str, Any]:
    """Keywords for an ``Inject``. Raises ``InvalidField``."""
    headers = {name: call.headers[name].strip() for name in CALLER if name in call.headers}
    fields: dict[str, Any] = {}
    if DEPTH in headers:
        fields["caller_depth"] = whole_number(headers[DEPTH], f"headers.{DEPTH.lower()}", 0, MOST_DEPTH)
    if PARENT in headers:
        place = f"headers.{PARENT.lower()}"
        if not _KEY.fullmatch(headers[PARENT]):
            raise InvalidField(f"{PARENT} is 1 to 255 visible ASCII characters.", param=place)
        refuse_secret(call.process.redactor, headers[PARENT], place)
        fields["caller_request"] = headers[PARENT]
    return fields


def unused_header(names: Iterable[str]) -> dict[str, str]:
    """The header of an answer that names the parameters which were taken without effect; none if there are none."""
    listed = ", ".join(names)
    return {UNUSED: listed} if listed else {}


async def until_left(receive: Receive) -> None:
    """Wait until the client is gone. What it still sends is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass
