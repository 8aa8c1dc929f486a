"""Outside effects: kinds, keys, what is recorded of them, and those whose outcome is unknown (G3)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from organism.errors import AlreadyResolved, NotFound
from organism.events.vocabulary import (
    MessageDead,
    MessageRetried,
    MessageStarted,
    StepError,
    StepRecorded,
    StepStarted,
)
from organism.model.commands import ReplayDeadLetter, ResolveIndeterminate
from organism.testing import Running
from organism.views.views import Query
from tests.flows.stage import TurnedTime, answers, at_gate, inject_and_crash_at, open_gate, pass_gate, play
from tests.flows.world import MakeWorld

PAYER = """
async def payer(payload: Ask, metadata: HandlerMetadata):
    try:
        paid = await metadata.effect("pay", pay, kind="{kind}")
    except EffectFailed as error:
        paid = f"failed: {{error}}"
    except EffectError as error:
        paid = f"error: {{error}}"
        {on_error}
    {after}
    return HandlerResponse.respond(Told(str(paid)))

async def pay(key: str):
    TRACE.append(key)
    {effect}
"""


def payer(kind: str = "idempotent", effect: str = "return 'paid'", after: str = "pass", on_error: str = "pass") -> str:
    """A handler with one effect, and what comes after it."""
    return PAYER.format(kind=kind, effect=effect, after=after, on_error=on_error)


@pytest.mark.parametrize("kind", ["pure", "idempotent", "unsafe"])
async def test_an_effect_runs_once_with_a_key_and_its_result_is_recorded(world: MakeWorld, kind: str) -> None:
    async with world(payer(kind, "return {'at': (1, None)}"), {"payer": {}}).running() as o:
        outcome = await o.inject("payer", {"text": "x"}, wait=True)
        recorded = (await o.records(StepRecorded))[0]
        begun = await o.records(StepStarted)
        assert play(o)["TRACE"] == [f"{outcome.message_id}/pay"]
    assert outcome.replies == ({"text": "{'at': [1, None]}"},)
    assert recorded.content is not None
    assert orjson.loads(recorded.content.json) == {"at": [1, None]}
    assert len(begun) == (0 if kind == "pure" else 1)


@pytest.mark.parametrize("kind", ["pure", "idempotent"])
async def test_an_effect_that_a_crash_interrupts_runs_again_with_the_same_key(world: MakeWorld, kind: str) -> None:
    made = world(payer(kind, "await gate('pay'); return 'paid'"), {"payer": {}})
    async with made.running() as o:
        injected = await o.inject("payer", {"text": "x"})
        await at_gate(o, "pay")
        key = play(o)["TRACE"][0]
        await o.crash()
    async with made.running() as o:
        await pass_gate(o, "pay")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert play(o)["TRACE"] == [key]
        assert await o.replies(injected.thread_id) == ({"text": "paid"},)


@pytest.mark.parametrize("kind", ["pure", "idempotent", "unsafe"])
async def test_an_effect_that_is_recorded_is_never_repeated(world: MakeWorld, kind: str) -> None:
    made = world(payer(kind, after="await gate('after')"), {"payer": {}})
    injected = await inject_and_crash_at(made, "after", "payer")
    async with made.running() as o:
        await pass_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert play(o)["TRACE"] == []
        assert await o.replies(injected.thread_id) == ({"text": "paid"},)


@pytest.mark.parametrize(
    ("effect", "reason"),
    [
        ("return object()", "cannot be kept"),
        ("return {1: 2}", "cannot be kept"),
        ("return 'x' * 2000", "max_payload_bytes is 1000"),
        ("return chr(0xd800)", "cannot be kept"),
        ("return [None, {'a': float('nan')}]", "cannot be kept"),
        ("return (1, 1e999)", "cannot be kept"),
    ],
)
async def test_a_result_that_cannot_be_kept_fails_the_effect_for_good(
    world: MakeWorld, effect: str, reason: str
) -> None:
    made = world(
        payer("idempotent", effect, after="if metadata.attempt < 2: raise ValueError('again')"),
        {"payer": {}},
        limits={"max_payload_bytes": 1000},
    )
    async with made.running() as o:
        outcome = await o.inject("payer", {"text": "x"}, wait=True)
        assert len(play(o)["TRACE"]) == 1
        assert len(await o.records(MessageRetried)) == 1
    assert outcome.replies[0]["text"].startswith("failed: The effect 'pay' gave a result that cannot be kept")
    assert reason in outcome.replies[0]["text"]


@pytest.mark.parametrize("kind", ["pure", "idempotent", "unsafe"])
async def test_an_effect_that_raised_runs_again_with_the_same_key(world: MakeWorld, kind: str) -> None:
    effect = "if len(TRACE) == 1: raise ConnectionError('no answer')\n    return 'paid'"
    async with world(payer(kind, effect, on_error="raise"), {"payer": {}}).running() as o:
        outcome = await o.inject("payer", {"text": "x"}, wait=True)
        recorded = [record.event.error for record in await o.records(StepRecorded)]
        assert play(o)["TRACE"] == [f"{outcome.message_id}/pay"] * 2
    assert outcome.replies == ({"text": "paid"},)
    assert recorded == [StepError("effect_error", "ConnectionError: no answer"), None]


async def test_after_a_restart_an_effect_that_raised_raises_the_same_and_does_not_run(world: MakeWorld) -> None:
    made = world(payer("unsafe", "raise ConnectionError('no answer')", after="await gate('after')"), {"payer": {}})
    injected = await inject_and_crash_at(made, "after", "payer")
    async with made.running() as o:
        await pass_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert play(o)["TRACE"] == []
        assert await o.replies(injected.thread_id) == ({"text": "error: ConnectionError: no answer"},)


async def indeterminate(o: Running) -> list[dict[str, Any]]:
    """What waits for an operator's word."""
    found: list[dict[str, Any]] = orjson.loads((await o.views.rows("indeterminate", Query(limit=10))).rows)
    return found


