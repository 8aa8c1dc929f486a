"""Attempts in the log: each says when it ended, how long it took and where it failed; a step says what it waits for."""

from __future__ import annotations

import pytest

from organism.events.vocabulary import (
    MessageFailed,
    MessageHandled,
    MessageRetried,
    MessageStarted,
    OrganismReloaded,
    OrganismStarted,
    StepRecorded,
    StepResolved,
    StepStarted,
)
from organism.model.commands import KillThread, ResolveIndeterminate
from organism.testing import Running
from tests.flows.stage import at_gate, inject_and_crash_at, open_gate
from tests.flows.world import MakeWorld

FLAKY = """
async def flaky(payload: Ask, metadata: HandlerMetadata):
    if metadata.attempt <= int(payload.text):
        return fail(metadata.attempt)
    await gate("flaky")
    return HandlerResponse.respond(Told("at last"))

def fail(attempt):
    raise ValueError(f"not in attempt {attempt}")
"""


async def attempts(o: Running) -> list[tuple[int, MessageRetried | MessageFailed | MessageHandled]]:
    """The ends of attempts, each with the time since that attempt began."""
    begun, ends = dict[tuple[str, int], int](), []
    for record in await o.records():
        event = record.event
        if isinstance(event, MessageStarted):
            begun[event.message, event.attempt] = record.at
        elif isinstance(event, MessageRetried | MessageFailed | MessageHandled) and event.attempt:
            ends.append((record.at - begun[event.message, event.attempt], event))
    return ends


@pytest.mark.parametrize("failures", [2, 3])
async def test_every_end_of_an_attempt_says_its_number_how_long_it_took_and_where_it_failed(
    world: MakeWorld, failures: int
) -> None:
    async with world(FLAKY, {"flaky": {}}).running() as o:
        open_gate(o, "flaky")
        await o.inject("flaky", {"text": str(failures)}, wait=True)
        took, ends = zip(*await attempts(o), strict=True)
    assert [end.duration for end in ends] == list(took)
    assert [(end.event_type, end.attempt) for end in ends] == [
        ("message_retried", 1),
        ("message_retried", 2),
        ("message_handled" if failures == 2 else "message_failed", 3),
    ]
    lines = [end.line for end in ends if isinstance(end, MessageRetried | MessageFailed)]
    assert {line and (line.file, line.function, line.code.partition("(")[0]) for line in lines} == {
        ("actors/play.py", "fail", "raise ValueError")
    }


async def test_a_kill_ends_the_attempt_that_runs_and_none_of_what_has_not_begun(world: MakeWorld) -> None:
    async with world(FLAKY, {"flaky": {"max_concurrent": 1}}).running() as o:
        running = await o.inject("flaky", {"text": "0"})
        await at_gate(o, "flaky")
        await o.inject("flaky", {"text": "0"}, thread_id=running.thread_id)
        await o.do(KillThread(thread_id=running.thread_id))
        ends = [each.event for each in await o.records(MessageHandled)]
    assert [(end.message, end.outcome, end.attempt) for end in ends] == [(running.message_id, "killed", 1)]


async def test_what_was_delivered_or_answered_an_ask_is_the_end_of_no_attempt(world: MakeWorld) -> None:
    source = """
    async def asking(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(await metadata.ask("told", payload))

    async def told(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(Told(payload.text))
    """
    async with world(source, {"asking": {"peers": ["told"]}, "told": {}}).running() as o:
        await o.inject("asking", {"text": "x"}, wait=True)
        ends = [(each.event.outcome, each.event.attempt) for each in await o.records(MessageHandled)]
    assert sorted(ends) == [("answered", 0), ("delivered", 0), ("done", 1), ("done", 1)]


async def test_a_step_says_what_it_waits_for_when_it_begins_and_when_it_ends(world: MakeWorld) -> None:
    source = """
    async def asking(payload: Ask, metadata: HandlerMetadata):
        await metadata.ask("told", payload)
        for kind in ("pure", "idempotent", "unsafe"):
            await metadata.effect(f"do-{kind}", work, kind=kind)
        await metadata.now()
        return HandlerResponse.respond(Told("done"))

    async def told(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(Told(payload.text))

    async def work(key):
        return key
    """
    async with world(source, {"asking": {"peers": ["told"]}, "told": {}}).running() as o:
        await o.inject("asking", {"text": "x"}, wait=True)
        begun = [record.event for record in await o.records(StepStarted)]
        ended = [record.event for record in await o.records(StepRecorded)]
    assert [(step.kind, step.to, step.effect, step.key) for step in begun] == [
        ("ask", "told", "", ""),
        ("effect", "", "idempotent", "do-idempotent"),
        ("effect", "", "unsafe", "do-unsafe"),
    ]
    assert [(step.kind, step.to, step.effect, step.key) for step in ended] == [
        ("ask", "told", "", ""),
        ("effect", "", "pure", "do-pure"),
        ("effect", "", "idempotent", "do-idempotent"),
        ("effect", "", "unsafe", "do-unsafe"),
        ("now", "", "", ""),
    ]


async def test_an_operators_word_names_the_effect(world: MakeWorld) -> None:
    source = """
    async def payer(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(Told(await metadata.effect("pay", pay, kind="unsafe")))

    async def pay(key):
        await gate("pay")
    """
    made = world(source, {"payer": {}})
    injected = await inject_and_crash_at(made, "pay", "payer")
    async with made.running() as o:
        await o.do(ResolveIndeterminate(id=f"{injected.message_id}:1", outcome="done", result="paid"))
        resolved = [record.event for record in await o.records(StepResolved)]
    assert [each.key for each in resolved] == ["pay"]


async def test_the_log_knows_a_listeners_group_and_its_tools(world: MakeWorld) -> None:
    made = world(FLAKY, {"flaky": {"group": "Front office", "tools": ["calculator"]}})
    async with made.running() as o:
        (started,) = await o.records(OrganismStarted)
        made.write(FLAKY, {"flaky": {"group": "Back office"}})
        await o.organism.reload()
        (reloaded,) = await o.records(OrganismReloaded)
    declared = [
        next(each for each in listeners if each.name == "flaky")
        for listeners in (started.event.listeners, reloaded.event.listeners)
    ]
    assert [(each.group, each.tools) for each in declared] == [("Front office", ("calculator",)), ("Back office", ())]
