"""Metrics: what stands now, and what became of messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.flows.world import MakeWorld
from tests.server.served import PATIENCE_SECONDS, Served, served
from tests.server.tenanted import bearer, hello_with

Numbers = dict[str, float]


async def scraped(server: Served) -> Numbers:
    """Each number by its name and the values of its labels, but for the tenant's."""
    answer = await server.call("GET", "//metrics")
    assert answer.status_code == 200
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    return {
        " ".join((sample.name, *(value for name, value in sample.labels.items() if name != "tenant"))): sample.value
        for sample in samples
    }


async def scraped_when(server: Served, holds: Callable[[Numbers], bool]) -> Numbers:
    """The numbers once it holds: the counting follows the log at its own pace."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds(numbers := await scraped(server)):
            pass
    return numbers


async def test_what_stands_now_is_shown(hello: Served) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    await hello.inject(wait=None)
    async with hello.socket() as socket:
        await socket.recv()
        numbers = await scraped_when(hello, lambda seen: seen["organism_queue_depth shouter"] == 1)
    assert numbers["organism_log_position"] == (await hello.get("/organism"))["position"]
    assert numbers["organism_log_available"] == 1
    assert (numbers["organism_threads_active"], numbers["organism_messages_open"]) == (1, 1)
    assert (numbers["organism_queue_depth greeter"], numbers["organism_handlings_running"]) == (0, 0)
    assert numbers["organism_viewers"] == 1
    assert numbers["process_resident_memory_bytes"] > 0


async def test_what_became_of_messages_is_counted_along_the_log(world: MakeWorld) -> None:
    source = """
    async def picky(payload: Ask, metadata: HandlerMetadata):
        if payload.text:
            raise ValueError(payload.text)
        return HandlerResponse.respond(Told("thanks"))
    """
    made = world(source, {"picky": {}}, retry={"attempts": 2, "base_delay_s": 0, "max_delay_s": 0})
    async with served(made.config) as server:
        await scraped(server)
        await server.inject("picky", {"text": "bad"})
        await server.inject("picky", {"text": ""})
        numbers = await scraped_when(server, lambda seen: seen.get("organism_messages_total delivered") == 1)
    counted = {name: value for name, value in numbers.items() if name.startswith("organism_messages_total")}
    assert counted == {
        "organism_messages_total retried": 1,
        "organism_messages_total dead": 1,
        "organism_messages_total done": 1,
        "organism_messages_total delivered": 1,
    }
    assert numbers["organism_waiting_for_people dead_letters"] == 1


async def test_who_accepts_open_metrics_gets_them(hello: Served) -> None:
    plain = await hello.call("GET", "//metrics")
    newer = await hello.call("GET", "//metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert newer.headers["content-type"].startswith("application/openmetrics-text")
    assert newer.text.endswith("# EOF\n")


async def test_every_tenants_numbers_are_told_apart_to_the_operator_alone(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"acme": {"boss": ["admin"]}, "globex": {"boss": ["admin"]}})
    async with served(config) as server:
        await labelled(server)
        await server.call("POST", "/agents/shouter/pause", headers=bearer("acme", "boss"))
        body = {"to": "greeter", "payload": {"name": "Dan"}}
        await server.call("POST", "/inject", json={**body, "wait": 10}, headers=bearer("globex", "boss"))
        await server.call("POST", "/inject", json={**body, "wait": 0.01}, headers=bearer("acme", "boss"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while total(found := await labelled(server), "organism_messages_total") < 5:
                pass
        refused = await server.call("GET", "//metrics", headers=bearer("acme", "boss"))
    tenants = ("default", "acme", "globex")
    assert [found["organism_messages_open", tenant] for tenant in tenants] == [0, 1, 0]
    assert [found["organism_queue_depth", tenant] for tenant in tenants] == [0, 1, 0]
    assert [found["organism_messages_total", tenant] for tenant in tenants] == [0, 1, 4]
    assert (refused.status_code, "globex" in refused.text) == (403, False)


def total(found: Counter[tuple[str, str]], name: str) -> int:
    """The sum over all tenants."""
    return sum(number for (each, _), number in found.items() if each == name)


async def labelled(server: Served) -> Counter[tuple[str, str]]:
    """The sum of each name's numbers by tenant."""
    answer = await server.call("GET", "//metrics")
    found = Counter[tuple[str, str]]()
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[sample.name, sample.labels.get("tenant", "")] += int(sample.value)
    return found
