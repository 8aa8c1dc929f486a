"""Tickets: one use, thirty seconds, for whoever asked; the only credential that a URL may hold (S6)."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

from organism.errors import InvalidAuthorization, RateLimitExceeded
from organism.model.ids import DEFAULT_TENANT, TenantId
from organism.model.principal import Principal
from organism.server.authenticator import LIFE_SECONDS, MAX_OPEN, Tickets
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, hello_with, write_tokens
from tests.server.test_live_tokens import closed, until_status

WHO = Principal(TenantId("acme"), "ci", frozenset({"read"}), credential=b"c" * 32)


class Turned:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_a_ticket_is_good_once() -> None:
    tickets = Tickets(Turned())
    ticket = tickets.issue(WHO)
    assert tickets.redeem(ticket) is WHO
    with pytest.raises(InvalidAuthorization):
        tickets.redeem(ticket)


def test_a_ticket_is_good_for_thirty_seconds() -> None:
    clock = Turned()
    tickets = Tickets(clock)
    early, late = tickets.issue(WHO), tickets.issue(WHO)
    clock.now += LIFE_SECONDS - 0.5
    assert tickets.redeem(early) is WHO
    clock.now += 0.5
    with pytest.raises(InvalidAuthorization):
        tickets.redeem(late)


def test_a_ticket_that_was_changed_is_refused_and_not_used_up() -> None:
    tickets = Tickets(Turned())
    ticket, other = tickets.issue(WHO), tickets.issue(WHO)
    serial, mac = ticket.split(".")
    for wrong in ("", "x", ".", serial, f"{serial}.", f"{serial}.{other.split('.')[1]}", f"{serial}.é", mac + ticket):
        with pytest.raises(InvalidAuthorization):
            tickets.redeem(wrong)
    assert tickets.redeem(ticket) is WHO


def test_a_ticket_of_another_process_is_refused() -> None:
    with pytest.raises(InvalidAuthorization):
        Tickets(Turned()).redeem(Tickets(Turned()).issue(WHO))


def test_a_token_has_at_most_a_thousand_unused_tickets() -> None:
    clock = Turned()
    tickets = Tickets(clock)
    for _ in range(MAX_OPEN):
        tickets.issue(WHO)
    with pytest.raises(RateLimitExceeded):
        tickets.issue(WHO)
    clock.now += LIFE_SECONDS
    tickets.issue(WHO)


async def ask(server: Served, headers: dict[str, str] | None = None) -> str:
    """A ticket."""
    said: httpx2.Response = await server.call("POST", "/ws-ticket", headers=headers or {})
    assert said.json()["expires_in_seconds"] == 30
    ticket: str = said.json()["ticket"]
    return ticket


async def test_a_ticket_opens_the_socket_once(hello: Served) -> None:
    ticket = await ask(hello)
    async with hello.socket(f"?ticket={ticket}", headers={}) as socket:
        assert (await Frames(socket).next())["event"] == "connected"
    async with hello.socket(f"?ticket={ticket}", headers={}) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "invalid_authorization"
        assert await closed(frames) == 4401


async def test_a_ticket_has_the_rights_and_the_tenant_of_its_token(tmp_path: Path) -> None:
    tokens = {"acme": {"ci": ["read"]}}
    async with served(hello_with(tmp_path, tokens)) as server:
        await server.inject()
        ticket = await ask(server, bearer("acme", "ci"))
        async with server.socket(f"?since=1&ticket={ticket}", headers={}) as socket:
            frames = Frames(socket)
            connected = await frames.next()
            assert connected["log"] == server.organism.tenants["acme"].log.timeline
            assert (await frames.ask("kill", thread_id="x"))["code"] == "forbidden"


async def test_a_ticket_ends_with_its_token(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {"acme": {"ci": ["read"]}})) as server:
        ticket = await ask(server, bearer("acme", "ci"))
        write_tokens(tmp_path, {"acme": {}})
        await until_status(server, "acme", "ci", 401)
        async with server.socket(f"?ticket={ticket}", headers={}) as socket:
            assert (await Frames(socket).next())["code"] == "invalid_authorization"


async def test_a_ticket_is_for_the_socket_alone(hello: Served) -> None:
    ticket = await ask(hello)
    answer = await hello.call("GET", f"/organism?ticket={ticket}", headers={"Authorization": ""})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "credential_in_url")
    assert ticket not in answer.text


async def test_no_other_credential_opens_the_socket_by_its_url(hello: Served) -> None:
    for name in ("token", "access_token", "Ticket"):
        with pytest.raises(InvalidStatus) as refused:
            async with hello.socket(f"?{name}={await ask(hello)}", headers={}):
                pass
        assert refused.value.response.status_code == 400


async def test_a_ticket_needs_read(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {DEFAULT_TENANT: {"ci": ["inject"]}})) as server:
        answer = await server.call("POST", "/ws-ticket", headers=bearer(DEFAULT_TENANT, "ci"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
