"""What is held of requests that are not answered yet is bounded, of a token and of all (S14); control passes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from organism.errors import Overloaded, RateLimitExceeded
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import Principal
from organism.server.http.connections import FREE_BYTES, BodyBudget
from tests.server.hostile.client import first_answer
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, hello_with
from tests.server.test_connections import turn

MIB = 1 << 20
EXECUTE = "/v1/tools/execute"
WANTED = {"acme": {"ci": ["read", "control", "tools:execute"], "other": ["read", "tools:execute"]}}


@pytest.fixture
async def tenanted(tmp_path: Path) -> AsyncIterator[Served]:
    """A server with two tokens of one tenant, whose clock stands."""
    async with served(hello_with(tmp_path, WANTED)) as server:
        turn(server, 0)
        yield server


def who(name: str) -> Principal:
    return Principal(DEFAULT_TENANT, name, frozenset(), name.encode())


@asynccontextmanager
async def unfinished(server: Served, name: str, announced: int, sent: int) -> AsyncIterator[asyncio.StreamReader]:
    """A request that announces more than it sends, once all that it sends has left; what comes back can be read."""
    url, loop = urlsplit(server.url), asyncio.get_running_loop()
    token = bearer("acme", name)["Authorization"]
    head = f"POST {EXECUTE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {announced}\r\n\r\n"
    sender = socket.create_connection((url.hostname, url.port))
    sender.settimeout(0)
    await loop.sock_sendall(sender, head.encode())
    await loop.sock_sendall(sender, bytes(sent))
    reader, writer = await asyncio.open_connection(sock=sender)
    try:
        yield reader
    finally:
        writer.close()


async def first_of(readers: list[asyncio.StreamReader]) -> bytes:
    """The first answer that comes to any of them."""
    waiting = [asyncio.ensure_future(first_answer(reader)) for reader in readers]
    done, others = await asyncio.wait(waiting, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    for each in others:
        each.cancel()
    return done.pop().result()


async def execute(server: Served, name: str, size: int) -> tuple[int, str | None]:
    """The status of a whole request of this size, and when to come again."""
    json = {"Content-Type": "application/json", **bearer("acme", name)}
    content = b"{" + b" " * (size - 2) + b"}"
    answer = await server.call("POST", f"/{EXECUTE}", content=content, headers=json)
    return answer.status_code, answer.headers.get("retry-after")


async def test_a_token_holds_no_more_than_64_mib_and_still_controls(tenanted: Served) -> None:
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(unfinished(tenanted, "ci", 32 * MIB, sent * MIB)) for sent in (31, 31, 3)
        ]
        answer = await first_of(opened)
        assert b" 429 " in answer
        assert b"\r\nretry-after: " in answer
        paused = await tenanted.call("POST", "/agents/greeter/pause", json={}, headers=bearer("acme", "ci"))
        assert paused.status_code == 200
        assert await execute(tenanted, "ci", FREE_BYTES) == (400, None)
        assert await execute(tenanted, "other", 3 * MIB) == (400, None)
    async with asyncio.timeout(30):
        while (await execute(tenanted, "ci", 20 * MIB))[0] == 429:  # until the server has seen that they are gone
            turn(tenanted, 60)


async def test_what_is_only_announced_holds_nothing(tenanted: Served) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(unfinished(tenanted, "ci", 32 * MIB, 1))
        assert await execute(tenanted, "ci", 20 * MIB) == (400, None)


async def test_a_request_counts_for_the_rate_before_its_body_has_come(tenanted: Served) -> None:
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(unfinished(tenanted, "ci", MIB, 0)) for _ in range(31)]
        assert b" 429 " in await first_of(opened)


async def test_the_parts_of_a_message_over_a_socket_are_bytes_under_way(hello: Served) -> None:
    async with hello.socket() as opened:
        frames = Frames(opened)
        await frames.until("connected")
        await opened.send(orjson.dumps({"cmd": "ping", "id": "x" * 100}).decode()[at : at + 1] for at in range(128))
        assert (await frames.until("ok"))[-1]["id"] == "x" * 100


@contextmanager
def full(budget: BodyBudget, *names: str) -> Iterator[None]:
    """Each of them holds 4 bytes."""
    held = [budget.body(who(name)) for name in names]
    for each in held:
        each.hold(FREE_BYTES + 4)
    yield
    for each in held:
        each.hold(0)


def test_all_tokens_together_have_a_bound_and_what_is_let_go_counts_no_more() -> None:
    budget = BodyBudget(process_bytes=10, token_bytes=6)
    with full(budget, "a", "b"):
        with pytest.raises(Overloaded):
            budget.body(who("c")).hold(FREE_BYTES + 3)
        with pytest.raises(RateLimitExceeded):
            budget.body(who("a")).hold(FREE_BYTES + 3)
        budget.body(who("c")).hold(FREE_BYTES)
        budget.body(who("a")).hold(FREE_BYTES + 2)
    with full(budget, "c"):
        pass


def test_a_refused_body_counts_as_it_stood_before() -> None:
    budget = BodyBudget(process_bytes=10, token_bytes=10)
    body = budget.body(who("a"))
    body.hold(FREE_BYTES + 4)
    with pytest.raises(RateLimitExceeded):
        body.hold(FREE_BYTES + 11)
    budget.body(who("a")).hold(FREE_BYTES + 6)
    body.hold(0)
    budget.body(who("a")).hold(FREE_BYTES + 4)