UNSAFE = payer("unsafe", "await gate('pay'); return 'paid'")
RESOLUTIONS = pytest.mark.parametrize(
    ("outcome", "result", "text", "runs"),
    [("done", "by hand", "by hand", 0), ("redo", None, "paid", 1), ("fail", None, "failed: ", 0)],
)


@RESOLUTIONS
async def test_an_unsafe_effect_whose_handler_timed_out_waits_for_an_operator(
    world: MakeWorld, outcome: Any, result: str | None, text: str, runs: int
) -> None:
    time = TurnedTime()
    async with world(UNSAFE, {"payer": {"timeout_s": 10}}).running(parts=time.parts()) as o:
        injected = await o.inject("payer", {"text": "x"})
        await at_gate(o, "pay")
        time.turn(11)
        await o.until(MessageRetried)
        await time.passes(o, 11)
        assert len(await o.records(MessageStarted)) == 1
        assert (await o.thread(injected.thread_id))["status"] == "active"
        waiting = await indeterminate(o)
        open_gate(o, "pay")
        resolve = ResolveIndeterminate(id=waiting[0]["id"], outcome=outcome, result=result)
        results = await asyncio.gather(o.do(resolve), o.do(resolve), return_exceptions=True)
        assert [isinstance(result, AlreadyResolved) for result in results] == [False, True]
        assert await o.tenant.ended(injected.thread_id, 10)
        assert (await o.replies(injected.thread_id))[0]["text"].startswith(text)
        assert len(play(o)["TRACE"]) == 1 + runs
        assert await indeterminate(o) == []
        with pytest.raises(NotFound):
            await o.do(ResolveIndeterminate(id="msg-nowhere:1", outcome="done"))
    assert [(row["id"], row["agent"], row["key"]) for row in waiting] == [(f"{injected.message_id}:1", "payer", "pay")]


