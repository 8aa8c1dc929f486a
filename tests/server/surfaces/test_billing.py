"""What calls cost: reported with each answer, and by hour and day; the parts always add up to the sums."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

import httpx2
import orjson
import pytest

from organism.bootstrap import Parts
from organism.events.record import Record
from organism.events.vocabulary import ModelCalled
from organism.log.log import EventFilter
from tests.flows.spender import says, scripted
from tests.flows.world import MakeWorld, World
from tests.server.served import Served, served
from tests.server.tenanted import bearer, write_tokens

SOURCE = """
from organism import CompleteError

async def think(payload: Ask, metadata: HandlerMetadata):
    calls, *inner = payload.text.split(" ", 1)
    for number in range(int(calls)):
        try:
            await metadata.complete([{"role": "user", "content": f"{number}"}], max_tokens=100)
        except CompleteError:
            pass
    for branch in inner[0].split("|") if inner else ():
        await metadata.ask("inner", Ask(branch))
    return HandlerResponse.respond(Told("thought"))
"""
THINKER = {"handler": "think", "agent": True, "model": "m", "peers": ["inner"], "tools": ["inner"]}
LISTENERS: Mapping[str, dict[str, Any]] = {
    "outer": THINKER,
    "inner": {"handler": "think", "model": "m"},
    "talker": {"handler": None, "agent": True, "model": "m", "prompt": "Be brief."},
}
FX = {"eur_per_usd": 0.9}


def made_of(world: MakeWorld, *answers: Mapping[str, Any], **top: Any) -> World:
    return scripted(world, *answers, listeners=dict(LISTENERS), source=SOURCE, **{"fx": FX, **top})


async def invoke(server: Served, text: str, agent: str = "outer", **more: Any) -> httpx2.Response:
    body = {"agent": agent, "data": {"inputs": {"payload": {"text": text}}}}
    return await server.call("POST", "/invoke", json=body, **more)


def cost_headers(answer: httpx2.Response) -> tuple[str | None, ...]:
    """Euros, dollars, source and number of calls, as the headers say them."""
    return tuple(answer.headers.get(f"spass-cost-{name}") for name in ("eur", "usd", "source", "sub-calls"))


async def called(server: Served, tenant: str = "default") -> list[Record[ModelCalled]]:
    """The leaves: every model call of the tenant's log."""
    log = server.organism.tenants[tenant].log
    records: list[Record[Any]] = await log.read(wanted=EventFilter(types=(ModelCalled,)), limit=100_000)
    return records


async def billed(server: Served, query: str = "", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await server.get(f"//v1/billing/usage{query}", **more)
    return found


async def test_an_answer_tells_what_its_whole_tree_cost_rounded_up_once(world: MakeWorld) -> None:
    async with served(made_of(world, says("Here.", 3000, 1000)).config) as server:
        first = await invoke(server, "1 2|1 1")
        assert first.status_code == 200
        assert cost_headers(first) == ("0.03", "0.03", "price", "5")  # five of 0.005: 0.025 USD, 0.0225 EUR
        assert cost_headers(await invoke(server, "0")) == ("0.00", "0.00", "zero", "0")
        assert cost_headers(await invoke(server, "1")) == ("0.01", "0.01", "price", "1")


async def test_the_providers_own_figure_is_reported_as_such_and_without_a_rate_no_euros_are(world: MakeWorld) -> None:
    upstream = {"text": "Here.", "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": 0.25}}
    async with served(made_of(world, upstream, fx={}).config) as server:
        assert cost_headers(await invoke(server, "2")) == (None, "0.50", "upstream", "2")


async def test_a_tools_answer_and_a_refusal_tell_their_cost_too(world: MakeWorld) -> None:
    fault = {"fault": {"kind": "rejected", "message": "No."}}
    async with served(made_of(world, says("Here.", 3000, 1000, times=2), fault).config) as server:
        execute = {"name": "inner", "arguments": {"text": "2"}}
        executed = await server.call("POST", "//v1/tools/execute", json=execute)
        assert (executed.json(), cost_headers(executed)) == (
            {"result": {"text": "thought"}},
            ("0.01", "0.01", "price", "2"),
        )
        refused = await server.call(
            "POST", "/invoke", json={"agent": "talker", "data": {"inputs": {"message": "Hello!"}}}
        )
        assert (refused.status_code, cost_headers(refused)) == (400, ("0.00", "0.00", "zero", "1"))


