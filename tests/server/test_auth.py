"""Tokens: the operator's, the page's, and where they are kept."""

from __future__ import annotations

import stat
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from organism import bootstrap
from organism.config.tokens import TenantEntry
from organism.errors import ConfigInvalid, CredentialInUrl, InvalidAuthorization, MissingAuthorization
from organism.model.ids import TenantId
from organism.model.principal import Principal
from organism.server.auth import (
    PAGE_LIFE_SECONDS,
    Tokens,
    operator_token,
    refuse_credentials,
    server_key,
    token_in,
)
from organism.server.serve import secrets_of
from tests.flows.stage import TurnedTime
from tests.server.served import HELLO

KEY = b"k" * 32


class Turned:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_the_operators_token_is_admin_of_the_default_tenant() -> None:
    who = Tokens("secret", KEY, Turned()).principal(b"secret")
    assert (who.tenant, who.may("read"), who.may("anything")) == ("default", True, True)


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
    link = Tokens("secret", KEY, clock).page().encode()
    restarted = Tokens("secret", KEY, clock)
    clock.now += PAGE_LIFE_SECONDS - 1
    assert restarted.principal(link).name == "page"
    clock.now += 1
    with pytest.raises(InvalidAuthorization):
        restarted.principal(link)


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


def test_a_page_token_of_another_directory_is_refused() -> None:
    clock = Turned()
    with pytest.raises(InvalidAuthorization):
        Tokens("secret", KEY, clock).principal(Tokens("secret", b"o" * 32, clock).page().encode())


def test_a_page_token_cannot_be_given_a_longer_life() -> None:
    tokens = Tokens("secret", KEY, Turned())
    prefix, end, mac = tokens.page().split("_")
    with pytest.raises(InvalidAuthorization):
        tokens.principal(f"{prefix}_{int(end, 16) + 1:x}_{mac}".encode())


@pytest.mark.parametrize(
    "headers", [{b"authorization": b"Bearer abc"}, {b"authorization": b"bearer  abc "}, {b"x-api-key": b"abc"}]
)
def test_a_token_is_found_in_either_header(headers: dict[bytes, bytes]) -> None:
    assert token_in(headers) == b"abc"


@pytest.mark.parametrize("headers", [{}, {b"authorization": b"Basic abc"}, {b"authorization": b"Bearer "}])
def test_no_token_is_missing_authorization(headers: dict[bytes, bytes]) -> None:
    with pytest.raises(MissingAuthorization):
        token_in(headers)


@pytest.mark.parametrize("name", ["token", "API_KEY", "access_token"])
def test_a_credential_in_the_url_is_refused(name: str) -> None:
    with pytest.raises(CredentialInUrl):
        refuse_credentials({name: "x"})


def test_a_made_token_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    made = operator_token(tmp_path, {})
    assert operator_token(tmp_path, {}) == made
    assert made.startswith("org_")
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_the_environments_token_goes_before_the_kept_one(tmp_path: Path) -> None:
    assert operator_token(tmp_path, {"ORGANISM_TOKEN": "mine"}) == "mine"
    assert not (tmp_path / "token").exists()


def test_the_servers_key_is_made_once(tmp_path: Path) -> None:
    assert server_key(tmp_path) == server_key(tmp_path)
    assert len(server_key(tmp_path)) == 32


CI = Principal(TenantId("acme"), "ci", frozenset({"read"}), credential=sha256(b"org_ci_1").digest(), ends=1_000_010.0)


def acme(*tokens: Principal) -> TenantEntry:
    return TenantEntry(TenantId("acme"), {}, tokens)


def test_a_token_of_the_file_opens_its_tenant_until_it_is_revoked() -> None:
    tokens = Tokens("secret", KEY, Turned())
    tokens.take([acme(CI)])
    assert tokens.principal(b"org_ci_1") is CI
    assert tokens.principal(b"secret").name == "operator"
    tokens.take([acme()])
    with pytest.raises(InvalidAuthorization):
        tokens.principal(b"org_ci_1")
    with pytest.raises(InvalidAuthorization):
        tokens.current(CI)


def test_the_digest_of_a_token_is_no_token() -> None:
    tokens = Tokens("secret", KEY, Turned())
    tokens.take([acme(CI)])
    for wrong in (CI.credential, CI.credential.hex().encode()):
        with pytest.raises(InvalidAuthorization):
            tokens.principal(wrong)


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


def test_no_entry_of_the_file_can_take_the_operators_place() -> None:
    tokens = Tokens("secret", KEY, Turned())
    tokens.take([acme(replace(CI, credential=sha256(b"secret").digest()))])
    assert tokens.principal(b"secret").name == "operator"


@pytest.mark.parametrize("name", ["token", "server.key"])
def test_a_kept_secret_that_everyone_can_change_is_none(tmp_path: Path, name: str) -> None:
    def read() -> object:
        return operator_token(tmp_path, {}) if name == "token" else server_key(tmp_path)

    read()
    (tmp_path / name).chmod(0o666)
    with pytest.raises(ConfigInvalid, match=f"chmod o-w .*{name}"):
        read()
