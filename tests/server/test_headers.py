"""What every answer says of itself, and what none says of the server (S31)."""

from __future__ import annotations

import re
from itertools import chain

import httpx2
import pytest

from organism.bootstrap import VERSION
from organism.server import headers
from organism.server.app import ROUTES
from organism.server.rights import OPEN
from tests.server.served import Served

OPEN_PATHS = sorted({route.address for route in ROUTES if route.right is OPEN})
STRICT = {name.decode(): value.decode() for name, value in headers.STRICT}


@pytest.mark.parametrize(
    "path", ["/", *OPEN_PATHS, "/nowhere", "/ws", "/api/v1/organism", "/api/v1/inject", "/metrics"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "PATCH"])
async def test_every_answer_is_strict_and_tells_neither_server_nor_version(
    hello: Served, method: str, path: str
) -> None:
    async with httpx2.AsyncClient(trust_env=False) as stranger:
        answer = await stranger.request(method, hello.url + path)
    assert {name: answer.headers.get(name) for name in STRICT} == STRICT
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert "x-request-id" in answer.headers
    assert not {"server", "x-powered-by", "via"} & set(answer.headers)
    assert not any(name.startswith("access-control-") for name in answer.headers)
    told = "".join(chain.from_iterable(answer.headers.items())) + answer.text
    assert not re.search(rf'"version"\s*:\s*"{re.escape(VERSION)}"|organism[/ ]{re.escape(VERSION)}', told)
    assert "uvicorn" not in told.lower()


def test_no_policy_lets_anything_inline_or_from_elsewhere_in() -> None:
    for policy in (dict(headers.API)[b"content-security-policy"], dict(headers.PAGE)[b"content-security-policy"]):
        directives = dict(part.strip().split(b" ", 1) for part in policy.split(b";"))
        assert directives[b"default-src"] == b"'none'"
        assert directives[b"frame-ancestors"] == b"'none'"
        assert set(directives.values()) <= {b"'none'", b"'self'"}
