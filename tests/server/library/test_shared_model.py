"""The built-in model works for one at a time: tenants come in turns, and what is asked by who has left is dropped."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from organism.model.ids import DEFAULT_TENANT
from tests.flows.world import World
from tests.server.served import Served, served
from tests.server.tenanted import bearer, write_tokens

BURST = 10
LONG = "Das Brandenburger Tor steht am Pariser Platz. " * 20


async def embed(server: Served, tenant: str, *texts: str) -> Any:
    body = {"model": "builtin", "input": list(texts)}
    return await server.call("POST", "//v1/embeddings", json=body, headers=bearer(tenant, "any"))


async def test_a_burst_of_one_tenant_lets_others_ask_and_is_bounded(tmp_path: Path) -> None:
    made = World(tmp_path, "", {})
    write_tokens(tmp_path, {tenant: {"any": ["admin"]} for tenant in (DEFAULT_TENANT, "acme")})
    async with served(made.config) as server:
        burst = [asyncio.ensure_future(embed(server, "acme", *[LONG] * 16)) for _ in range(BURST)]
        largest = [asyncio.ensure_future(embed(server, "acme", *[(LONG * 9)[:8000]] * 256)) for _ in range(2)]
        (refused,), _ = await asyncio.wait(largest, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result().status_code == 429
        assert refused.result().json()["error"]["code"] == "rate_limit_exceeded"
        assert int(refused.result().headers["retry-after"]) > 0
        assert (await embed(server, DEFAULT_TENANT, "Wo steht das Tor?")).status_code == 200
        assert not any(each.done() for each in burst)
        for each in (*burst, *largest):
            each.cancel()
        await asyncio.wait([*burst, *largest])
        assert (await embed(server, "acme", "Wo steht das Tor?")).status_code == 200
