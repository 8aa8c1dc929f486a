"""Tokens, tickets, and how guesses are slowed down (S2, S6)."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from organism import bootstrap
from organism.config.tokens import TenantEntry
from organism.errors import (
    ConfigInvalid,
    InvalidAuthorization,
    RateLimitExceeded,
    TooManyFailures,
)
from organism.model.ids import TenantId
from organism.model.principal import Principal
from organism.server.http.auth import (
    LIFE_SECONDS,
    MAX_OPEN,
    PAGE_LIFE_SECONDS,
    REMEMBERED,
    Authenticator,
    Tickets,
    Tokens,
    operator_token,
    server_key,
)
from organism.server.runner import secrets_of
from tests.flows.stage import TurnedTime
from tests.server.served import HELLO, TOKEN, Frames, Served, served
from tests.server.tenanted import bearer, hello_with, write_tokens
from tests.server.test_live_tokens import closed, until_status

KEY = b"k" * 32


class Turned:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"Secret",
        b"secret ",
        b"\xff\xfe",
        b"page_",
        b"page_zz_aa",
        b"page_ffffffff_00",
        b"page_" + b"f" * 9000 + b"_0",
    ],
)
def test_any_other_token_is_refused_in_the_same_way(token: bytes) -> None:
    with pytest.raises(InvalidAuthorization) as refused:
        Tokens("secret", KEY, Turned()).principal(token)
    assert refused.value.message == "The token is not valid."


def test_a_page_token_outlives_a_restart_and_ends_after_twelve_hours() -> None:
    clock = Turned()
    link = Tokens("secret", KEY, clock).page()
    restarted = Tokens("secret", KEY, clock)
    prefix, end, mac = link.split("_")
    for wrong in (f"{prefix}_{int(end, 16) + 1:x}_{mac}", Tokens("secret", b"o" * 32, clock).page()):
        with pytest.raises(InvalidAuthorization):
            restarted.principal(wrong.encode())
    clock.now += PAGE_LIFE_SECONDS - 1
    assert restarted.principal(link.encode()).name == "page"
    clock.now += 1
    with pytest.raises(InvalidAuthorization):
        restarted.principal(link.encode())


async def test_tokens_end_by_the_logs_time_though_the_wall_clock_goes_back(tmp_path: Path) -> None:
    time = TurnedTime()
    organism = await bootstrap.start(HELLO, None, time.parts())
    try:
        tokens = secrets_of(tmp_path, {}, organism).tokens
        link = tokens.page().encode()
        time.wall_ns -= 10**15
        time.monotonic_ns += (PAGE_LIFE_SECONDS - 1) * 10**9
        assert tokens.principal(link).name == "page"
        time.monotonic_ns += 10**9
        with pytest.raises(InvalidAuthorization):
            tokens.principal(link)
    finally:
        await organism.stop(0)


@pytest.mark.parametrize(("file", "read"), [("token", lambda at: operator_token(at, {})), ("server.key", server_key)])
def test_a_secret_in_that_everyone_can_change_is_none(
    tmp_path: Path, file: str, read: Callable[[Path], str | bytes]
) -> None:
    made = read(tmp_path)
    assert read(tmp_path) == made, "it is made once"
    assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o600
    (tmp_path / file).chmod(0o666)
    with pytest.raises(ConfigInvalid, match=f"chmod o-w .*{file}"):
        read(tmp_path)


def test_the_environments_token_goes_before_the_kept_one(tmp_path: Path) -> None:
    assert operator_token(tmp_path, {}).startswith("org_")
    assert operator_token(tmp_path, {"ORGANISM_TOKEN": "mine"}) == "mine"


CI = Principal(TenantId("acme"), "ci", frozenset({"read"}), credential=sha256(b"org_ci_1").digest(), ends=1_000_010.0)


def acme(*tokens: Principal) -> TenantEntry:
    return TenantEntry(TenantId("acme"), {}, tokens)


def test_a_token_of_the_file_opens_its_tenant_until_it_is_revoked() -> None:
    tokens = Tokens("secret", KEY, Turned())
    tokens.take([acme(CI, replace(CI, credential=sha256(b"secret").digest()))])
    assert tokens.principal(b"org_ci_1") is CI
    who = tokens.principal(b"secret")
    assert (who.name, who.tenant, who.may("anything")) == ("operator", "default", True), "no entry takes its place"
    for wrong in (CI.credential, CI.credential.hex().encode()):
        with pytest.raises(InvalidAuthorization):
            tokens.principal(wrong)
    tokens.take([acme()])
    with pytest.raises(InvalidAuthorization):
        tokens.principal(b"org_ci_1")
    with pytest.raises(InvalidAuthorization):
        tokens.current(CI)


def test_a_token_that_expired_stays_so_though_the_clock_goes_back() -> None:
    clock = Turned()
    tokens = Tokens("secret", KEY, clock)
    tokens.take([acme(CI)])
    clock.now = 1_000_010.0
    with pytest.raises(InvalidAuthorization):
        tokens.principal(b"org_ci_1")
    clock.now = 1_000_000.0
    with pytest.raises(InvalidAuthorization):
        tokens.current(CI)


def door(clock: Turned) -> Authenticator:
    return Authenticator(Tokens("org_secret", KEY, clock), clock, lambda _: None)


def fail(at: Authenticator, token: bytes, address: str = "10.0.0.1") -> int:
    """The status of an attempt."""
    try:
        at.by_token(token, address)
    except (InvalidAuthorization, TooManyFailures) as error:
        return error.status
    return 200


@pytest.mark.parametrize(
    ("addresses", "another"),
    [(["10.0.0.1"] * 12, "10.0.0.2"), ([f"2001:db8::{at}" for at in range(12)], "2001:db8:0:1::1")],
    ids=["IPv4", "a network of IPv6"],
)
def test_after_ten_failures_in_a_minute_an_address_gets_429(addresses: list[str], another: str) -> None:
    clock = Turned()
    at = door(clock)
    statuses = [fail(at, b"guess%d_x" % number, address) for number, address in enumerate(addresses)]
    assert statuses == [401] * 10 + [429] * 2
    assert fail(at, b"other_x", another) == 401
    clock.now += 60
    assert fail(at, b"guess_x", addresses[0]) == 401


def test_after_ten_failures_in_a_minute_a_prefix_gets_429_from_everywhere() -> None:
    at = door(Turned())
    assert [fail(at, b"org_%d" % number, f"10.0.0.{number}") for number in range(11)] == [401] * 10 + [429]
    assert fail(at, b"org_web_1", "10.0.0.99") == 401
    assert fail(at, b"org_secret", "10.0.0.1") == 200, "a valid token is never refused for the failures of others"


def test_guessed_tickets_count_as_failures_too() -> None:
    at = door(Turned())
    for _ in range(10):
        with pytest.raises(InvalidAuthorization):
            at.by_ticket("guess", "10.0.0.1")
    with pytest.raises(TooManyFailures):
        at.by_ticket("guess", "10.0.0.1")


def test_of_too_many_failures_the_oldest_are_forgotten() -> None:
    at = door(Turned())
    assert [fail(at, b"first_x") for _ in range(11)] == [401] * 10 + [429]
    for number in range(REMEMBERED):
        fail(at, b"%d_x" % number, f"{number}")
    assert fail(at, b"first_x") == 401


async def test_a_guesser_gets_429_with_retry_after_and_the_operator_goes_on(hello: Served) -> None:
    wrong = {"Authorization": "Bearer org_guess"}
    answers = [await hello.call("GET", "/organism", headers=wrong) for _ in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    last = answers[-1]
    assert last.json()["error"]["code"] == "too_many_failures"
    assert 50 < int(last.headers["retry-after"]) <= 60
    assert (await hello.call("GET", "/organism")).status_code == 200
    async with hello.socket(headers=wrong) as socket:
        assert (await Frames(socket).next())["code"] == "too_many_failures"
    async with hello.socket() as socket:
        assert (await Frames(socket).next())["event"] == "connected"


async def test_unknown_wrong_and_expired_tokens_look_the_same(tmp_path: Path) -> None:
    gone = {"scopes": ["read"], "expires": "2020-01-01T00:00:00Z"}
    async with served(hello_with(tmp_path, {"acme": {"old": gone}})) as server:
        shown = set()
        for token in ("nothing", TOKEN + "x", "page_1_00", "org_\u00e9", bearer("acme", "old")["Authorization"][7:]):
            headers = {b"Authorization": f"Bearer {token}".encode("latin-1")}
            answer = await server.client.get("/api/v1/organism", headers=headers)
            error = answer.json()["error"]
            del error["request_id"]
            names = tuple(sorted(answer.headers.items() - {("x-request-id", answer.headers["x-request-id"])}))
            shown.add(
                (
                    answer.status_code,
                    repr(error),
                    tuple(pair for pair in names if pair[0] not in {"date", "content-length"}),
                )
            )
        assert len(shown) == 1
        assert next(iter(shown))[0] == 401


WHO = Principal(TenantId("acme"), "ci", frozenset({"read"}), credential=b"c" * 32)


def test_a_ticket_is_good_once() -> None:
    tickets = Tickets(Turned())
    ticket, other = tickets.issue(WHO), tickets.issue(WHO)
    serial, mac = ticket.split(".")
    changed = ["", "x", ".", serial, f"{serial}.", f"{serial}.{other.split('.')[1]}", f"{serial}.é", mac + ticket]
    for wrong in (*changed, Tickets(Turned()).issue(WHO)):
        with pytest.raises(InvalidAuthorization):
            tickets.redeem(wrong)
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
    found: httpx2.Response = await server.call("POST", "/ws-ticket", headers=headers or {})
    assert found.json()["expires_in_seconds"] == 30
    ticket: str = found.json()["ticket"]
    return ticket


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_tenant(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server with another tenant's tokens."""
    tokens = {"acme": {"ci": ["read"], "poster": ["inject"]}}
    async with served(hello_with(tmp_path_factory.mktemp("tokens"), tokens)) as server:
        yield server


