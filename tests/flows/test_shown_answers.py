"""What a model says is shown as it comes, and after whatever death the run is what it would have been."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from organism.events.vocabulary import RunMessageDelta, RunMessageStart, StepRecorded
from organism.pump.decide.spend import ModelCall, Outcome
from organism.pump.run.feed import Delta
from organism.testing import Running
from organism.views.run import entry_of, fold
from tests.flows.loop import ASKED, FOLDED, LISTENERS, LOOP
from tests.flows.speaker import OnPart, Speaker
from tests.flows.stage import folded_again, folded_live, open_gate, play, shown
from tests.flows.world import MakeWorld

TALKER = """
from organism import CompleteError

async def talker(payload: Ask, metadata: HandlerMetadata):
    said = await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
    TRACE.append(said)
    await gate("after")
    return HandlerResponse.respond(Told(said.text))
"""


async def entries(o: Running, thread: str | None = None) -> list[tuple[str, Any]]:
    """The entries so far: type, and the id or what was said."""
    logged = map(entry_of, await shown(o, thread))
    return [(entry["type"], entry["data"].get("delta", entry["data"].get("id"))) for entry in logged]


async def said(o: Running, thread: str) -> list[str]:
    """The messages of the thread's run."""
    return [message["content"] for message in fold(map(entry_of, await shown(o, thread)))["messages"]]


STARTED = "message_start m1"
IN_WORDS = [STARTED, "message_delta in words", "message_end m1"]
WHOLE = [STARTED, "message_delta whole", "message_end m1"]
FIRST = ["thought_start m1-thought", "thought_delta a", "thought_end m1-thought"]
SECOND = ["thought_start m1-thought-2", "thought_delta c", "thought_end m1-thought-2"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Hello there", [STARTED, "message_delta Hellothere", "message_end m1"]),
        ("?echo", []),
        ("~a see", [*FIRST, STARTED, "message_delta see", "message_end m1"]),
        ("~a b ~c", [*FIRST, STARTED, *SECOND, "message_delta b", "message_end m1"]),
        ("half << whole", WHOLE),
        ("half @seen << whole", [STARTED, *WHOLE]),
        ("<call> = in words", IN_WORDS),
        ("<call> @seen = in words", [STARTED, *IN_WORDS]),
        ("= in words", IN_WORDS),
        ("<call> ?echo =", []),
        ("<call> @seen ?echo =", [STARTED, STARTED, "message_end m1"]),
    ],
)
async def test_a_call_shows_its_answer_by_itself(world: MakeWorld, words: str, shown: list[str]) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": words})
        if "@seen" in words:
            await o.until(RunMessageStart)
            speaker.open("seen")
        await o.until(StepRecorded)
        open_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        found = [f"{kind} {what}" for kind, what in await entries(o)]
        answer = (await o.replies(injected.thread_id))[0]["text"]
        folded = await said(o, injected.thread_id)
    assert found == [*shown, "done None"] if shown else found == []
    assert folded == ([answer] if shown else [])


@pytest.mark.parametrize("words", ["~hm Grüße 🙂 ?echo", "one << two", "told = else", "?echo", "two  spaces"])
async def test_a_text_that_was_shown_stands_in_the_log_once_and_is_given_back(world: MakeWorld, words: str) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": words})
        recorded = await o.until(StepRecorded)
        given = play(o)["TRACE"]
        content = await o.log.content(recorded.position)
        before = [*given]
        await o.crash()
    async with made.running(parts=speaker.parts(2)) as o:
        open_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        after = play(o)["TRACE"]
        found = [kind for kind, _ in await entries(o)]
    assert before == after
    assert len(speaker.calls) == 1
    assert content is not None
    assert ("text" in orjson.loads(content[0])) is (before[0].text == "")
    assert found.count("message_end") == found.count("done") == (1 if before[0].text else 0)


