"""Connections that are no requests: silent ones, slow ones, and heads without an end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import orjson
import pytest
import pytest_asyncio
from starlette.types import ASGIApp, Receive, Scope, Send

from organism.server.http.protocols import EXTENSION, HEAD_BYTES, FrameProtocol
from tests.server.served import TOKEN, Frames, Served, patience, served

PATIENCE_SECONDS = 10
HEAD = f"POST /api/v1/inject HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
BODY = '{"to":"greeter","payload":{"name":"Dan"}}'
WHOLE = f"{HEAD}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"


class Raw:
    """A connection that sends whatever it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, text: str) -> None:
        """Send the text."""
        self.writer.write(text.encode())

    async def rest(self) -> bytes:
        """All that comes until the server hangs up; what a reset cuts off is none."""
        try:
            return await asyncio.wait_for(self.reader.read(), PATIENCE_SECONDS)
        except ConnectionResetError:
            return b""

    async def answer(self) -> bytes:
        """The head of one answer and its body."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        return head + await self.reader.readexactly(int(length.split(b":")[1]))


@asynccontextmanager
async def opened(server: Served) -> AsyncIterator[Raw]:
    """A bare connection to the server."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    yield Raw(reader, writer)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@pytest_asyncio.fixture(loop_scope="session")
async def connection(shared: Served) -> AsyncIterator[Raw]:
    """A bare connection to the server."""
    async with opened(shared) as made:
        yield made


@pytest.fixture
async def impatient() -> AsyncIterator[Raw]:
    """A bare connection to a server that waits half a second for a request."""
    async with served(settings=patience(head_seconds=0.5, body_seconds=0.5)) as server, opened(server) as made:
        yield made


@pytest.mark.parametrize(
    "begun", ["", "GET", HEAD, f"{HEAD}Content-Length: 9\r\n\r\n", f"{HEAD}Content-Length: 9\r\n\r\n{{"]
)
async def test_anyone_who_owes_a_request_is_not_waited_for(impatient: Raw, begun: str) -> None:
    impatient.send(begun)
    assert await impatient.rest() == b""


async def test_a_second_request_that_is_never_ended_is_not_waited_for_either(impatient: Raw) -> None:
    impatient.send(WHOLE)
    assert (await impatient.answer()).startswith(b"HTTP/1.1 202")
    impatient.send("GET /api/v1/org")
    assert await impatient.rest() == b""


async def test_a_head_without_an_end_is_refused(connection: Raw) -> None:
    connection.send(f"{HEAD}X-Long: ")
    answer = asyncio.ensure_future(connection.rest())
    while not answer.done():
        connection.send("x" * HEAD_BYTES)
        await asyncio.wait([answer], timeout=0)
    assert answer.result() == b"" or answer.result().startswith(b"HTTP/1.1 400")


async def test_a_head_that_is_too_long_is_refused_with_its_limit(connection: Raw) -> None:
    connection.send(f"{HEAD}X-Long: {'x' * HEAD_BYTES}\r\n\r\n")
    reply = await connection.rest()
    assert reply.startswith(b"HTTP/1.1 400")
    assert b'"code":"invalid_field"' in reply
    assert str(HEAD_BYTES).encode() in reply


async def test_each_head_is_measured_by_itself_however_it_comes(connection: Raw) -> None:
    large = BODY.replace("Dan", "x" * 2 * HEAD_BYTES)
    first = WHOLE.replace(str(len(BODY)), str(len(large))).replace(BODY, large)
    third = WHOLE.replace("Content-Type", f"X-Long: {'x' * (HEAD_BYTES - 1000)}\r\nContent-Type")
    begun, part, rest = third.partition("-Type")
    connection.send(first + WHOLE + begun)  # its head is not whole yet when the others are answered
    for _ in range(2):
        assert (await connection.answer()).startswith(b"HTTP/1.1 202")
    connection.send(part + rest)
    assert (await connection.answer()).startswith(b"HTTP/1.1 202")


