"""``complete``: a model's call is a recorded step, made once."""

from __future__ import annotations

from decimal import Decimal

from organism.model.completion import CompleteError, Completion
from organism.pump.models import ModelCall, Outcome
from tests.flows.speaker import Speaker, Tell
from tests.flows.stage import answers, folded_anew, folded_live, open_gate, pairs, play
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
        events = await o.events(thread=outcome.thread_id)
    assert outcome.replies == ({"text": "Hellothere"},)
    assert speaker.calls == [f"{outcome.message_id}/1"]
    kinds = [event.type for event in events]
    begun = kinds.index("step_started")
    assert kinds[begun : begun + 5] == [
        "step_started",
        "budget_reserved",
        "model_called",
        "budget_settled",
        "step_recorded",
    ]
    assert [event.data["kind"] for event in events if event.type.startswith("step_")] == ["complete", "complete"]
    assert events[begun].at == events[begun + 1].at


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
        await o.until("step_recorded")
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
        recorded = await o.until("step_recorded")
        await o.crash()
    speaker.refuses = None
    async with made.running(parts=speaker.parts(2)) as o:
        open_gate(o, "after")
        assert await answers(o, injected.thread_id) == ["budget_exhausted: All is spent."]
    assert recorded.data["error"] == {"code": "budget_exhausted", "message": "All is spent."}
    assert speaker.calls == []


async def test_a_new_attempt_keeps_the_answers_and_makes_the_failed_call_anew(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        first = await metadata.complete([{"role": "user", "content": "One"}], model="m")
        words = "!upstream_timeout" if metadata.attempt == 0 else payload.text
        second = await metadata.complete([{"role": "user", "content": payload.text}], model="m")
        return HandlerResponse.respond(Told(first.text + second.text))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "!upstream_timeout"}, wait=True)
        dead = (await o.events("message_dead"))[0].data
    message = outcome.message_id
    assert speaker.calls == [f"{message}/1", f"{message}/2", f"{message}/2", f"{message}/2"]
    assert "CompleteError: It did not work." in dead["reason"]


async def test_a_call_found_begun_is_made_again_and_the_first_one_counts_as_spent(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        assert await folded_live(o) == await folded_anew(o.log)
        await o.crash()
    speaker.open("wait")
    async with made.running(parts=speaker.parts(2)) as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        events = await o.events(thread=injected.thread_id)
        assert await o.replies(injected.thread_id) == ({"text": "One"},)
    spent = [event for event in events if event.type in {"budget_reserved", "budget_settled", "step_started"}]
    assert pairs(spent, "step", "tokens") == [
        ("step_started", 1, None),
        ("budget_reserved", 1, 300),
        ("step_started", 1, None),
        ("budget_settled", 1, 300),
        ("budget_reserved", 1, 300),
        ("budget_settled", 1, 30),
    ]
    assert speaker.calls == [f"{injected.message_id}/1"] * 2


async def test_a_refusal_of_the_second_try_leaves_nothing_reserved(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        await o.crash()
    speaker.refuses = CompleteError("budget_exhausted", "All is spent.")
    async with made.running(parts=speaker.parts(2)) as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        settled = await o.events("budget_settled")
        assert o.pump.state.routing.spend.open == {}
    assert [event.data["tokens"] for event in settled] == [300]


NO_CALLS = [
    ('metadata.complete([], model="m")', "at least one"),
    ('metadata.complete("hello", model="m")', "a list of messages"),
    ('metadata.complete([{"content": "x"}])', "with `role`"),
    ('metadata.complete([{"role": "user", "content": "x"}], temp=1)', "takes model, tools"),
    ('metadata.complete([{"role": "user", "content": "x"}], tools=("calculator",))', "ToolSpec(name"),
    ('metadata.complete([{"role": "user", "content": "x"}], block="")', "1 to 200 characters"),
    ('metadata.complete([{"role": "user", "content": b"x"}])', "cannot be written as JSON"),
]


async def test_what_is_no_call_is_told_with_what_is(world: MakeWorld) -> None:
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


async def test_another_call_than_the_recorded_one_stops_the_handling(world: MakeWorld) -> None:
    source = TALKER.replace(
        "    return HandlerResponse.respond(Told(said",
        "    await gate('after')\n    return HandlerResponse.respond(Told(said",
    )
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "One"})
        await o.until("step_recorded")
        await o.crash()
    made.write(source.replace("payload.text}]", "payload.text + '!'}]"))
    async with made.running(parts=speaker.parts(2)) as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        dead = (await o.events("message_dead"))[0].data
    assert dead["code"] == "replay_diverged"
    assert "recorded as complete" in dead["reason"]


async def test_calls_may_overlap_each_other(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        words = ("@one One", "@two Two")
        both = await asyncio.gather(*(metadata.complete([{"role": "user", "content": each}]) for each in words))
        return HandlerResponse.respond(Told(" ".join(each.text for each in both)))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": ""})
        await speaker.at("one")
        await speaker.at("two")
        speaker.open("two")
        await o.until("step_recorded", step=2)
        speaker.open("one")
        assert await answers(o, injected.thread_id) == ["One Two"]


async def test_models_that_break_are_an_error_of_the_call(world: MakeWorld) -> None:
    class Broken(Speaker):
        async def call(self, call: ModelCall, tell: Tell) -> Outcome:
            raise KeyError("choices")

    made, speaker = world(TALKER, {"talker": {}}), Broken()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "One"}, wait=True)
    assert outcome.replies == ({"text": "upstream_error: KeyError: 'choices'"},)
