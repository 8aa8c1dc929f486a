"""What waits in a step: calls that come back, answers that come late, ends that come first (G14)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from organism.errors import AlreadyResolved, NotFound
from organism.events.vocabulary import ApprovalRequested, MessageHandled, StepRecorded, StepStarted
from organism.model.commands import (
    Command,
    PauseAgent,
    PauseOrganism,
    PauseThread,
    ResolveApproval,
    ResumeAgent,
    ResumeOrganism,
    ResumeThread,
)
from tests.flows.stage import TurnedTime, answers, at_gate, code_of, folded_again, folded_live, open_gate, play
from tests.flows.world import MakeWorld

ASKING = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append("begins " + payload.text)
    {body}
    TRACE.append("ends " + payload.text)
    return HandlerResponse.respond(Told(str(result)))

async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate("slow")
    return HandlerResponse.respond(Told("slow"))
"""
LISTENERS: dict[str, dict[str, Any]] = {"asker": {"peers": ["slow"], "max_concurrent": 1}, "slow": {"timeout_s": 1000}}
TIMELY = """try:
        result = await metadata.ask("slow", Ask("x"), timeout={seconds})
    except AskError as error:
        result = error.code"""
ASK = 'result = await metadata.ask("slow", Ask("x"))'


async def test_a_handler_may_ask_itself_though_it_has_one_slot(world: MakeWorld) -> None:
    body = 'result = await metadata.ask("asker", Ask("inner")) if payload.text == "outer" else 0'
    async with world(ASKING.format(body=body), LISTENERS).running() as o:
        await o.inject("asker", {"text": "outer"}, wait=True)
        assert play(o)["TRACE"] == ["begins outer", "begins inner", "ends inner", "ends outer"]


async def test_what_a_handler_left_behind_can_take_no_step_any_more(world: MakeWorld) -> None:
    body = (
        "\n    async def later():"
        '\n        await gate("later")'
        '\n        try:\n            await metadata.ask("slow", Ask("x"))'
        "\n        except BaseException as error:\n            TRACE.append(type(error).__name__)"
        "\n    KEPT.append(asyncio.create_task(later()))"
        "\n    result = 0"
    )
    async with world("KEPT = []\n" + ASKING.format(body=body), LISTENERS).running() as o:
        outcome = await o.inject("asker", {"text": "x"}, wait=True)
        open_gate(o, "later")
        await play(o)["KEPT"][0]
        assert play(o)["TRACE"] == ["begins x", "ends x", "CancelledError"]
        assert await o.records(StepStarted) == []
        assert (await o.thread(outcome.thread_id))["status"] == "completed"


async def test_one_that_gives_up_its_wait_goes_on_alone_in_its_line(world: MakeWorld) -> None:
    body = (
        'if payload.text == "behind":\n        result = 0\n    else:'
        "\n        try:\n            async with asyncio.timeout(0.05):"
        '\n                result = await metadata.ask("slow", Ask("x"))'
        '\n        except TimeoutError:\n            result = "gave up"'
        '\n        await gate("gave up")'
    )
    async with world(ASKING.format(body=body), LISTENERS).running() as o:
        first = await o.inject("asker", {"text": "first"})
        await at_gate(o, "gave up")
        await o.inject("asker", {"text": "behind"}, thread_id=first.thread_id)
        await o.pump.settled()
        open_gate(o, "gave up", "slow")
        assert await o.tenant.ended(first.thread_id, 10)
        assert play(o)["TRACE"] == ["begins first", "ends first", "begins behind", "ends behind"]
        assert o.pump.mailboxes.running == 0
        assert await folded_live(o) == await folded_again(o.log)


async def test_an_answer_that_comes_after_its_time_ends_unread(world: MakeWorld) -> None:
    time = TurnedTime()
    body = TIMELY.format(seconds=5)
    async with world(ASKING.format(body=body), LISTENERS).running(parts=time.parts()) as o:
        thread = (await o.inject("asker", {"text": "x"})).thread_id
        await at_gate(o, "slow")
        time.turn(6)
        await o.until(MessageHandled, agent="asker")
        assert (await o.thread(thread))["status"] == "active"
        open_gate(o, "slow")
        assert await o.tenant.ended(thread, 10)
        ends = [record.event.outcome for record in await o.records(MessageHandled)]
        assert await o.replies(thread) == ({"text": "timeout"},)
    assert ends == ["delivered", "done", "unread", "done"]


PAUSES = {
    "agent": (PauseAgent(agent="asker"), ResumeAgent(agent="asker")),
    "organism": (PauseOrganism(), ResumeOrganism()),
    "thread": None,
}


