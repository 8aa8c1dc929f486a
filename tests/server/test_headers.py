"""Headers: of every answer, Host and Origin (S15), pages of other servers (S31), and the form that is wanted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import chain

import httpx2
import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from organism.bootstrap import VERSION
from organism.server.app import ROUTES
from organism.server.http import middleware
from organism.server.http.rights import OPEN
from organism.server.runner import ServerSettings
from tests.server.served import Frames, Served, served

OPEN_PATHS = sorted({route.address for route in ROUTES if route.right is OPEN})
PATHS = ("/", *OPEN_PATHS, "/nowhere", "/ws", "/api/v1/organism", "/api/v1/inject", "/metrics")
STRICT = {name.decode(): value.decode() for name, value in middleware.STRICT}


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "PATCH"])
async def test_every_answer_is_strict_and_tells_neither_server_nor_version(shared: Served, method: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as stranger:
        for path in PATHS:
            _check_strict(await stranger.request(method, shared.url + path))


def _check_strict(answer: httpx2.Response) -> None:
    assert {name: answer.headers.get(name) for name in STRICT} == STRICT
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert "x-request-id" in answer.headers
    assert not {"server", "x-powered-by", "via"} & set(answer.headers)
    assert not any(name.startswith("access-control-") for name in answer.headers)
    shown = "".join(chain.from_iterable(answer.headers.items())) + answer.text
    assert not re.search(rf'"version"\s*:\s*"{re.escape(VERSION)}"|organism[/ ]{re.escape(VERSION)}', shown)
    assert "uvicorn" not in shown.lower()


def test_no_policy_lets_anything_inline_or_from_elsewhere_in() -> None:
    for policy in (dict(middleware.API)[b"content-security-policy"], dict(middleware.PAGE)[b"content-security-policy"]):
        directives = dict(part.strip().split(b" ", 1) for part in policy.split(b";"))
        assert directives[b"default-src"] == b"'none'"
        assert directives[b"frame-ancestors"] == b"'none'"
        assert set(directives.values()) <= {b"'none'", b"'self'"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_with_name() -> AsyncIterator[Served]:
    """A server that answers to a name of its own besides."""
    async with served(settings=ServerSettings(port=0, allowed_hosts=("work.example",))) as server:
        yield server


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST:1", "work.example:443"])
async def test_loopback_and_allowed_names_are_served(shared_with_name: Served, host: str) -> None:
    assert (await shared_with_name.call("GET", "/organism", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "localhost.evil.example", "localhost@evil.example", "127.0.0.1/x", "localhost:99999", "a b",
     "[::1", "\xff"],
)  # fmt: skip
async def test_any_other_name_is_refused(shared_with_name: Served, host: str) -> None:
    answer = await shared_with_name.call("GET", "/organism", headers={"Host": host.encode("latin-1")})
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "headers.host")


async def test_a_program_sends_no_origin_and_the_servers_own_page_may_open_the_socket(shared_with_name: Served) -> None:
    for origin in ({}, {"Origin": shared_with_name.url}):
        async with shared_with_name.socket(headers={**shared_with_name.bearer, **origin}) as socket:
            await Frames(socket).until("connected")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://localhost:3000", "http://localhost", "null", "", "file://", "{own}.evil.example"],
)
async def test_another_page_may_not(shared_with_name: Served, origin: str) -> None:
    page = {"Origin": origin.format(own=shared_with_name.url)}
    with pytest.raises(InvalidStatus) as refused:
        async with shared_with_name.socket(headers={**shared_with_name.bearer, **page}):
            pass
    assert refused.value.response.status_code == 403


PAGE = "https://console.example"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_listing() -> AsyncIterator[Served]:
    """A server that lists a page."""
    async with served(settings=ServerSettings(port=0, allowed_origins=(PAGE,))) as server:
        yield server


def allowed(answer: httpx2.Response) -> set[str]:
    """The headers by which pages are let in."""
    return {name for name in answer.headers if name.startswith("access-control-")}


@pytest.mark.parametrize("origin", [PAGE, "null", "http://localhost", "*"])
async def test_without_a_list_no_page_is_let_in(shared: Served, origin: str) -> None:
    answers = [
        await shared.call("GET", "/organism", headers={"Origin": origin}),
        await shared.call("OPTIONS", "/inject", headers={"Origin": origin, **ASKS}),
    ]
    assert [answer.status_code for answer in answers] == [200, 405]
    assert [allowed(answer) for answer in answers] == [set(), set()]


async def test_a_listed_page_reads_answers_and_errors_alike_and_asks_first_without_a_token(
    shared_listing: Served,
) -> None:
    for path, status in (("/organism", 200), ("/nowhere", 404)):
        answer = await shared_listing.call("GET", path, headers={"Origin": PAGE})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
        assert "Origin" in answer.headers["vary"]
        assert "access-control-allow-credentials" not in answer.headers
    async with httpx2.AsyncClient(trust_env=False) as browser:
        asked = await browser.options(f"{shared_listing.url}/api/v1/inject", headers={"Origin": PAGE, **ASKS})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, PAGE)
    assert "authorization" in asked.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", f"{PAGE}.evil.example", "http://console.example", "null", ""]
)
async def test_any_other_page_is_not_let_in_by_the_list(shared_listing: Served, origin: str) -> None:
    answer = await shared_listing.call("GET", "/organism", headers={"Origin": origin})
    assert "access-control-allow-origin" not in answer.headers
    async with httpx2.AsyncClient(trust_env=False) as browser:
        asked = await browser.options(f"{shared_listing.url}/api/v1/inject", headers={"Origin": origin, **ASKS})
    assert (asked.status_code, "access-control-allow-origin" in asked.headers) == (400, False)


async def test_a_listed_page_may_open_the_socket_and_no_other_may(shared_listing: Served) -> None:
    async with shared_listing.socket(headers={**shared_listing.bearer, "Origin": PAGE}) as socket:
        await Frames(socket).until("connected")
    with pytest.raises(InvalidStatus):
        async with shared_listing.socket(headers={**shared_listing.bearer, "Origin": "https://evil.example"}):
            pass


OFFERS = ("application/xml", "application/schema+json")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", OFFERS[0]),
        ("*/*", OFFERS[0]),
        ("application/*", OFFERS[0]),
        ("application/schema+json", OFFERS[1]),
        ("Application/Schema+JSON; charset=utf-8", OFFERS[1]),
        ("text/html, application/xml;q=0.9, */*;q=0.8", OFFERS[0]),
        ("application/xml;q=0.5, application/schema+json", OFFERS[1]),
        ("application/xml;q=0, */*", OFFERS[1]),
    ],
)
async def test_the_form_that_is_accepted_most_is_sent(shared: Served, accept: str, expected: str) -> None:
    answer = await shared.call("GET", "/agents/greeter/schema", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, expected)


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=0", "*/*;q=much", ",", "application/xml;q=nan"])
async def test_a_form_that_is_not_offered_is_refused(shared: Served, accept: str) -> None:
    answer = await shared.call("GET", "/agents/greeter/schema", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["error"]["param"]) == (406, "headers.accept")
