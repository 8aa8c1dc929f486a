"""Consent: a listener with ``approval: true`` handles nothing that no human has seen."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest

from organism.errors import AlreadyResolved
from organism.events.record import Actor, Record
from organism.events.vocabulary import ApprovalRequested, StepRecorded, ValueSet
from organism.model.commands import ResolveApproval
from organism.testing import Running
from organism.views.views import Query
from tests.flows.stage import TurnedTime, answers, at_gate, folded_again, folded_live, open_gate, play
from tests.flows.world import MakeWorld

SOURCE = """
from organism.model.tool import ToolError

@dataclass
class Payment:
    to: str
    cents: int = 1

async def pay(payload: Payment, metadata: HandlerMetadata):
    TRACE.append((payload.to, payload.cents, metadata.attempt))
    if payload.to == "nobody" and metadata.attempt < 3:
        raise ValueError("no such account")
    if payload.to == "slow":
        await gate("pay")
    key = await metadata.uuid()
    return HandlerResponse.respond(Told(f"paid {payload.cents} to {payload.to}"))

def block(payload: Payment, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("blocked"))

async def clerk(payload: Ask, metadata: HandlerMetadata):
    try:
        reply = await metadata.ask("pay", Payment(payload.text, 5), timeout=30)
    except AskError as error:
        reply = Told(error.code)
    return HandlerResponse.respond(Told(reply.text if isinstance(reply, Told) else f"{reply.code}: {reply.message}"))

