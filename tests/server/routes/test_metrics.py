"""Metrics: what stands now, and what became of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from tests.flows.world import MakeWorld
from tests.server.served import PATIENCE_SECONDS, Served, served

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


async def test_what_stands_now_is_told(hello: Served) -> None:
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


async def test_metrics_stand_at_the_root_alone_and_need_a_token(hello: Served) -> None:
    assert (await hello.call("GET", "//metrics", headers={"Authorization": ""})).status_code == 401
    assert (await hello.call("GET", "/metrics")).status_code == 404
    assert (await hello.call("GET", "//metrics?x=1")).status_code == 400