async def test_a_ticket_has_the_rights_and_the_tenant_of_its_token(shared_tenant: Served) -> None:
    ticket = await ask(shared_tenant, bearer("acme", "ci"))
    async with shared_tenant.socket(f"?since=1&ticket={ticket}", headers={}) as socket:
        frames = Frames(socket)
        assert (await frames.next())["log"] == shared_tenant.organism.tenants["acme"].log.timeline
        assert (await frames.ask("kill", thread_id="x"))["code"] == "forbidden"
    async with shared_tenant.socket(f"?ticket={ticket}", headers={}) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "invalid_authorization"
        assert await closed(frames) == 4401
    answer = await shared_tenant.call("POST", "/ws-ticket", headers=bearer("acme", "poster"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), "a ticket needs read"


async def test_a_ticket_ends_with_its_token(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {"acme": {"ci": ["read"]}})) as server:
        ticket = await ask(server, bearer("acme", "ci"))
        write_tokens(tmp_path, {"acme": {}})
        await until_status(server, "acme", "ci", 401)
        async with server.socket(f"?ticket={ticket}", headers={}) as socket:
            assert (await Frames(socket).next())["code"] == "invalid_authorization"


async def test_a_ticket_is_for_the_socket_alone(shared: Served) -> None:
    ticket = await ask(shared)
    answer = await shared.call("GET", f"/organism?ticket={ticket}", headers={"Authorization": ""})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "credential_in_url")
    assert ticket not in answer.text


async def test_no_other_credential_opens_the_socket_by_its_url(shared: Served) -> None:
    for name in ("token", "access_token", "Ticket"):
        with pytest.raises(InvalidStatus) as refused:
            async with shared.socket(f"?{name}={await ask(shared)}", headers={}):
                pass
        assert refused.value.response.status_code == 400