@pytest.mark.parametrize("order", [("agent", "organism", "thread"), ("thread", "organism", "agent")], ids="-".join)
@pytest.mark.parametrize("body", ["await gate('first'); " + ASK, ASK])
async def test_of_several_pauses_the_last_resume_lets_it_go_on(
    world: MakeWorld, order: tuple[str, ...], body: str
) -> None:
    """Whether the handler comes to its step in the pause, or its answer comes in the pause."""
    async with world(ASKING.format(body=body), LISTENERS).running(on_disk=False) as o:
        thread = (await o.inject("asker", {"text": "x"})).thread_id
        await at_gate(o, "first" if "first" in body else "slow")
        of_thread: tuple[Command, Command] = (PauseThread(thread_id=thread), ResumeThread(thread_id=thread))
        for name in PAUSES:
            await o.do((PAUSES[name] or of_thread)[0])
        open_gate(o, "first", "slow")
        resumed = 0
        for name in order:
            assert "ends x" not in play(o)["TRACE"]
            resumed = (await o.do((PAUSES[name] or of_thread)[1])).position
        assert await o.tenant.ended(thread, 10)
        handled = await o.until(MessageHandled, agent="asker", outcome="done")
    assert handled.position > resumed


async def test_a_handler_whose_listener_is_removed_while_it_waits_goes_on_to_its_end(world: MakeWorld) -> None:
    made = world(ASKING.format(body=ASK), LISTENERS)
    async with made.running() as o:
        thread = (await o.inject("asker", {"text": "x"})).thread_id
        await at_gate(o, "slow")
        gates = play(o)["GATES"]
        made.write(ASKING.format(body=ASK), {"slow": LISTENERS["slow"]})
        await o.organism.reload()
        gates["slow"].set()
        assert await answers(o, thread) == ["Told(text='slow')"]


APPROVING = """
async def approver(payload: Ask, metadata: HandlerMetadata):
    approval = await metadata.approve({"pay": 5})
    TRACE.append("went on")
    return HandlerResponse.respond(Told(f"{approval.decision} {approval.edits} {approval.comment!r} by {approval.by}"))
"""


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_human_s_word_counts_once_and_waits_for_a_restart_and_a_pause(world: MakeWorld, decision: Any) -> None:
    made = world(APPROVING, {"approver": {}})
    async with made.running() as o:
        thread = (await o.inject("approver", {"text": "x"})).thread_id
        approval = (await o.until(ApprovalRequested)).event.approval
        await o.do(PauseAgent(agent="approver"))
        await o.crash()
    async with made.running() as o:
        decide = ResolveApproval(approval=approval, decision=decision, edits=[1], comment="so")
        results = await asyncio.gather(o.do(decide), o.do(decide), return_exceptions=True)
        assert [isinstance(result, AlreadyResolved) for result in results] == [False, True]
        assert play(o)["TRACE"] == []
        await o.do(ResumeAgent(agent="approver"))
        assert await answers(o, thread) == [f"{decision} [1] 'so' by default"]
        with pytest.raises(NotFound):
            await o.do(ResolveApproval(approval="apr-nowhere", decision="approve"))


async def test_time_goes_on_for_asks_and_approvals_while_the_process_is_down(world: MakeWorld) -> None:
    time = TurnedTime()
    body = TIMELY.format(seconds=50)
    made = world(ASKING.format(body=body) + APPROVING, {**LISTENERS, "approver": {}}, limits={"approval_expires_s": 50})
    async with made.running(parts=time.parts()) as o:
        asked = await o.inject("asker", {"text": "x"})
        approved = await o.inject("approver", {"text": "x"})
        await at_gate(o, "slow")
        await o.until(ApprovalRequested)
        await o.crash()
    time.turn(60)
    async with made.running(parts=time.parts(2)) as o:
        await o.until(MessageHandled, agent="asker")
        assert await o.replies(asked.thread_id) == ({"text": "timeout"},)
        assert await answers(o, approved.thread_id) == ["expired None '' by "]


NO_REPLY = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    try:
        await metadata.ask(payload.text, Ask("x"), timeout=0.1 if payload.text == "stuck" else 5)
    except AskError as error:
        return HandlerResponse.respond(Told(error.code))

async def silent(payload: Ask, metadata: HandlerMetadata):
    return None

async def stuck(payload: Ask, metadata: HandlerMetadata):
    await asyncio.sleep(60)

async def broken(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("broken")

async def far(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(Ask("on"), to="silent")
"""
CODES = {"nobody": "routing", "silent": "no_reply", "stuck": "timeout", "broken": "dead_letter", "far": "no_reply"}


async def test_an_ask_without_a_reply_says_why(world: MakeWorld) -> None:
    listeners: dict[str, dict[str, Any]] = {name: {"peers": ["silent"]} for name in CODES if name != "nobody"}
    async with world(NO_REPLY, {**listeners, "asker": {"peers": list(listeners)}}).running() as o:
        for target, code in CODES.items():
            thread = (await o.inject("asker", {"text": target})).thread_id
            recorded = await o.until(StepRecorded, thread=thread)
            await o.until(MessageHandled, thread=thread, agent="asker")
            assert (await o.replies(thread))[0] == {"text": code}
            assert code_of(recorded.event) == code


async def test_asks_may_overlap(world: MakeWorld) -> None:
    made = world(
        """
        async def asker(payload: Ask, metadata: HandlerMetadata):
            result = await asyncio.gather(*(metadata.ask("echo", Ask(str(n))) for n in range(5)))
            return HandlerResponse.respond(Told(" ".join(each.text for each in result)))

        async def echo(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told(payload.text))
        """,
        {"asker": {"peers": ["echo"]}, "echo": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("asker", {"text": ""}, wait=True)
    assert outcome.replies == ({"text": "0 1 2 3 4"},)
