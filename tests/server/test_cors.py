"""Pages of other servers: none reads an answer but those that are listed (S31)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

from tests.server.served import Frames, Served, served

PAGE = "https://console.example"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


@pytest.fixture
async def listing() -> AsyncIterator[Served]:
    """A server that lists a page."""
    async with served(origins=(PAGE,)) as server:
        yield server


def allowed(answer: httpx2.Response) -> set[str]:
    """The headers by which pages are let in."""
    return {name for name in answer.headers if name.startswith("access-control-")}


@pytest.mark.parametrize("origin", [PAGE, "null", "http://localhost", "*"])
async def test_without_a_list_no_page_is_let_in(hello: Served, origin: str) -> None:
    answers = [
        await hello.call("GET", "/organism", headers={"Origin": origin}),
        await hello.call("OPTIONS", "/inject", headers={"Origin": origin, **ASKS}),
    ]
    assert [answer.status_code for answer in answers] == [200, 405]
    assert [allowed(answer) for answer in answers] == [set(), set()]


async def test_a_listed_page_reads_answers_and_errors_alike(listing: Served) -> None:
    for path, status in (("/organism", 200), ("/nowhere", 404)):
        answer = await listing.call("GET", path, headers={"Origin": PAGE})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
        assert "origin" in answer.headers["vary"]
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["https://evil.example", f"{PAGE}.evil.example", "http://console.example", "null", ""]
)
async def test_any_other_page_is_not_let_in_by_the_list(listing: Served, origin: str) -> None:
    answer = await listing.call("GET", "/organism", headers={"Origin": origin})
    assert allowed(answer) == set()
    asked = await listing.call("OPTIONS", "/inject", headers={"Origin": origin, **ASKS})
    assert (asked.status_code, allowed(asked)) == (405, set())


async def test_a_browser_that_asks_first_is_told_without_a_token(listing: Served) -> None:
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.options(f"{listing.url}/api/v1/inject", headers={"Origin": PAGE, **ASKS})
    assert answer.status_code == 204
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert answer.headers["access-control-allow-origin"] == PAGE


async def test_a_listed_page_may_open_the_socket_and_no_other_may(listing: Served) -> None:
    async with listing.socket(headers={**listing.bearer, "Origin": PAGE}) as socket:
        await Frames(socket).until("connected")
    with pytest.raises(InvalidStatus):
        async with listing.socket(headers={**listing.bearer, "Origin": "https://evil.example"}):
            pass