async def test_a_stream_of_events_ends_with_its_cost(world: MakeWorld) -> None:
    async with served(made_of(world, says("Here.", 3000, 1000)).config) as server:
        talk = {"agent": "talker", "data": {"inputs": {"message": "Hello!"}}}
        answer = await server.call("POST", "/invoke", json=talk, headers={"Accept": "text/event-stream"})
        *_, last_entry, cost = answer.text.removesuffix("\n\n").split("\n\n")
        assert orjson.loads(last_entry.removeprefix("data: "))["type"] == "done"
        kind, _, data = cost.partition("\n")
        assert kind == "event: spass.cost"
        assert orjson.loads(data.removeprefix("data: ")) == {
            "eur": "0.01", "usd": "0.01", "source": "price", "sub_calls": "1",
        }  # fmt: skip
        of_vercel = await server.call("POST", "/invoke", json=talk, headers={"x-ag-messages-format": "vercel"})
        assert "spass.cost" not in of_vercel.text  # its clients refuse events that they do not know


async def test_a_turn_of_a_chat_tells_its_cost_as_well(world: MakeWorld) -> None:
    async with served(made_of(world, says("Here.", 3000, 1000)).config) as server:
        path, user = "//a1/agents/talker/chat", {"SPASS-User-Id": "ann"}
        whole = await server.call("POST", path, json={"message": "Hello!"}, headers=user)
        assert cost_headers(whole) == ("0.01", "0.01", "price", "1")
        stream = await server.call("POST", path, json={"message": "Hello!", "stream": True}, headers=user)
        assert stream.text.count("event: spass.cost\n") == 1


async def test_calls_made_inside_a_call_are_in_its_cost_and_those_of_others_are_not(world: MakeWorld) -> None:
    made = made_of(world, says("Here.", 3000, 1000))
    write_tokens(made.folder, {"default": {"one": ["admin"], "two": ["admin"]}})
    async with served(made.config) as server:
        outer = {"SPASS-Request-Id": "req-outer", "SPASS-Parent-Request-Id": "req-none", **bearer("default", "one")}
        path, body = "//v1/tools/execute", {"name": "inner", "arguments": {"text": "1"}}

        async def within(parent: str, own: str, name: str = "one") -> None:
            ids = {"SPASS-Request-Id": own, "SPASS-Parent-Request-Id": parent, **bearer("default", name)}
            assert (await server.call("POST", path, json=body, headers=ids)).status_code == 200

        await within("req-outer", "req-before")  # of an earlier request that was called the same
        first = await server.call("POST", path, json=body, headers={**outer, "Idempotency-Key": "once"})
        assert cost_headers(first)[3] == "1"
        await within("req-outer", "req-inner")
        await within("req-inner", "req-inmost")
        await within("req-inmost", "req-inner")  # a circle
        await within("req-outer", "req-foreign", "two")
        again = await server.call("POST", path, json=body, headers={**outer, "Idempotency-Key": "once"})
        assert cost_headers(again) == ("0.02", "0.02", "price", "4")


async def test_costs_from_outside_are_dropped(world: MakeWorld) -> None:
    async with served(made_of(world, says("Here.", 3000, 1000)).config) as server:
        claims = {"SPASS-Cost-Usd": "99.00", "SPASS-Cost-Eur": "99.00", "SPASS-Cost-Sub-Calls": "7"}
        assert cost_headers(await invoke(server, "1", headers=claims)) == ("0.01", "0.01", "price", "1")


