"""Threads: born by an injection, active while anything in them is open, ended by what closed the last."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from organism.errors import AlreadyResolved, InvalidRequest, NotFound
from organism.events.vocabulary import ApprovalRequested, MessageDead, MessageRetried, MessageSent, MessageStarted
from organism.model.commands import (
    DiscardDeadLetter,
    PauseThread,
    ReplayDeadLetter,
    ResolveApproval,
    ResumeThread,
)
from organism.testing import Running
from organism.views.views import Query
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.world import MakeWorld

SOURCE = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    if payload.text == "gate":
        await gate("gate")
    if payload.text == "bad":
        raise ValueError("it is bad")
    if payload.text == "refused":
        return [HandlerResponse(Ask("x"), to="nobody"), HandlerResponse.respond(Told("ok"))]
    return HandlerResponse.respond(Told(payload.text))
"""


async def status(o: Running, thread: str) -> tuple[str, str | None]:
    """Its status and error."""
    row = await o.thread(thread)
    return row["status"], row["error"]


async def dead_letters(o: Running) -> list[dict[str, Any]]:
    """The open ones."""
    found: list[dict[str, Any]] = orjson.loads((await o.views.rows("dead_letters", Query(limit=50))).rows)
    return found


async def test_an_injection_begins_a_thread_and_its_last_end_ends_it(world: MakeWorld) -> None:
    async with world(SOURCE, {"worker": {}}).running() as o:
        first = await o.inject("worker", {"text": "a"}, wait=True)
        second = await o.inject("worker", {"text": "a"}, wait=True)
        records = await o.records(thread=first.thread_id)
        assert await status(o, first.thread_id) == ("completed", None)
    assert first.thread_id != second.thread_id
    assert (records[0].type, records[-1].type) == ("thread_created", "thread_completed")
    assert records[-1].position == records[-2].position + 1
    assert records[-1].at == records[-2].at


async def test_a_thread_is_active_while_a_message_a_retry_or_an_approval_is_open(world: MakeWorld) -> None:
    made = world(
        SOURCE + "\nasync def approver(payload: Ask, metadata: HandlerMetadata):\n    await metadata.approve({})\n",
        {"worker": {}, "approver": {}},
        retry={"base_delay_s": 60, "max_delay_s": 60},
    )
    async with made.running() as o:
        running = await o.inject("worker", {"text": "gate"})
        retrying = await o.inject("worker", {"text": "bad"})
        waiting = await o.inject("approver", {"text": "x"})
        await o.until(MessageRetried)
        requested = await o.until(ApprovalRequested)
        for each in (running, retrying, waiting):
            assert await status(o, each.thread_id) == ("active", None)
        await o.do(ResolveApproval(approval=requested.event.approval, decision="reject"))
        assert await o.tenant.ended(waiting.thread_id, 10)
        assert await status(o, waiting.thread_id) == ("completed", None)


@pytest.mark.parametrize(
    ("texts", "ended"),
    [
        (["a"], ("completed", None)),
        (["refused"], ("completed", None)),
        (["bad"], ("error", "ValueError: it is bad")),
        (["bad", "a"], ("error", "ValueError: it is bad")),
        (["a", "bad"], ("error", "ValueError: it is bad")),
    ],
)
async def test_how_a_thread_ends(world: MakeWorld, texts: list[str], ended: tuple[str, str | None]) -> None:
    """The messages are open together, so that they end in one life of the thread."""
    async with world(SOURCE, {"worker": {}}, retry={"attempts": 1}).running() as o:
        first = await o.inject("worker", {"text": "gate"})
        for text in texts:
            await o.inject("worker", {"text": text}, thread_id=first.thread_id)
        open_gate(o, "gate")
        assert await o.tenant.ended(first.thread_id, 10)
        assert await status(o, first.thread_id) == ended


@pytest.mark.parametrize("first", ["a", "bad"])
async def test_an_injection_makes_an_ended_thread_active_again(world: MakeWorld, first: str) -> None:
    async with world(SOURCE, {"worker": {}}, retry={"attempts": 1}).running() as o:
        thread = (await o.inject("worker", {"text": first}, wait=True)).thread_id
        await o.inject("worker", {"text": "gate"}, thread_id=thread)
        await at_gate(o, "gate")
        assert await status(o, thread) == ("active", None)
        open_gate(o, "gate")
        assert await o.tenant.ended(thread, 10)
        kinds = [record.type for record in await o.records(thread=thread)]
        assert (await status(o, thread))[0] == ("completed" if first == "a" else "error")
    assert kinds.count("thread_reopened") == 1
    assert kinds.index("thread_reopened") < kinds.index("message_sent", kinds.index("thread_reopened"))