async def boss(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(await metadata.ask("clerk", payload, timeout=40))

async def sender(payload: Ask | Told, metadata: HandlerMetadata):
    if isinstance(payload, Told):
        return HandlerResponse.respond(Told("heard " + payload.text))
    return HandlerResponse(Payment("post"), to="pay")
"""
LISTENERS: dict[str, dict[str, Any]] = {
    "pay": {"payload_class": "Payment", "approval": True, "peers": ["console"]},
    "block": {"payload_class": "Payment", "approval": True, "blocking": True},
    "clerk": {"peers": ["pay"]},
    "boss": {"peers": ["clerk"]},
    "sender": {"peers": ["pay"]},
}


async def asked(o: Running, after: int = 0) -> Record[ApprovalRequested]:
    """The next question to a human."""
    return await o.until(ApprovalRequested, after=after)


async def say(o: Running, question: Record[ApprovalRequested], decision: str = "approve", **more: object) -> None:
    word = ResolveApproval(approval=question.event.approval, decision=decision, actor=Actor(user="ann"), **more)  # type: ignore[arg-type]  # one of the two
    await o.do(word)


def trace(o: Running) -> list[tuple[object, ...]]:
    """What ran."""
    return list(play(o)["TRACE"])


async def test_nothing_runs_before_a_human_has_approved_what_they_saw(world: MakeWorld) -> None:
    async with world(SOURCE, LISTENERS).running() as o:
        sent = await o.inject("pay", {"to": "ann", "cents": 7})
        question = await asked(o)
        assert question.content is not None
        assert question.content.json == b'{"cents":7,"to":"ann"}'
        assert question.event.digest == hashlib.sha256(b'{"cents":7,"to":"ann"}').hexdigest()
        assert (question.event.agent, question.event.type, question.event.step) == ("pay", "Payment", 0)
        row = orjson.loads((await o.views.rows("agents", Query(order_by="ordinal"))).rows)[0]
        assert (row["name"], row["state"]) == ("pay", "waiting")
        assert trace(o) == []
        await say(o, question)
        assert await o.tenant.ended(sent.thread_id, 10)
        assert trace(o) == [("ann", 7, 1)]
        assert await o.replies(sent.thread_id) == ({"text": "paid 7 to ann"},)
        assert await folded_again(o.log) == await folded_live(o)


@pytest.mark.parametrize(
    ("comment", "message"),
    [("too much", "A person rejected this call: too much"), ("", "A person rejected this call.")],
)
async def test_what_is_rejected_never_runs_and_the_caller_is_told(world: MakeWorld, comment: str, message: str) -> None:
    async with world(SOURCE, LISTENERS).running() as o:
        sent = await o.inject("clerk", {"text": "bob"})
        await say(o, await asked(o), "reject", comment=comment)
        assert await answers(o, sent.thread_id) == [f"forbidden: {message}"]
        assert trace(o) == []
        assert (await o.thread(sent.thread_id))["status"] == "completed"


async def test_what_nobody_decides_in_time_never_runs(world: MakeWorld) -> None:
    time = TurnedTime()
    play_ = world(SOURCE, LISTENERS, limits={"approval_expires_s": 100})
    async with play_.running(parts=time.parts()) as o:
        sent = await o.inject("pay", {"to": "ann"})
        question = await asked(o)
        time.turn(101)
        assert await o.tenant.ended(sent.thread_id, 10)
        expected = {"code": "forbidden", "message": "Nobody approved this call in time."}
        assert await o.replies(sent.thread_id) == (expected,)
        assert trace(o) == []
        with pytest.raises(AlreadyResolved):
            await say(o, question)


async def test_edits_are_what_runs_and_have_a_digest_of_their_own(world: MakeWorld) -> None:
    async with world(SOURCE, LISTENERS).running() as o:
        sent = await o.inject("pay", {"to": "ann", "cents": 7})
        question = await asked(o)
        await say(o, question, edits={"to": "ann", "cents": 6})
        assert await o.tenant.ended(sent.thread_id, 10)
        assert trace(o) == [("ann", 6, 1)]
        row = orjson.loads(await o.views.row("approvals", question.event.approval) or b"")
        assert row["digest"] == hashlib.sha256(b'{"cents":6,"to":"ann"}').hexdigest() != question.event.digest


async def test_a_word_is_good_for_one_call_only(world: MakeWorld) -> None:
    async with world(SOURCE, LISTENERS).running() as o:
        first = await o.inject("pay", {"to": "ann"})
        one = await asked(o)
        await say(o, one)
        with pytest.raises(AlreadyResolved):
            await say(o, one, "reject")
        assert await o.tenant.ended(first.thread_id, 10)
        second = await o.inject("pay", {"to": "ann"})
        another = await asked(o, one.position)
        assert another.event.approval != one.event.approval
        assert len(trace(o)) == 1
        await say(o, another, "reject")
        assert await o.tenant.ended(second.thread_id, 10)
        assert len(trace(o)) == 1


async def test_the_word_outlives_a_crash_and_holds_for_further_attempts(world: MakeWorld) -> None:
    here = world(SOURCE, LISTENERS)
    async with here.running() as o:
        waiting = await o.inject("pay", {"to": "ann"})
        question = await asked(o)
        await o.crash()
    async with here.running() as o:
        await say(o, question)
        assert await o.tenant.ended(waiting.thread_id, 10)
        assert len(await o.records(ApprovalRequested)) == 1
        assert [name for name, *_ in trace(o)] == ["ann"]
        failing = await o.inject("pay", {"to": "nobody"})
        await say(o, await asked(o, question.position))
        assert await o.tenant.ended(failing.thread_id, 10)
        assert [attempt for name, _, attempt in trace(o) if name == "nobody"] == [1, 2, 3]
        assert len(await o.records(ApprovalRequested)) == 2


async def test_while_a_human_is_asked_no_ask_that_waits_for_the_call_ages_however_far_away(world: MakeWorld) -> None:
    time = TurnedTime()
    async with world(SOURCE, LISTENERS).running(parts=time.parts()) as o:
        sent = await o.inject("boss", {"text": "ann"})
        question = await asked(o)
        await time.passes(o, 3600)
        await say(o, question)
        assert await answers(o, sent.thread_id) == ["paid 5 to ann"]
        assert await folded_again(o.log) == await folded_live(o)


async def test_once_it_is_approved_the_asks_age_again(world: MakeWorld) -> None:
    time = TurnedTime()
    listeners = {**LISTENERS, "pay": {**LISTENERS["pay"], "timeout_s": 1000}}
    async with world(SOURCE, listeners).running(parts=time.parts()) as o:
        sent = await o.inject("clerk", {"text": "slow"})
        question = await asked(o)
        time.turn(3600)
        await say(o, question)
        await at_gate(o, "pay")
        await time.passes(o, 29)
        assert [record.event.kind for record in await o.records(StepRecorded)] == ["approve"]
        time.turn(2)
        await o.until(StepRecorded, kind="ask")
        open_gate(o, "pay")
        assert await answers(o, sent.thread_id) == ["timeout"]


async def test_a_plain_send_and_a_blocking_handler_wait_too(world: MakeWorld) -> None:
    async with world(SOURCE, LISTENERS).running() as o:
        sent = await o.inject("sender", {"text": ""})
        question = await asked(o)
        await say(o, question)
        assert await answers(o, sent.thread_id) == ["heard paid 1 to post"]
        blocked = await o.inject("block", {"to": "ann"})
        await say(o, await asked(o, question.position), "reject")
        assert await o.tenant.ended(blocked.thread_id, 10)
        assert [reply["code"] for reply in await o.replies(blocked.thread_id)] == ["forbidden"]


async def test_a_reply_to_such_a_listener_needs_no_word(world: MakeWorld) -> None:
    source = (
        SOURCE.replace("key = await metadata.uuid()", "await metadata.ask('teller', Ask('x'))")
        + """
async def teller(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("x"))
"""
    )
    listeners = {**LISTENERS, "pay": {**LISTENERS["pay"], "peers": ["teller"]}, "teller": {}}
    async with world(source, listeners).running() as o:
        sent = await o.inject("pay", {"to": "ann"})
        await say(o, await asked(o))
        assert await o.tenant.ended(sent.thread_id, 10)
        assert len(await o.records(ApprovalRequested)) == 1


async def test_a_shipped_tool_demands_it_where_its_section_says_so(world: MakeWorld) -> None:
    here = world(SOURCE, LISTENERS)
    config = orjson.loads(here.config.read_bytes())
    config["listeners"].append({"name": "key_value_set", "approval": True})
    here.config.write_bytes(orjson.dumps(config))
    async with here.running() as o:
        sent = await o.inject("key_value_set", {"key": "a", "value": "b"})
        await say(o, await asked(o), "reject")
        assert await o.tenant.ended(sent.thread_id, 10)
        assert await o.records(ValueSet) == []