async def test_the_rest_of_a_body_that_was_answered_is_not_waited_for(impatient: Raw) -> None:
    impatient.send(f"{HEAD}Content-Type: application/json\r\nContent-Length: 9999999\r\n\r\n")
    assert (await impatient.answer()).startswith(b"HTTP/1.1 413")
    over = asyncio.ensure_future(impatient.rest())
    while not over.done():
        impatient.send("x")
        await asyncio.wait([over], timeout=0.02)
    assert over.result() == b""


GET = f"HTTP/1.1\r\nHost: HEADER\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/api/v1/organism", 200),
        ("http://127.0.0.1:1/api/v1/agents?limit=1", 200),
        ("http://evil.example/api/v1/organism", 403),
        ("http://localhost@evil.example/api/v1/organism", 403),
        ("http://me:secret@localhost/api/v1/organism", 403),
        ("http://[::1/api/v1/organism", 403),
        ("ftp://localhost/api/v1/organism", 400),
        ("localhost:80", 400),
    ],
)
async def test_a_host_in_the_target_counts_and_the_headers_does_not(connection: Raw, target: str, status: int) -> None:
    name = "evil.example" if status == 200 else "localhost"
    connection.send(f"GET {target} {GET.replace('HEADER', name)}")
    assert (await connection.answer()).startswith(b"HTTP/1.1 %d " % status)


UPGRADE = (
    "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize(
    ("head", "status", "reason"),
    [
        (f"GET /ws HTTP/1.1\r\n{UPGRADE.replace('-Key', '-Lock')}", 400, b"missing Sec-WebSocket-Key"),
        (f"GET /ws HTTP/1.1\r\n{UPGRADE.replace('13', '9')}", 400, b"invalid Sec-WebSocket-Version"),
        (f"GET /ws HTTP/1.1\r\n{UPGRADE}X: {'x' * 20_000}\r\n", 400, b"a line of it is too long"),
        (f"GET /ws HTTP/1.1\r\n{UPGRADE}{'X: x' * 200}\r\n".replace("xX", "x\r\nX"), 400, b"there are too many"),
        (f"GET /ws?since={'9' * 9000} HTTP/1.1\r\n{UPGRADE}", 400, b"a line of it is too long"),
        (f"POST /ws HTTP/1.1\r\n{UPGRADE}", 400, b"unsupported HTTP method"),
        (f"GET /elsewhere HTTP/1.1\r\n{UPGRADE}", 404, b"it is at /ws"),
        (f"GET /ws HTTP/1.1\r\n{UPGRADE.replace('localhost', 'evil')}", 403, b"does not answer to the name"),
    ],
)
async def test_what_is_no_handshake_is_refused_in_the_shape_of_all_answers(
    connection: Raw, head: str, status: int, reason: bytes
) -> None:
    connection.send(f"{head}\r\n")
    reply = await connection.rest()
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert reason in reply
    assert b"nosniff" in reply
    assert b"default-src 'none'" in reply
    assert b'"request_id":"' in reply


BIG = "x" * 200_000
TIMES = 10
LITTLE = (1 << 16) + (1 << 18)
"""A full buffer, and the pongs for all pings of one read of the socket."""
PING, TEXT_TO_GO_ON, PART_TO_GO_ON = 0x89, 0x01, 0x00
HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def turn() -> asyncio.Future[None]:
    """Done when the loop has turned once."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    return turned


async def watching(server: Served, count: int) -> None:
    """Wait until so many clients watch."""
    async with asyncio.timeout(20):
        while server.serving.process.connections.count != count:
            await turn()


async def stalled(server: Served) -> socket.socket:
    """A client that asks for everything and then reads nothing at all, with little room in its kernel."""
    url = urlsplit(server.url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (url.hostname, url.port))
    await loop.sock_sendall(client, HANDSHAKE.format(host=url.netloc, token=TOKEN).encode())
    return client


def masked(opcode: int, payload: bytes) -> bytes:
    """A frame from a client, under a mask of zeros."""
    return bytes((opcode, 0x80 | len(payload), 0, 0, 0, 0)) + payload


class Recording:
    """ASGI middleware that records the server's side of each WebSocket."""

    def __init__(self, app: ASGIApp, sides: list[FrameProtocol]) -> None:
        self._app = app
        self._sides = sides

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            self._sides.append(scope["extensions"][EXTENSION])
        await self._app(scope, receive, send)


