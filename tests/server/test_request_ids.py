"""What a request is called (SPASS-Request-Id): as its caller calls it, at /v1 and /a1; else the server names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.served import TOKEN, Served, served
from tests.server.tenanted import bearer, hello_with, token

PATHS = ("//v1/models", "//v1/tools", "//v1/tenant/config", "//v1/billing/usage", "//a1/agents")
DAN = {"SPASS-User-Id": "dan"}


@pytest.mark.parametrize("path", PATHS)
async def test_a_request_is_called_as_its_caller_calls_it_or_else_by_the_server(shared: Served, path: str) -> None:
    for header in ("SPASS-Request-Id", "X-Request-Id"):
        answer = await shared.call("GET", path, headers={**DAN, header: "mine-1"})
        assert answer.status_code == 200
        assert (answer.headers["spass-request-id"], answer.headers["x-request-id"]) == ("mine-1", "mine-1")
    both = await shared.call("GET", path, headers={**DAN, "SPASS-Request-Id": "a", "X-Request-Id": "b"})
    assert both.headers["spass-request-id"] == "a"
    named = [(await shared.call("GET", path, headers=DAN)).headers["spass-request-id"] for _ in range(2)]
    assert all(each.startswith("req-") for each in named)
    assert named[0] != named[1]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("wrong", ["", "a b", "x" * 256, "\xe9", TOKEN])
async def test_what_is_no_id_is_refused_and_never_reported(shared: Served, path: str, wrong: str) -> None:
    answer = await shared.call("GET", path, headers={**DAN, "SPASS-Request-Id": wrong.encode("latin-1")})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "headers.spass-request-id")
    assert answer.headers["spass-request-id"].startswith("req-")


async def test_a_refusal_names_the_request_too(shared: Served) -> None:
    headers = {"Authorization": "Bearer org_x_" + "0" * 64, "SPASS-Request-Id": "mine-1"}
    refused = await shared.client.get("/v1/models", headers=headers)
    assert (refused.status_code, refused.headers["spass-request-id"]) == (401, "mine-1")
    assert refused.json()["error"]["request_id"] == "mine-1"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("glue", ["", "x"])
async def test_no_secret_is_reported_as_an_id_even_by_a_refusal(tmp_path: Path, path: str, glue: str) -> None:
    """The caller's own token, which may not do this, and one of another caller, which was never used."""
    tokens = {"default": {"caller": ["read"], "unused": ["admin"]}}
    async with served(hello_with(tmp_path, tokens)) as server:
        for headers, secret in [
            (bearer("default", "caller"), token("default", "caller")),
            (bearer("default", "unknown"), token("default", "unused")),
        ]:
            named = {"SPASS-Request-Id": f"{glue}{secret}{glue}"}
            answer = await server.call("GET", path, headers={**headers, **named})
            assert (answer.status_code, secret in answer.text + str(answer.headers)) == (400, False)
