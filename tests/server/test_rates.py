"""How many requests a token may send (S15), and how large they may be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from organism.server.http.call import MAX_BODY_BYTES, MAX_GATEWAY_BODY_BYTES
from tests.server.served import Served, served
from tests.server.tenanted import Wanted, bearer, hello_with, write_tokens
from tests.server.test_connections import turn

WANTED: Wanted = {
    "acme": {
        "ci": ["read", "agents:chat"],
        "other": ["read", "agents:chat"],
        "third": ["read", "agents:chat"],
        "narrow": ["read"],
        "quick": {"scopes": ["read", "agents:chat"], "rate": 3},
        "boss": ["admin"],
        "slow-boss": {"scopes": ["admin"], "rate": 1},
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_clock(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server with these tokens, whose clock stands."""
    async with served(hello_with(tmp_path_factory.mktemp("rates"), WANTED)) as server:
        turn(server, 0)
        yield server


async def ask(server: Served, name: str, path: str = "//v1/models") -> httpx2.Response:
    return await server.call("GET", path, headers=bearer("acme", name))


def left(answer: httpx2.Response) -> tuple[str | None, ...]:
    """The limit, what remains of it, and the seconds until all of it is there again."""
    return tuple(answer.headers.get(f"ratelimit-{name}") for name in ("limit", "remaining", "reset"))


@pytest.mark.parametrize(
    ("name", "path", "at_once", "a_second"),
    [
        ("ci", "//v1/models", 30, 1),
        ("ci", "/organism", 100, 50),
        ("quick", "//v1/models", 90, 3),
        ("quick", "/organism", 6, 3),
        ("slow-boss", "//v1/models", 30, 1),
    ],
)
async def test_a_token_may_send_so_many_at_once_and_then_so_many_a_second(
    shared_clock: Served, name: str, path: str, at_once: int, a_second: int
) -> None:
    turn(shared_clock, 1000)
    answers = [await ask(shared_clock, name, path) for _ in range(at_once)]
    assert {answer.status_code for answer in answers} == {200}
    assert left(answers[0]) == (str(at_once), str(at_once - 1), "1")
    assert left(answers[-1])[1] == "0"
    refused = await ask(shared_clock, name, path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert refused.headers["retry-after"] == "1"
    assert left(refused)[:2] == (str(at_once), "0")
    turn(shared_clock, 1)
    statuses = [(await ask(shared_clock, name, path)).status_code for _ in range(a_second + 1)]
    assert statuses == [200] * a_second + [429]


async def test_an_admin_has_no_rate_and_is_told_none(shared_clock: Served) -> None:
    answers = [await ask(shared_clock, "boss") for _ in range(120)]
    assert {(answer.status_code, left(answer)) for answer in answers} == {(200, (None, None, None))}


async def test_one_tokens_requests_are_not_anothers_and_refused_ones_count(shared_clock: Served) -> None:
    turn(shared_clock, 1000)
    for _ in range(31):
        await ask(shared_clock, "other")
    assert (await ask(shared_clock, "third")).status_code == 200
    assert (await ask(shared_clock, "other", "/organism")).status_code == 200
    forbidden = [await ask(shared_clock, "narrow") for _ in range(31)]
    assert [answer.status_code for answer in forbidden] == [403] * 30 + [429]


async def test_an_edit_of_the_rate_acts_at_once(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {"acme": {"ci": {"scopes": ["read"], "rate": 1}}})) as server:
        turn(server, 0)
        assert left(await ask(server, "ci", "/organism"))[0] == "2"
        write_tokens(tmp_path, {"acme": {"ci": {"scopes": ["read"], "rate": 5}}})
        while left(await ask(server, "ci", "/organism"))[0] != "10":
            pass


@pytest.mark.parametrize(
    ("path", "most"), [("//v1/tools/execute", MAX_GATEWAY_BODY_BYTES), ("/inject", MAX_BODY_BYTES)]
)
async def test_a_body_may_be_so_large_and_no_larger(shared: Served, path: str, most: int) -> None:
    json = {"Content-Type": "application/json"}
    fits = await shared.call("POST", path, content=b"{" + b" " * (most - 2) + b"}", headers=json)
    assert (fits.status_code, fits.json()["error"]["code"]) == (400, "missing_field")
    larger = await shared.call("POST", path, content=b" " * (most + 1), headers=json)
    assert (larger.status_code, larger.json()["error"]["code"]) == (413, "body_too_large")