async def test_an_unsafe_effect_that_cannot_tell_waits_for_an_operator(world: MakeWorld) -> None:
    source = """
from organism import EffectUnknown

async def payer(payload: Ask, metadata: HandlerMetadata):
    async def pay(key):
        TRACE.append(key)
        raise EffectUnknown("the line went dead")
    try:
        paid = await metadata.effect("pay", pay, kind=payload.text)
    except Exception as error:
        paid = str(error)
    return HandlerResponse.respond(Told(paid))
"""
    async with world(source, {"payer": {}}).running() as o:
        injected = await o.inject("payer", {"text": "unsafe"})
        retried = await o.until(MessageRetried)
        assert retried.event.error == "OutcomeUnknown: the line went dead"
        (waiting,) = await indeterminate(o)
        await o.do(ResolveIndeterminate(id=waiting["id"], outcome="done", result="paid after all"))
        assert await answers(o, injected.thread_id) == ["paid after all"]
        assert len(play(o)["TRACE"]) == 1
        failed = await o.inject("payer", {"text": "idempotent"}, wait=True)
        assert failed.replies == ({"text": "EffectUnknown: the line went dead"},)


async def test_a_thread_waits_as_long_as_nobody_says_what_became_of_its_effect(world: MakeWorld) -> None:
    made = world(UNSAFE, {"payer": {}})
    async with made.running() as o:
        injected = await o.inject("payer", {"text": "x"})
        behind = await o.inject("payer", {"text": "behind"}, thread_id=injected.thread_id)
        await at_gate(o, "pay")
        await o.crash()
    for _ in range(2):
        async with made.running() as o:
            assert len(await o.records(MessageStarted)) == 1
            assert [row["id"] for row in await indeterminate(o)] == [f"{injected.message_id}:1"]
            await o.crash()
    async with made.running() as o:
        open_gate(o, "pay")
        assert len([record for record in await o.records(StepStarted) if record.event.unknown]) == 1
        await o.do(ResolveIndeterminate(id=f"{injected.message_id}:1", outcome="redo"))
        assert await o.tenant.ended(injected.thread_id, 10)
        started = [record.event.message for record in await o.records(MessageStarted)]
    assert started == [injected.message_id, injected.message_id, behind.message_id]


async def test_the_effects_of_a_replayed_dead_letter_keep_their_keys(world: MakeWorld) -> None:
    made = world(payer(after="if payload.text == 'bad': raise ValueError('bad')"), {"payer": {}}, retry={"attempts": 1})
    async with made.running() as o:
        first = await o.inject("payer", {"text": "bad"}, wait=True)
        again = await o.do(ReplayDeadLetter(message_id=first.message_id, json={"text": "bad"}))
        await o.until(MessageDead, message=again.message_id)  # type: ignore[union-attr]  # it is there
        await o.do(ReplayDeadLetter(message_id=again.message_id, json={"text": "good"}))  # type: ignore[union-attr]  # as above
        assert await o.tenant.ended(first.thread_id, 10)
        assert play(o)["TRACE"] == [f"{first.message_id}/pay"] * 3


async def test_whom_a_replayed_dead_letter_asks_again_keeps_its_keys_too(world: MakeWorld) -> None:
    source = """
    from organism import NonRetryable

    async def outer(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(await metadata.ask("middle", payload))

    async def middle(payload: Ask, metadata: HandlerMetadata):
        for each in "ab":
            await metadata.ask("inner", Ask(each))
        if len(TRACE) < 4:
            raise NonRetryable("not yet")
        return HandlerResponse.respond(await metadata.ask("inner", Ask("c")))

    async def inner(payload: Ask, metadata: HandlerMetadata):
        async def write(key):
            TRACE.append(key)
        await metadata.effect("write", write)
        return HandlerResponse.respond(Told(payload.text))
    """
    made = world(source, {"outer": {"peers": ["middle"]}, "middle": {"peers": ["inner"]}, "inner": {}})
    async with made.running() as o:
        outcome = await o.inject("outer", {"text": "x"}, wait=True)
        dead = (await o.records(MessageDead))[0].event
        await o.do(ReplayDeadLetter(message_id=dead.message))
        assert await answers(o, outcome.thread_id) == ["c"]
        first, again = play(o)["TRACE"][:2], play(o)["TRACE"][2:]
    assert first == again[:2]
    assert again[2] not in first
