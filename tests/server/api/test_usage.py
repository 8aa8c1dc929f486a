"""What models cost, over the wire: routes, the past, frames, metrics, rows of threads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from organism.bootstrap import Parts
from organism.model.times import iso
from organism.pump.spending import DAY_US
from organism.sqlite.driver import Pysqlite
from tests.flows.spender import SOURCE, says, scripted, tenants
from tests.flows.world import MakeWorld, World
from tests.server.api.test_metrics import scraped
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, write_tokens

USED = {
    "calls": 1, "failed_calls": 0, "input_tokens": 20, "output_tokens": 5, "tokens": 25, "cost_usd": "0.00003",
    "cost_eur": "0.000027",
}  # fmt: skip
NOTHING = {
    "calls": 0, "failed_calls": 0, "input_tokens": 0, "output_tokens": 0, "tokens": 0, "cost_usd": "0",
    "cost_eur": "0", "model_seconds": 0.0, "last_called": None, "models": [],
}  # fmt: skip
PATHS = ("/usage", "/usage/agents/ada", "/usage/agents/idle")


@pytest.fixture
def made(world: MakeWorld) -> World:
    """One agent that calls, one that does not; the second call fails."""
    listeners = {"ada": {"handler": "think", "agent": True, "model": "m"}, "idle": {"handler": "think"}}
    answers = (says("Here.", 20, 5, times=1), {"fault": {"kind": "rejected", "message": "No."}})
    return scripted(world, *answers, listeners=listeners, source=SOURCE, fx={"eur_per_usd": 0.9})


@pytest.fixture(params=["memory", "disk"])
async def server(request: pytest.FixtureRequest, made: World) -> AsyncIterator[Served]:
    """It, behind a server."""
    async with served(made.config, made.data if request.param == "disk" else None) as running:
        yield running


async def asked(server: Served) -> str:
    """One call; gives its thread."""
    found: str = (await server.inject("ada", {"text": "Say it."}))["thread_id"]
    return found


def without_time(account: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in account.items() if name not in {"model_seconds", "last_called", "models"}}


async def test_before_the_first_call_there_is_nothing(server: Served) -> None:
    assert await server.get("/usage") == {"total": NOTHING, "agents": [], "days": [], "budgets": []}
    assert await server.get("/usage/agents/ada") == {"agent": "ada", **NOTHING}


async def test_a_call_is_in_every_account(server: Served) -> None:
    thread = await asked(server)
    row = await server.get(f"/threads/{thread}")
    assert (row["tokens"], row["cost_usd"]) == (25, "0.00003")
    answer = await server.get("/usage")
    assert without_time(answer["total"]) == USED
    assert [(each["agent"], without_time(each)) for each in answer["agents"]] == [("ada", {"agent": "ada", **USED})]
    assert [without_time(each) for each in answer["days"]] == [{"day": answer["total"]["last_called"][:10], **USED}]
    assert without_time(await server.get(f"/usage/threads/{thread}")) == {"thread_id": thread, **USED}
    assert without_time(await server.get("/usage/agents/ada")) == {"agent": "ada", **USED}
    assert answer["total"]["models"] == [
        {"model": "m", "served_by": "scripted", "calls": 1, "input_tokens": 20, "output_tokens": 5, "tokens": 25,
         "cost_usd": "0.00003"},
    ]  # fmt: skip


async def test_the_accounts_are_shown_as_they_stood(server: Served) -> None:
    kept, thread = {}, ""
    for _ in range(3):
        kept[server.log.head] = [await server.get(path) for path in PATHS]
        thread = await asked(server)
    for position, then in kept.items():
        assert [await server.get(f"{path}?at={position}") for path in PATHS] == then
    head = [await server.get(f"{path}?at={server.log.head}") for path in PATHS]
    assert head == [await server.get(path) for path in PATHS]
    gone = await server.call("GET", f"/usage/threads/{thread}?at={min(kept)}")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")


async def test_a_call_is_a_frame(server: Served) -> None:
    async with server.socket("?events=usage") as socket:
        frames = Frames(socket)
        await frames.until("connected")
        thread = await asked(server)
        await asked(server)
        good, bad = await frames.next(), await frames.next()
    varies = {"position", "message_id", "duration_ms", "timestamp"}
    assert {name: good[name] for name in good if name not in varies} == {
        "event": "usage", "thread_id": thread, "agent": "ada", "step": 1, "model": "m", "served_by": "scripted",
        "input_tokens": 20, "output_tokens": 5, "cost_usd": "0.00003", "cost_source": "price", "attempts": 1,
        "error": None,
    }  # fmt: skip
    assert (bad["event"], bad["error"], bad["cost_source"]) == ("usage", "upstream_refused", "zero")
    total = (await server.get("/usage"))["total"]
    assert (total["calls"], total["failed_calls"], total["cost_usd"]) == (2, 1, "0.00003")


@pytest.fixture
def bounded(world: MakeWorld) -> World:
    """An agent with a budget of the day, beside one without."""
    ada = {"handler": "think", "agent": True, "model": "m", "budget": {"day": {"calls": 5, "usd": 0.5}}}
    return scripted(world, says("Here.", 20, 5), listeners={"ada": ada, "idle": {"handler": "think"}}, source=SOURCE)


async def test_budgets_of_the_day_say_how_near_they_are(bounded: World) -> None:
    async with served(bounded.config) as server:
        bounds = {"budget": {"day": {"tokens": 1000, "seconds": 60}}}
        assert (await server.call("PUT", "//v1/tenant/config", json=bounds)).status_code == 200
        before = server.log.head
        await asked(server)
        budgets = (await server.get("/usage"))["budgets"]
        shown = [(each["of"], each["name"], each["unit"], each["limit"], each["used"]) for each in budgets]
        seconds = shown[1][-1]
        assert shown == [
            ("tenant", "default", "tokens", 1000, 25),
            ("tenant", "default", "seconds", 60, seconds),
            ("agent", "ada", "usd", 0.5, 0.00003),
            ("agent", "ada", "calls", 5, 1),
        ]
        assert 0 < seconds < 60
        assert (await server.get(f"/usage?at={before}"))["budgets"] == []
        (ends,) = {each["resets_at"] for each in budgets}
        assert ends == iso((server.organism.tenants["default"].clock.now_us() // DAY_US + 1) * DAY_US)


async def test_a_budget_counts_anew_on_the_next_day_and_its_answer_is_not_the_one_before(bounded: World) -> None:
    now_us = [10 * DAY_US]
    async with served(bounded.config, parts=Parts(wall_ns=lambda: now_us[0] * 1000)) as server:
        await asked(server)
        answer = await server.call("GET", "/usage")
        assert [each["used"] for each in answer.json()["budgets"]] == [0.00003, 1]
        known = {"If-None-Match": answer.headers["etag"]}
        assert (await server.call("GET", "/usage", headers=known)).status_code == 304
        now_us[0] += DAY_US
        later = await server.call("GET", "/usage", headers=known)
        assert [each["used"] for each in later.json()["budgets"]] == [0, 0]


async def test_budgets_are_the_tenants_own(bounded: World) -> None:
    tenants(bounded)
    write_tokens(bounded.folder, {"acme": {"clerk": ["admin"], "narrow": ["read:agent:ada"]}})
    async with served(bounded.config, bounded.data) as server:
        await asked(server)
        budgets = (await server.call("GET", "/usage", headers=bearer("acme", "clerk"))).json()["budgets"]
        assert [(each["name"], each["used"]) for each in budgets] == [("ada", 0), ("ada", 0)]
        assert (await server.call("GET", "/usage", headers=bearer("acme", "narrow"))).status_code == 403


async def test_without_a_rate_nothing_is_reported_in_euros(world: MakeWorld) -> None:
    async with served(scripted(world, says("Here.", 20, 5)).config) as server:
        assert (await server.get("/usage"))["total"]["cost_eur"] is None


async def test_monitoring_counts_them_by_model(server: Served) -> None:
    assert (await scraped(server))["organism_model_calls_running"] == 0
    await asked(server)
    numbers = await scraped(server)
    assert numbers["organism_model_calls_total m scripted"] == 1
    assert (
        numbers["organism_model_tokens_total m prompt scripted"],
        numbers["organism_model_tokens_total m answer scripted"],
    ) == (20, 5)
    assert numbers["organism_model_cost_usd_total m scripted"] == 0.00003


async def test_a_tenant_sees_its_own_spending_alone(made: World) -> None:
    tenants(made)
    write_tokens(made.folder, {"acme": {"clerk": ["admin"]}})
    async with served(made.config, made.data) as server:
        thread = await asked(server)
        who = bearer("acme", "clerk")
        assert (await server.call("GET", "/usage", headers=who)).json()["total"] == NOTHING
        assert (await server.call("GET", f"/usage/threads/{thread}", headers=who)).status_code == 404


def forget_rows(data: Path) -> None:
    """The next start makes every row again."""
    for file in data.rglob("log.sqlite"):
        with closing(Pysqlite().connect(str(file))) as database:
            database.execute("DELETE FROM models")
            database.execute("UPDATE rows_model_calls SET f_usd = 1")


async def test_spending_outlives_its_rows(made: World) -> None:
    async with served(made.config, made.data) as server:
        thread = await asked(server)
        paths = (*PATHS, f"/usage/threads/{thread}")
        before = [await server.get(path) for path in paths]
    forget_rows(made.data)
    async with served(made.config, made.data) as server:
        assert [await server.get(path) for path in paths] == before
