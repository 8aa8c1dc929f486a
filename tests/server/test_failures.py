"""Guessing tokens is slowed down, by address and by prefix, and never hurts who has a valid one (S2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from organism.errors import InvalidAuthorization, TooManyFailures
from organism.server.auth import Tokens
from organism.server.authenticator import FAILURES, REMEMBERED, Authenticator, Failures, network_of, prefix_of
from tests.server.served import TOKEN, Frames, Served, served
from tests.server.tenanted import bearer, hello_with

KEY = b"k" * 32


class Turned:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def door(clock: Turned) -> Authenticator:
    return Authenticator(Tokens("org_secret", KEY, clock), clock, lambda _: None)


def fail(at: Authenticator, token: bytes, address: str = "10.0.0.1") -> int:
    """The status of an attempt."""
    try:
        at.by_token(token, address)
    except (InvalidAuthorization, TooManyFailures) as error:
        return error.status
    return 200


def test_after_ten_failures_in_a_minute_an_address_gets_429() -> None:
    clock = Turned()
    at = door(clock)
    assert [fail(at, b"guess%d_x" % number) for number in range(12)] == [401] * 10 + [429] * 2
    assert fail(at, b"other_x", "10.0.0.2") == 401
    clock.now += 60
    assert fail(at, b"guess_x") == 401


def test_after_ten_failures_in_a_minute_a_prefix_gets_429_from_everywhere() -> None:
    at = door(Turned())
    assert [fail(at, b"org_ci_%d" % number, f"10.0.0.{number}") for number in range(11)] == [401] * 10 + [429]
    assert fail(at, b"org_web_1", "10.0.0.99") == 401


def test_retry_after_says_when_there_is_room_again() -> None:
    clock = Turned()
    failures = Failures(clock)
    for _ in range(FAILURES):
        failures.note("10.0.0.1", b"x")
    clock.now += 10.5
    with pytest.raises(TooManyFailures) as refused:
        failures.note("10.0.0.1", b"x")
    assert refused.value.retry_after_s == 50


def test_a_valid_token_is_never_refused_for_the_failures_of_others() -> None:
    at = door(Turned())
    for _ in range(30):
        fail(at, b"org_guess")
    assert fail(at, b"org_secret") == 200


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("") == b""


def test_a_prefix_is_what_stands_before_the_secret() -> None:
    assert prefix_of(b"org_ci_0123") == b"org_ci"
    assert prefix_of(b"0123456789") == b"01234567"
    assert len(prefix_of(b"x" * 1000 + b"_1")) == 40


def test_what_is_remembered_of_failures_is_bounded() -> None:
    clock = Turned()
    failures = Failures(clock)
    for number in range(REMEMBERED + 10):
        failures.note(f"{number}", b"%d_x" % number)
    assert len(failures._windows) == REMEMBERED  # noqa: SLF001 - that it is bounded shows nowhere else


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