async def test_an_error_keeps_the_text_so_far_and_a_new_attempt_sends_it_again_in_its_place(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        await metadata.emit("message", {"text": "first"})
        said = await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
        await metadata.emit("message", {"text": "last"})
        return HandlerResponse.respond(Told(said.text))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "so far !upstream_error"}, wait=True)
        folded = await said(o, outcome.thread_id)
        found = [kind for kind, _ in await entries(o)]
    assert folded == ["first", "sofar"]
    assert found.count("message_start") == 3
    assert found[-2:] == ["message_end", "done"]


async def test_two_answers_are_not_shown_under_one_id_at_once(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        await metadata.emit("message_start", {"id": "m1"})
        try:
            await metadata.complete([{"role": "user", "content": "One"}], block="m1")
        except ValueError as error:
            return HandlerResponse.respond(Told(str(error)))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": ""}, wait=True)
    assert outcome.replies[0]["text"] == "The message 'm1' has begun already: give each its own `block`."


async def test_text_is_heard_at_once_and_only_behind_its_start_in_the_log(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    heard: list[Delta] = []
    async with made.running(parts=speaker.parts()) as o:
        o.tenant.feed.subscribe(heard.append)
        injected = await o.inject("talker", {"text": "a @one bc @two d"})
        await speaker.at("one")
        start = await o.until(RunMessageStart)
        assert await o.records(RunMessageDelta) == []
        speaker.open("one")
        await speaker.at("two")
        assert o.tenant.feed.unlogged() == [heard[0]._replace(text="abc")]
        speaker.open("two")
        open_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert o.tenant.feed.unlogged() == []
    assert [(delta.offset, delta.text) for delta in heard] == [(0, "a"), (1, "bc"), (3, "d")]
    assert {delta.start for delta in heard} == {start.position}


async def played(world: MakeWorld, cut: int) -> tuple[dict[str, Any], list[str]]:
    """The fold of a turn whose process dies once ``cut`` positions are written, and its calls."""
    made, speaker = world(LOOP, LISTENERS), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("agent", {"text": ASKED})
        async for _ in o.log.follow(0):
            if o.log.head >= cut or injected.thread_id not in o.pump.state.folded.threads:
                break
        await o.crash()
    async with made.running(parts=speaker.parts(2)) as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        logged = [entry_of(record) for record in await shown(o, injected.thread_id)]
        assert await folded_live(o) == await folded_again(o.log)
    assert [entry["type"] for entry in logged].count("done") == 1
    assert logged[-1]["type"] == "done"
    return fold(logged), speaker.calls


@pytest.mark.parametrize("cut", range(4, 44, 4))
async def test_a_run_cut_at_any_point_is_in_the_end_what_it_is_uncut(world: MakeWorld, cut: int) -> None:
    folded, calls = await played(world, cut)
    assert folded == FOLDED
    assert 2 <= len(calls) <= 3


async def test_a_handler_that_asks_again_after_an_error_tells_the_answer_in_the_same_place(world: MakeWorld) -> None:
    source = """
    from organism import CompleteError

    async def talker(payload: Ask, metadata: HandlerMetadata):
        try:
            await metadata.complete([{"role": "user", "content": "so far !upstream_error"}], block="m1")
        except CompleteError:
            await metadata.emit("data", {"name": "again", "data": 1})
        said = await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
        return HandlerResponse.respond(Told(said.text))
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "whole"}, wait=True)
        folded = await said(o, outcome.thread_id)
        found = await entries(o, outcome.thread_id)
    assert folded == ["whole"]
    assert found[:3] == [("message_start", "m1"), ("message_delta", "sofar"), ("data", None)]


class Forgetful(Speaker):
    """Models whose books are wrong once."""

    async def call(self, call: ModelCall, on_part: OnPart) -> Outcome:
        outcome = await super().call(call, on_part)
        return outcome if len(self.calls) > 1 else replace(outcome, cost=cast("Any", "nobody knows"))


async def test_a_fault_of_ours_while_an_answer_is_settled_folds_the_state_again_and_the_call_is_made_again(
    world: MakeWorld,
) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Forgetful()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "Hello there"})
        await o.until(StepRecorded)
        open_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        replies = await o.replies(injected.thread_id)
    assert [reply["text"] for reply in replies] == ["Hellothere"]
    assert len(speaker.calls) == 2
