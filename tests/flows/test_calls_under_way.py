"""A call under way: nobody else comes to its line, and what a pause, a kill or a stop makes of it (G13)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from organism.model.commands import (
    Command,
    KillThread,
    PauseAgent,
    PauseOrganism,
    PauseThread,
    ResumeAgent,
    ResumeOrganism,
    ResumeThread,
)
from organism.testing import Running
from tests.flows.speaker import Speaker
from tests.flows.stage import TurnedTime, answers, at_gate, folded_anew, folded_live, open_gate, play
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


async def test_nobody_else_comes_to_the_line_and_the_slot_is_free(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}, limits={"max_concurrent_handlers": 1}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        first = await o.inject("talker", {"text": "@wait One"})
        await o.inject("talker", {"text": "Two"}, thread_id=first.thread_id)
        other = await o.inject("talker", {"text": "Three"}, wait=True)
        assert play(o)["TRACE"] == ["@wait One", "Three"]
        speaker.open("wait")
        assert await answers(o, first.thread_id) == ["One", "Two"]
    assert other.replies == ({"text": "Three"},)


async def test_an_agent_whose_models_speak_is_waiting(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        row = await o.log.private_row("agents", "talker")
        speaker.open("wait")
        assert await o.tenant.ended(outcome.thread_id, 10)
        after = await o.log.private_row("agents", "talker")
    assert row is not None
    assert after is not None
    assert (row["state"], after["state"]) == ("waiting", "idle")


@pytest.mark.parametrize(
    "pause", [PauseAgent(agent="talker"), PauseOrganism(), None], ids=["agent", "organism", "thread"]
)
async def test_an_answer_that_comes_in_a_pause_goes_on_after_the_resume(
    world: MakeWorld, pause: PauseAgent | PauseOrganism | None
) -> None:
    made, speaker = (
        world(
            TALKER.replace(
                "    return HandlerResponse.respond(Told(said",
                "    TRACE.append('went on')\n    return HandlerResponse.respond(Told(said",
            ),
            {"talker": {}},
        ),
        Speaker(),
    )
    async with made.running(parts=speaker.parts()) as o:
        thread = (await o.inject("talker", {"text": "@wait One"})).thread_id
        await speaker.at("wait")
        stop, resume = pause_of(pause, thread)
        await o.do(stop)
        speaker.open("wait")
        await o.until("step_recorded")
        assert play(o)["TRACE"] == ["@wait One"]
        resumed = await o.do(resume)
        assert await o.tenant.ended(thread, 10)
        handled = (await o.events("message_handled"))[0]
    assert handled.position > resumed.position


@pytest.mark.parametrize(
    "pause", [PauseAgent(agent="talker"), PauseOrganism(), None], ids=["agent", "organism", "thread"]
)
async def test_a_handling_waits_at_its_next_call(world: MakeWorld, pause: PauseAgent | PauseOrganism | None) -> None:
    made, speaker = world(TALKER.replace("    try:", "    await gate('first')\n    try:", 1), {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        thread = (await o.inject("talker", {"text": "One"})).thread_id
        await o.inject("talker", {"text": "Two"}, thread_id=thread)
        await at_gate(o, "first")
        stop, resume = pause_of(pause, thread)
        await o.do(stop)
        open_gate(o, "first")
        await o.tenant.pump.settled()
        assert await o.events("step_started") == []
        resumed = await o.do(resume)
        assert await o.tenant.ended(thread, 10)
        begun = (await o.events("step_started"))[0]
        assert play(o)["TRACE"] == ["One", "Two"]
    assert begun.position > resumed.position


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
        time.turn(60)
        await time.ticked(o)
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
        events = await o.events(thread=injected.thread_id)
        assert await folded_live(o) == await folded_anew(o.log)
    kinds = [event.type for event in events]
    begun = kinds.index("budget_reserved") + 1
    assert kinds[begun:] == ["model_called", "budget_settled", "step_recorded", "message_handled", "thread_killed"]
    assert (events[begun].data["error"]["code"], events[begun].data["cost_usd"]) == ("lost", "0.0005")
    assert events[-1].position == killed.position


async def test_a_handler_has_its_time_for_itself_while_its_model_speaks(world: MakeWorld) -> None:
    made, speaker, time = world(TALKER, {"talker": {"timeout_s": 1}}), Speaker(), TurnedTime()
    async with made.running(parts=replace(time.parts(), models=lambda _: speaker)) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        time.turn(60)
        await time.ticked(o)
        speaker.open("wait")
        assert await answers(o, injected.thread_id) == ["One"]


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


async def test_a_stop_waits_for_nobody_whose_answer_a_pause_holds_up(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        await o.do(PauseThread(thread_id=injected.thread_id))
        stop = await stopping(o, 1000)
        speaker.open("wait")
        await asyncio.wait_for(stop, 20)
    async with made.running(parts=speaker.parts(2)) as o:
        await o.do(ResumeThread(thread_id=injected.thread_id))
        assert await o.tenant.ended(injected.thread_id, 10)
    assert len(speaker.calls) == 1


async def test_a_stop_lets_go_of_a_handler_that_comes_to_wait(world: MakeWorld) -> None:
    source = """
    async def asker(payload: Ask, metadata: HandlerMetadata):
        await gate("stopping")
        await metadata.approve({})
    """
    async with world(source, {"asker": {}}).running() as o:
        await o.inject("asker", {"text": ""})
        await at_gate(o, "stopping")
        stop = await stopping(o, 1000)
        open_gate(o, "stopping")
        await asyncio.wait_for(stop, 20)


async def test_a_call_that_outlasts_the_grace_is_let_go_and_made_in_the_next_life(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "@wait One"})
        await speaker.at("wait")
        await o.organism.stop(grace_s=0.01)
    speaker.open("wait")
    async with made.running(parts=speaker.parts(2)) as o:
        assert await answers(o, injected.thread_id) == ["One"]
        started = await o.events("message_started", thread=injected.thread_id)
    assert speaker.calls == [f"{injected.message_id}/1"] * 2
    assert started[-1].data["after"] == "stop"


async def test_a_call_back_comes_to_the_line_while_an_ask_and_a_call_overlap(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        if payload.text == "back":
            return HandlerResponse.respond(Told("called back"))
        call = metadata.complete([{"role": "user", "content": "@wait One"}])
        said, told = await asyncio.gather(call, metadata.ask("friend", Ask("x")))
        return HandlerResponse.respond(Told(f"{said.text} {told.text}"))

    async def friend(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(await metadata.ask("talker", Ask("back")))
    """
    made, speaker = world(source, {"talker": {"peers": ["friend"]}, "friend": {"peers": ["talker"]}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "go"})
        await speaker.at("wait")
        await o.until("step_recorded", agent="talker", step=2)
        speaker.open("wait")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert (await o.replies(injected.thread_id))[-1] == {"text": "One called back"}


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
        called = (await o.events("model_called"))[0]
        tasks = [task for task in asyncio.all_tasks() if "Talk" in repr(task)]
        assert o.pump.state.routing.spend.open == {}
    assert outcome.replies == ({"text": "went on"},)
    assert called.data["error"]["code"] == "lost"
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
        retried = await o.until("message_retried")
        speaker.open("wait")
        assert await o.tenant.ended(injected.thread_id, 10)
        settled = await o.events("budget_settled")
        assert await o.replies(injected.thread_id) == ({"text": "One"},)
    assert [event.data["tokens"] for event in settled] == [300, 30]
    assert settled[0].position < retried.position


def pause_of(pause: PauseAgent | PauseOrganism | None, thread: str) -> tuple[Command, Command]:
    """The command, and the one that takes it back."""
    if isinstance(pause, PauseAgent):
        return pause, ResumeAgent(agent=pause.agent)
    if isinstance(pause, PauseOrganism):
        return pause, ResumeOrganism()
    return PauseThread(thread_id=thread), ResumeThread(thread_id=thread)


async def stopping(o: Running, grace_s: float) -> asyncio.Task[None]:
    """A stop that has begun."""
    task = asyncio.create_task(o.organism.stop(grace_s=grace_s))
    while not o.tenant.operator.stopping:
        await asyncio.wait([task], timeout=0.001)
    return task
