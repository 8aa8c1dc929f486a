"""Threads in the orders that their list takes: the largest first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.flows.spender import SOURCE, says, scripted
from tests.flows.world import MakeWorld
from tests.server.served import Served, served

TOKENS = (2_000_000, 12_000_000, 20, 19, 150_000)
"""What the threads use: as text their costs sort in another order."""


def lasted(row: dict[str, Any]) -> timedelta:
    end = row["ended_at"] or row["last_activity"]
    return datetime.fromisoformat(end) - datetime.fromisoformat(row["created_at"])


ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "activity": lambda row: row["position"],
    "created": lambda row: row["created_at"],
    "duration": lasted,
    "cost": lambda row: Decimal(row["cost_usd"]),
}


async def pages(server: Served, query: str) -> list[dict[str, Any]]:
    """All rows of the list, in pages of two."""
    rows: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await server.get(f"/threads?limit=2&{query}" + (f"&cursor={cursor}" if cursor else ""))
        rows += page["threads"]
        cursor = page["next"]
    return rows


@pytest.mark.parametrize("order", ORDERS)
async def test_threads_come_in_the_order_that_is_asked_for_now_and_then(world: MakeWorld, order: str) -> None:
    listeners = {"ada": {"handler": "think", "agent": True, "model": "m"}, "idle": {"handler": "think"}}
    answers = [says("Here.", tokens, 5, times=1) for tokens in TOKENS]
    made = scripted(world, *answers, listeners=listeners, source=SOURCE)
    async with served(made.config) as server:
        sent = [await server.inject("ada", {"text": "Say it."}) for _ in TOKENS]
        then = server.log.head
        await server.call("POST", "/agents/ada/pause")
        await server.inject("ada", {"text": "Say it."}, thread_id=sent[1]["thread_id"], wait=None)
        await server.inject("ada", {"text": "Say it."}, wait=None)
        rows: list[dict[str, Any]] = []
        for query, count in ((f"order={order}&at={then}", len(TOKENS)), (f"order={order}", len(TOKENS) + 1)):
            rows = await pages(server, query)
            assert len({row["id"] for row in rows}) == count
            sizes = [ORDERS[order](row) for row in rows]
            assert sizes == sorted(sizes, reverse=True)
            assert len(set(sizes)) > 2