# ── by hour and by day ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_calls_are_billed_in_their_hour_and_day_once_whatever_dies(world: MakeWorld) -> None:
    made = made_of(world, says("Here.", 3000, 1000))
    clock = [1_768_176_000_000_000_000]
    for _ in range(3):
        parts = Parts(wall_ns=lambda: clock[0])
        async with served(made.config, made.data, parts=parts) as server:
            assert (await invoke(server, "2 1")).status_code == 200
            clock[0] += 13 * 3600 * 1_000_000_000
            await invoke(server, "1")
            await server.organism.tenants["default"].crash()
    async with served(made.config, made.data, parts=Parts(wall_ns=lambda: clock[0])) as server:
        leaves = await called(server)
        hours, days = await billed(server, "?granularity=hour"), await billed(server, "?granularity=day")
        assert len(leaves) == 12
        exact = sum(Decimal(each.event.cost_usd) for each in leaves)
        for found in (hours, days):
            assert sum(Decimal(each["cost_usd"]) for each in found["buckets"]) == exact
            assert (Decimal(found["total"]["cost_usd"]), found["total"]["calls"]) == (exact, 12)
        assert [each["start"] for each in days["buckets"]] == [
            "2026-01-12T00:00:00Z", "2026-01-13T00:00:00Z",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?granularity=week", "query.granularity"),
        ("?from=2026-01-01", "query.from"),
        ("?to=soon", "query.to"),
        ("?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "query.from"),
        ("?from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "query.from"),
        ("?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:01Z", "query.from"),
        ("?from=1960-01-01T00:00:00Z&to=1960-01-02T00:00:00Z", "query.from"),
        ("?from=9999-12-31T00:00:00Z&to=9999-12-31T23:59:59Z", "query.from"),
    ],
)
async def test_a_span_that_is_none_is_refused_with_its_place(shared: Served, query: str, param: str) -> None:
    answer = await shared.call("GET", f"//v1/billing/usage{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_field")
    assert answer.json()["error"]["param"] == param


async def test_a_span_of_31_days_is_shown_in_whole_hours(shared: Served) -> None:
    query = "?from=2026-01-01T10:30:00Z&to=2026-02-01T10:30:00Z"
    found = await billed(shared, query + "&granularity=hour")
    assert (found["from"], found["to"]) == ("2026-01-01T10:00:00Z", "2026-02-01T11:00:00Z")
    found = await billed(shared, query)
    assert (found["from"], found["to"]) == ("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z")


def rounded_up(amount: Decimal) -> str:
    return str(amount.quantize(Decimal("0.01"), rounding=ROUND_CEILING))


def tree(chance: random.Random, depth: int = 2) -> str:
    """What to think, and what to have thought in turn."""
    calls, branches = chance.randrange(4), chance.randrange(3) if depth else 0
    return f"{calls} {'|'.join(str(chance.randrange(3)) for _ in range(branches))}" if branches else f"{calls}"


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_is_called_the_leaves_sum_to_the_headers_and_to_the_buckets(world: MakeWorld, seed: int) -> None:
    chance = random.Random(seed)
    costs = [str(Decimal(chance.randrange(10 ** chance.randrange(1, 14))) / 10**12) for _ in range(400)]
    usages = ({"input_tokens": 1, "output_tokens": 1, "cost_usd": float(cost)} for cost in costs)
    made = made_of(world, *({"text": "Here.", "usage": usage, "times": 1} for usage in usages))
    async with served(made.config, made.data) as server:
        answers = await asyncio.gather(*(invoke(server, tree(chance)) for _ in range(12)))
        leaves = await called(server)
        for answer in answers:
            thread = answer.json()["thread_id"]
            own = [Decimal(leaf.event.cost_usd) for leaf in leaves if leaf.thread == thread]
            usd = sum(own, Decimal(0))
            eur = usd * Decimal("0.9")
            assert cost_headers(answer)[:2] == (rounded_up(eur), rounded_up(usd))
            assert cost_headers(answer)[3] == str(len(own))
        for granularity in ("hour", "day"):
            found = await billed(server, f"?granularity={granularity}")
            buckets = [Decimal(bucket["cost_usd"]) for bucket in found["buckets"]]
            exact = sum((Decimal(leaf.event.cost_usd) for leaf in leaves), Decimal(0))
            assert sum(buckets, Decimal(0)) == Decimal(found["total"]["cost_usd"]) == exact
            assert found["total"]["calls"] == len(leaves)
