"""``complete``: a model's call is a recorded step, made once; what a pause, a kill or a stop makes of it (G13)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from organism.events.vocabulary import (
    BudgetReserved,
    BudgetSettled,
    MessageHandled,
    MessageRetried,
    MessageStarted,
    ModelCalled,
    StepError,
    StepRecorded,
    StepStarted,
)
from organism.model.commands import (
    KillThread,
    PauseThread,
    ResumeThread,
)
from organism.model.completion import CompleteError, Completion
from organism.pump.decide.spend import ModelCall, Outcome
from organism.views.organism import AGENTS
from tests.flows.speaker import OnPart, Speaker
from tests.flows.stage import (
    TurnedTime,
    answers,
    code_of,
    folded_again,
    folded_live,
    open_gate,
    pairs,
    pause_of,
    play,
    stopping,
)
from tests.flows.world import MakeWorld

TALKER = """
from organism import CompleteError

async def talker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    try:
        said = await metadata.complete([{"role": "user", "content": payload.text}], model="m")
    except CompleteError as error:
        return HandlerResponse.respond(Told(f"{error.code}: {error.message}"))
    return HandlerResponse.respond(Told(said.text))
"""


async def test_a_call_is_two_units_with_the_call_between_them(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "Hello there"}, wait=True)
        records = await o.records(thread=outcome.thread_id)
    assert outcome.replies == ({"text": "Hellothere"},)
    assert speaker.calls == [f"{outcome.message_id}/1"]
    kinds = [record.type for record in records]
    begun = kinds.index("step_started")
    assert kinds[begun : begun + 5] == [
        "step_started",
        "budget_reserved",
        "model_called",
        "budget_settled",
        "step_recorded",
    ]
    assert [record.event.kind for record in records if record.type.startswith("step_")] == ["complete", "complete"]
    assert records[begun].at == records[begun + 1].at


async def test_what_the_handler_gets_after_a_restart_is_what_it_got_before(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        said = await metadata.complete([{"role": "user", "content": payload.text}], model="m", temperature=0.5)
        TRACE.append(said)
        await gate("after")
        return HandlerResponse.respond(Told(said.text))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    seen: list[Completion] = []
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "~mm Grüße \u200d?echo 🙂"})
        await o.until(StepRecorded)
        seen += play(o)["TRACE"]
        await o.crash()
    async with made.running(parts=speaker.parts(2)) as o:
        open_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        seen += play(o)["TRACE"]
    assert len(speaker.calls) == 1
    assert seen[0] == seen[1]
    assert (seen[1].thought, seen[1].cost_usd) == ("mm", Decimal("0.00005"))


async def test_a_refused_call_is_recorded_and_told_again_after_a_restart(world: MakeWorld) -> None:
    source = TALKER.replace(
        "    return HandlerResponse.respond(Told(f",
        "    await gate('after')\n        return HandlerResponse.respond(Told(f",
        1,
    )
    made, speaker = world(source, {"talker": {}}), Speaker()
    speaker.refuses = CompleteError("budget_exhausted", "All is spent.")
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "Hello"})
        recorded = await o.until(StepRecorded)
        await o.crash()
    speaker.refuses = None
    async with made.running(parts=speaker.parts(2)) as o:
        open_gate(o, "after")
        assert await answers(o, injected.thread_id) == ["budget_exhausted: All is spent."]
    assert recorded.event.error == StepError("budget_exhausted", "All is spent.")
    assert speaker.calls == []


async def test_a_call_found_begun_is_made_again_and_the_first_one_counts_as_spent(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        assert await folded_live(o) == await folded_again(o.log)
        await o.crash()
    speaker.open("wait")
    async with made.running(parts=speaker.parts(2)) as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        records = await o.records(thread=injected.thread_id)
        assert await o.replies(injected.thread_id) == ({"text": "One"},)
    spent = [record for record in records if isinstance(record.event, BudgetReserved | BudgetSettled | StepStarted)]
    assert pairs(spent, "step", "tokens") == [
        ("step_started", 1, None),
        ("budget_reserved", 1, 300),
        ("step_started", 1, None),
        ("budget_settled", 1, 300),
        ("budget_reserved", 1, 300),
        ("budget_settled", 1, 30),
    ]
    assert speaker.calls == [f"{injected.message_id}/1"] * 2


NO_CALLS = [
    ('metadata.complete([], model="m")', "at least one"),
    ('metadata.complete("hello", model="m")', "a list of messages"),
    ('metadata.complete([{"content": "x"}])', "with `role`"),
    ('metadata.complete([{"role": "user", "content": "x"}], temp=1)', "takes model, tools"),
    ('metadata.complete([{"role": "user", "content": "x"}], tools=("calculator",))', "ToolSpec(name"),
    ('metadata.complete([{"role": "user", "content": "x"}], block="")', "1 to 200 characters"),
    ('metadata.complete([{"role": "user", "content": b"x"}])', "cannot be written as JSON"),
]


async def test_what_is_no_call_is_reported_with_what_is(world: MakeWorld) -> None:
    source = """
async def talker(payload: Ask, metadata: HandlerMetadata):
    try:
        await eval(payload.text)
    except ValueError as error:
        return HandlerResponse.respond(Told(str(error)))