async def test_a_failed_thread_is_completed_once_its_dead_letter_was_replayed_or_discarded(world: MakeWorld) -> None:
    async with world(SOURCE, {"worker": {}}, retry={"attempts": 1}).running() as o:
        first = await o.inject("worker", {"text": "bad"}, wait=True)
        second = await o.inject("worker", {"text": "bad"}, thread_id=first.thread_id, wait=True)
        await o.do(ReplayDeadLetter(message_id=first.message_id, json={"text": "good"}))
        assert await o.tenant.ended(first.thread_id, 10)
        assert await status(o, first.thread_id) == ("error", "ValueError: it is bad")
        await o.do(DiscardDeadLetter(message_id=second.message_id))
        await o.inject("worker", {"text": "a"}, thread_id=first.thread_id, wait=True)
        assert await status(o, first.thread_id) == ("completed", None)


async def test_a_refused_send_can_be_replayed_and_is_judged_by_today_s_rules(world: MakeWorld) -> None:
    source = """
    async def sender(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse(Ask("kept"), to="taker")

    async def taker(payload: Ask, metadata: HandlerMetadata):
        TRACE.append((metadata.from_id, payload.text))
        return HandlerResponse.respond(Told("taken"))
    """
    made = world(source, {"sender": {}, "taker": {}})
    async with made.running() as o:
        thread = (await o.inject("sender", {"text": "x"}, wait=True)).thread_id
        letter = (await dead_letters(o))[0]
        replay = ReplayDeadLetter(message_id=letter["id"])
        with pytest.raises(InvalidRequest, match="not among its peers"):
            await o.do(replay)
        made.write(source, {"sender": {"peers": ["taker"]}, "taker": {}})
        await o.organism.reload()
        await o.do(replay)
        assert await o.tenant.ended(thread, 10)
        assert play(o)["TRACE"] == [("sender", "kept")]
        assert await dead_letters(o) == []
        assert await status(o, thread) == ("completed", None)
    assert (letter["code"], letter["from"], letter["to"], letter["attempts"]) == ("routing", "sender", "taker", 0)


async def test_a_pause_outlives_the_end_of_its_thread(world: MakeWorld) -> None:
    async with world(SOURCE, {"worker": {}}).running() as o:
        thread = (await o.inject("worker", {"text": "gate"})).thread_id
        await at_gate(o, "gate")
        await o.do(PauseThread(thread_id=thread))
        open_gate(o, "gate")
        assert await o.tenant.ended(thread, 10)
        await o.inject("worker", {"text": "later"}, thread_id=thread)
        resumed = await o.do(ResumeThread(thread_id=thread))
        assert await o.tenant.ended(thread, 10)
        started = (await o.records(MessageStarted))[-1]
    assert started.position > resumed.position


async def test_every_message_knows_its_cause_and_its_root(world: MakeWorld) -> None:
    made = world(
        """
        async def first(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse(Ask("x"), to="second")

        async def second(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told("x"))
        """,
        {"first": {"peers": ["second"]}, "second": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("first", {"text": "x"}, wait=True)
        sent = await o.records(MessageSent)
    ids = [record.event.message for record in sent]
    assert [record.cause for record in sent] == [None, *ids[:-1]]
    assert {record.correlation for record in sent} == {outcome.message_id}


FLAKY = """
TRIES = []

async def flaky(payload: Ask, metadata: HandlerMetadata):
    TRIES.append(metadata.attempt)
    if len(TRIES) < int(payload.text):
        raise RuntimeError(f"not yet, attempt {metadata.attempt}")
    return HandlerResponse.respond(Told(str(TRIES)))
"""


async def test_a_dead_letter_is_replayed_with_an_edited_payload_to_the_same_caller(world: MakeWorld) -> None:
    made = world(
        FLAKY
        + """
async def caller(payload: Ask | Told, metadata: HandlerMetadata):
    if isinstance(payload, Told):
        return HandlerResponse.respond(Told("caller got " + payload.text))
    return HandlerResponse(Ask(payload.text), to="flaky")
""",
        {"flaky": {}, "caller": {"peers": ["flaky"]}},
    )
    async with made.running() as o:
        outcome = await o.inject("caller", {"text": "99"}, wait=True)
        dead = (await o.records(MessageDead))[0].event.message
        again = await o.do(ReplayDeadLetter(message_id=dead, json={"text": "1"}))
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert (await o.thread(outcome.thread_id))["status"] == "completed"
        assert (await o.replies(outcome.thread_id))[-1] == {"text": "caller got [1, 2, 3, 1]"}
        with pytest.raises(AlreadyResolved, match="replayed already"):
            await o.do(ReplayDeadLetter(message_id=dead))
    assert again.position > outcome.position


async def test_a_discarded_dead_letter_is_gone(world: MakeWorld) -> None:
    async with world(FLAKY, {"flaky": {}}).running() as o:
        await o.inject("flaky", {"text": "99"}, wait=True)
        dead = (await o.records(MessageDead))[0].event.message
        await o.do(DiscardDeadLetter(message_id=dead))
        assert await o.views.row("dead_letters", dead) is None
        for act in (ReplayDeadLetter, DiscardDeadLetter):
            with pytest.raises(AlreadyResolved, match="discarded already"):
                await o.do(act(message_id=dead))
            with pytest.raises(NotFound):
                await o.do(act(message_id="msg-none"))
