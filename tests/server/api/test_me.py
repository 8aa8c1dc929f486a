"""``GET /me``: who calls, and what the token grants."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from organism.server.http.call import USER
from tests.server.served import Served, served
from tests.server.tenanted import Wanted, bearer, hello_with

END = "9999-12-31T23:59:59-01:00"
"""Later than any time that can be shown."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server with another tenant's tokens: narrowed, limited, and without any scope that reads."""
    tokens: Wanted = {
        "acme": {
            "narrow": ["read", "inject:agent:greeter", "agents:chat"],
            "limited": {"scopes": ["inject"], "models": ["m2", "m1"], "expires": "2099-01-01T01:00:00+01:00"},
            "late": {"scopes": ["act-as:user:ann"], "expires": END},
        }
    }
    async with served(hello_with(tmp_path_factory.mktemp("me"), tokens)) as server:
        yield server


async def test_a_caller_is_told_what_its_token_grants(shared_callers: Served) -> None:
    assert await shared_callers.get("/me") == {
        "tenant": "default",
        "principal": "operator",
        "user": None,
        "scopes": ["admin"],
        "models": None,
        "expires_at": None,
    }
    assert await shared_callers.get("/me", headers={**bearer("acme", "narrow"), USER: "dan"}) == {
        "tenant": "acme",
        "principal": "narrow",
        "user": "dan",
        "scopes": ["agents:chat", "inject:agent:greeter", "read"],
        "models": None,
        "expires_at": None,
    }


async def test_any_valid_token_may_ask_and_an_end_that_no_time_shows_is_the_last_one(shared_callers: Served) -> None:
    limited = await shared_callers.get("/me", headers=bearer("acme", "limited"))
    assert (limited["models"], limited["expires_at"]) == (["m1", "m2"], "2099-01-01T00:00:00.000000Z")
    late = await shared_callers.get("/me", headers=bearer("acme", "late"))
    assert late["expires_at"] == "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/me", {"Authorization": ""}, 401, "missing_authorization"),
        ("/me", {"Authorization": "Bearer org_other"}, 401, "invalid_authorization"),
        ("/me?at=3", bearer("acme", "narrow"), 400, "unknown_field"),
        ("/me", {**bearer("acme", "late"), USER: "bob"}, 403, "forbidden"),
    ],
)
async def test_who_may_not_ask_is_refused(
    shared_callers: Served, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await shared_callers.call("GET", path, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_what_has_not_changed_is_not_sent_again(shared_callers: Served) -> None:
    tag = (await shared_callers.call("GET", "/me", headers=bearer("acme", "narrow"))).headers["etag"]
    known = await shared_callers.call("GET", "/me", headers={**bearer("acme", "narrow"), "If-None-Match": tag})
    other = await shared_callers.call("GET", "/me", headers={**bearer("acme", "late"), "If-None-Match": tag})
    assert (known.status_code, other.status_code) == (304, 200)