"""
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        for call, reason in NO_CALLS:
            outcome = await o.inject("talker", {"text": call}, wait=True)
            assert reason in outcome.replies[0]["text"]
    assert speaker.calls == []


async def test_models_that_break_are_an_error_of_the_call(world: MakeWorld) -> None:
    class Broken(Speaker):
        async def call(self, call: ModelCall, on_part: OnPart) -> Outcome:
            raise KeyError("choices")

    made, speaker = world(TALKER, {"talker": {}}), Broken()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "One"}, wait=True)
    assert outcome.replies == ({"text": "upstream_error: KeyError: 'choices'"},)


async def test_nobody_else_comes_to_the_line_and_the_slot_is_free(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}, limits={"max_concurrent_handlers": 1}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        first = await o.inject("talker", {"text": "@wait One"})
        await o.inject("talker", {"text": "Two"}, thread_id=first.thread_id)
        other = await o.inject("talker", {"text": "Three"}, wait=True)
        assert play(o)["TRACE"] == ["@wait One", "Three"]
        row = await o.views.private_row(AGENTS, "talker")
        assert row is not None
        assert row.public.state == "waiting"
        speaker.open("wait")
        assert await answers(o, first.thread_id) == ["One", "Two"]
    assert other.replies == ({"text": "Three"},)


@pytest.mark.parametrize("pause", ["talker", "organism", "thread"])
async def test_an_answer_that_comes_in_a_pause_goes_on_after_the_resume(world: MakeWorld, pause: str) -> None:
    answer = "    return HandlerResponse.respond(Told(said"
    source = TALKER.replace(answer, "    TRACE.append('went on')\n" + answer)
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        thread = (await o.inject("talker", {"text": "@wait One"})).thread_id
        await speaker.at("wait")
        stop, resume = pause_of(pause, thread)
        await o.do(stop)
        speaker.open("wait")
        await o.until(StepRecorded)
        assert play(o)["TRACE"] == ["@wait One"]
        resumed = await o.do(resume)
        assert await o.tenant.ended(thread, 10)
        handled = (await o.records(MessageHandled))[0]
    assert handled.position > resumed.position


async def test_a_pause_in_a_call_leaves_nothing_due_for_the_next_life(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        thread = (await o.inject("talker", {"text": "@wait One"})).thread_id
        await speaker.at("wait")
        await o.do(PauseThread(thread_id=thread))
        await o.do(ResumeThread(thread_id=thread))
        await o.crash()
    later, time = Speaker(), TurnedTime()
    async with made.running(parts=replace(time.parts(2), models=lambda _: later)) as o:
        await later.at("wait")
        await time.passes(o, 60)
        later.open("wait")
        assert await answers(o, thread) == ["One"]


async def test_a_kill_ends_the_call_and_what_it_held_is_spent(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        killed = await o.do(KillThread(thread_id=injected.thread_id))
        speaker.open("wait")
        await o.inject("talker", {"text": "Two"}, wait=True)
        records = await o.records(thread=injected.thread_id)
        assert await folded_live(o) == await folded_again(o.log)
    kinds = [record.type for record in records]
    begun = kinds.index("budget_reserved") + 1
    assert kinds[begun:] == ["model_called", "budget_settled", "step_recorded", "message_handled", "thread_killed"]
    assert (code_of(records[begun].event), records[begun].event.cost_usd) == ("lost", "0.0005")
    assert records[-1].position == killed.position


async def test_a_stop_gives_a_call_its_grace(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        stop = await stopping(o, 20)
        speaker.open("wait")
        await asyncio.wait_for(stop, 20)
    async with made.running(parts=speaker.parts(2)) as o:
        assert (await o.thread(injected.thread_id))["status"] == "completed"
        assert await o.replies(injected.thread_id) == ({"text": "One"},)
    assert len(speaker.calls) == 1


async def test_a_call_that_outlasts_the_grace_is_let_go_and_made_in_the_next_life(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        await o.organism.stop(grace_s=0.01)
    speaker.open("wait")
    async with made.running(parts=speaker.parts(2)) as o:
        assert await answers(o, injected.thread_id) == ["One"]
        started = await o.records(MessageStarted, thread=injected.thread_id)
    assert speaker.calls == [f"{injected.message_id}/1"] * 2
    assert started[-1].event.after == "stop"


async def test_a_handler_that_waits_no_longer_goes_on_and_the_call_ends_with_it(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        try:
            await asyncio.wait_for(metadata.complete([{"role": "user", "content": "@never One"}]), 0.01)
        except TimeoutError:
            return HandlerResponse.respond(Told("went on"))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": ""}, wait=True)
        called = (await o.records(ModelCalled))[0]
        tasks = [task for task in asyncio.all_tasks() if "Talk" in repr(task)]
        assert o.pump.state.folded.spend.open == {}
    assert outcome.replies == ({"text": "went on"},)
    assert code_of(called.event) == "lost"
    assert tasks == []


async def test_a_handling_that_fails_beside_its_call_ends_the_call(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        call = asyncio.ensure_future(metadata.complete([{"role": "user", "content": "@wait One"}]))
        while metadata.attempt == 1:
            await asyncio.sleep(0)
            if "go" in GATES:
                raise ValueError("first attempt")
        return HandlerResponse.respond(Told((await call).text))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": ""})
        await speaker.at("wait")
        play(o)["GATES"]["go"] = asyncio.Event()
        retried = await o.until(MessageRetried)
        speaker.open("wait")
        assert await o.tenant.ended(injected.thread_id, 10)
        settled = await o.records(BudgetSettled)
        assert await o.replies(injected.thread_id) == ({"text": "One"},)
    assert [record.event.tokens for record in settled] == [300, 30]
    assert settled[0].position < retried.position