@pytest.fixture
def sides(hello: Served) -> list[FrameProtocol]:
    """The server's side of each WebSocket that is opened."""
    found: list[FrameProtocol] = []
    hello.serving.app.add_middleware(Recording, found)
    return found


async def test_pings_of_one_that_never_reads_fill_no_memory(hello: Served, sides: list[FrameProtocol]) -> None:
    silent = await stalled(hello)
    await watching(hello, 1)
    for _ in range(8):
        await asyncio.get_running_loop().sock_sendall(silent, masked(PING, b"x" * 125) * 8192)
    assert sides[0].is_blocked
    assert sides[0].transport.get_write_buffer_size() < LITTLE
    silent.close()


async def test_parts_without_bytes_pile_up_nowhere(hello: Served, sides: list[FrameProtocol]) -> None:
    client = await stalled(hello)
    await watching(hello, 1)
    begin, empty, ping = masked(TEXT_TO_GO_ON, b'{"cmd":'), masked(PART_TO_GO_ON, b""), masked(PING, b"done")
    await asyncio.get_running_loop().sock_sendall(client, begin + empty * 1000 + ping)
    async with asyncio.timeout(20):
        while not sides[0].frames:
            await turn()
    assert len(sides[0].frames) == 1
    client.close()


async def test_a_client_that_answers_no_ping_is_disconnected() -> None:
    async with served(settings=patience(ping_seconds=0.2)) as server, opened(server) as silent:
        silent.send(HANDSHAKE.format(host="localhost", token=TOKEN))
        await watching(server, 1)
        await watching(server, 0)


async def test_a_client_that_answers_no_close_is_disconnected() -> None:
    async with served(settings=patience(auth_seconds=0.1, close_seconds=0.1)) as server, opened(server) as silent:
        silent.send(f"GET /ws HTTP/1.1\r\n{UPGRADE}\r\n")
        assert b"missing_authorization" in await silent.rest()


async def test_who_stops_reading_is_cut_off_and_delays_nobody() -> None:
    async with (
        served(settings=patience(stuck_seconds=0.5)) as hello,
        hello.socket(max_size=None) as healthy,
    ):
        frames = Frames(healthy)
        await frames.until("connected")
        silent = [await stalled(hello) for _ in range(5)]
        await watching(hello, 6)
        for _ in range(20):
            await hello.inject(payload={"name": BIG})
            await frames.until("thread_updated", status="completed")
        await watching(hello, 1)
        assert (await frames.ask("ping"))["event"] == "ok"
    for client in silent:
        client.close()


async def test_what_waits_for_one_that_reads_nothing_is_bounded(hello: Served, sides: list[FrameProtocol]) -> None:
    silent = await stalled(hello)
    await watching(hello, 1)
    most_bytes = 0
    for _ in range(2 * TIMES):
        await hello.inject(payload={"name": BIG})
        most_bytes = max(most_bytes, sides[0].transport.get_write_buffer_size())
    assert most_bytes < 5 * len(BIG), "a page of the window and a commit"
    silent.close()


async def test_who_reads_slowly_gets_everything(hello: Served) -> None:
    async with hello.socket(max_size=None, max_queue=1, close_timeout=0.1) as slow:
        first = orjson.loads(await slow.recv())
        for _ in range(TIMES):
            await hello.inject(payload={"name": BIG})
        frames, positions, completed = Frames(slow), [first["position"]], 0
        while completed < TIMES:
            frame = await frames.next()
            completed += frame["event"] == "thread_updated"
            if frame["event"] in {"message", "thread_created", "thread_updated"}:
                positions.append(frame["position"])
            await turn()
    assert positions == sorted(set(positions))
    assert len(positions) == 1 + TIMES * 6
