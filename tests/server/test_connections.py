"""Sockets of a token: how many, how fast (S15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from organism.errors import RateLimitExceeded
from organism.model.ids import TenantId
from organism.model.principal import Principal
from organism.server.http.auth import Tokens
from organism.server.http.connections import ConnectionRegistry
from organism.server.ws.socket import MAX_UNAUTHENTICATED
from tests.server.served import Frames, Served, served
from tests.server.tenanted import Wanted, bearer, hello_with
from tests.server.test_auth import KEY, Turned


class Connected:
    """A guest that remembers how it was dismissed."""

    def __init__(self, name: str, tenant: str = "acme", rate: int | None = 20) -> None:
        credential = f"{tenant} {name}".encode()
        self.who = Principal(TenantId(tenant), name, frozenset({"read"}), credential=credential, rate=rate)
        self.dismissed: int | None = None

    def dismiss(self, code: int) -> None:
        self.dismissed = code


def registry_of(clock: Turned) -> ConnectionRegistry:
    return ConnectionRegistry(Tokens("secret", KEY, clock), clock)


def test_a_token_may_have_a_thousand_sockets_and_each_tenant_counts_by_itself() -> None:
    registry = registry_of(Turned())
    guests = [Connected("ci") for _ in range(1000)]
    for guest in guests:
        registry.add(guest)
    with pytest.raises(RateLimitExceeded):
        registry.add(Connected("ci"))
    registry.add(Connected("ci", "globex"))
    registry.remove(guests[0])
    registry.add(Connected("ci"))
    assert registry.count == 1001


WANTED: Wanted = {
    "acme": {
        "ci": ["read"],
        "quick": {"scopes": ["read"], "rate": 50},
        "boss": ["admin"],
        "slow-boss": {"scopes": ["admin"], "rate": 5},
    }
}


async def burst(server: Served, name: str, count: int) -> list[str]:
    """Send so many commands over two sockets in turn; the codes of those that were refused."""
    async with (
        server.socket(headers=bearer("acme", name)) as first,
        server.socket(headers=bearer("acme", name)) as second,
    ):
        readers = [Frames(first), Frames(second)]
        answers = [await readers[at % 2].ask("ping") for at in range(count)]
    return [answer["code"] for answer in answers if answer["event"] == "error"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_clock(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server with these tokens, whose clock stands."""
    async with served(hello_with(tmp_path_factory.mktemp("rates"), WANTED)) as server:
        turn(server, 0)
        yield server


def turn(server: Served, seconds: int) -> None:
    """Turn the server's clock, and let it stand there."""
    now = server.organism.parts.monotonic_ns() + seconds * 1_000_000_000
    server.organism.parts = replace(server.organism.parts, monotonic_ns=lambda: now)


@pytest.mark.parametrize(("name", "allowed"), [("ci", 20), ("quick", 50), ("boss", 60), ("slow-boss", 5)])
async def test_commands_beyond_the_rate_are_refused_and_the_connection_lives(
    shared_clock: Served, name: str, allowed: int
) -> None:
    assert await burst(shared_clock, name, 60) == ["rate_limit_exceeded"] * (60 - allowed)
    turn(shared_clock, 1)
    assert await burst(shared_clock, name, 5) == []


async def test_what_is_no_command_counts_too(shared_clock: Served) -> None:
    turn(shared_clock, 1)
    async with shared_clock.socket(headers=bearer("acme", "ci")) as socket:
        frames = Frames(socket)
        await frames.until("connected")
        messages = []
        for sent in ["{", b"\x00", '{"cmd":"ping","cmd":"ping"}', "[" * 65 + "]" * 65] * 6:
            await socket.send(sent)
            messages.append((await frames.until("error"))[-1]["code"])
    assert messages == ["invalid_json"] * 20 + ["rate_limit_exceeded"] * 4


async def test_sixty_four_connections_may_wait_for_their_authentication_and_valid_tokens_pass_them(
    hello: Served,
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MAX_UNAUTHENTICATED):
            await stack.enter_async_context(hello.socket(headers={}))
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(hello.socket(headers={}))
        assert refused.value.response.status_code == 429
        async with hello.socket() as socket:
            assert (await Frames(socket).next())["event"] == "connected"
        ticket = (await hello.call("POST", "/ws-ticket")).json()["ticket"]
        async with hello.socket(f"?ticket={ticket}", headers={}) as socket:
            assert (await Frames(socket).next())["event"] == "connected"
