"""Steps: each is recorded once, given back after a restart, and never given to another step (G3)."""

from __future__ import annotations

import asyncio

import pytest

from organism.errors import AlreadyResolved
from organism.model.commands import ResolveApproval, ResolveIndeterminate
from tests.flows.stage import answers
from tests.flows.world import MakeWorld

ALL_STEPS = """
CALLS = []

async def stepper(payload: Ask, metadata: HandlerMetadata):
    told = await metadata.ask("echo", Ask("hi"))
    at, name, chance = await metadata.now(), await metadata.uuid(), await metadata.random()
    done = await metadata.effect("write", write)
    if payload.text == "stop" and len(CALLS) == 1:
        await asyncio.sleep(60)
    return HandlerResponse.respond(Told(f"{told.text} {at.isoformat()} {name} {chance} {done}"))

async def write(key: str):
    CALLS.append(key)
    return {"n": len(CALLS)}

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text.upper()))
"""


async def test_a_restart_gives_back_what_each_step_recorded(world: MakeWorld) -> None:
    made = world(ALL_STEPS, {"stepper": {"peers": ["echo"]}, "echo": {}})
    async with made.running() as o:
        injected = await o.inject("stepper", {"text": "stop"})
        await o.until("step_recorded", thread=injected.thread_id, kind="effect")
        recorded = [(event.data["step"], event.data["kind"]) for event in await o.events("step_recorded")]
        await o.crash()
    async with made.running() as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        after = [(event.data["step"], event.data["kind"]) for event in await o.events("step_recorded")]
        texts = await o.replies(injected.thread_id)
        now = next(event for event in await o.events("step_recorded") if event.data["kind"] == "now")
    assert recorded == after == [(1, "ask"), (2, "now"), (3, "uuid"), (4, "random"), (5, "effect")]
    assert texts[0]["text"].startswith("HI ")
    assert now.content is not None
    assert texts[0]["text"].endswith("{'n': 1}")


async def test_an_effect_gets_the_same_key_in_every_attempt(world: MakeWorld) -> None:
    made = world(
        """
        KEYS = []

        async def retrier(payload: Ask, metadata: HandlerMetadata):
            await metadata.effect("pay", pay)
            return HandlerResponse.respond(Told(str(len(set(KEYS))) + str(len(KEYS))))

        async def pay(key: str):
            KEYS.append(key)
            if len(KEYS) < 3:
                raise ConnectionError("no answer")
            return "paid"
        """,
        {"retrier": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("retrier", {"text": ""}, wait=True)
    assert outcome.replies == ({"text": "13"},)


UNSAFE = """
DONE = []

async def spender(payload: Ask, metadata: HandlerMetadata):
    try:
        paid = await metadata.effect("pay", pay, kind="unsafe")
    except EffectFailed:
        paid = "failed"
    return HandlerResponse.respond(Told(f"{paid} after {len(DONE)}"))

async def pay(key: str):
    DONE.append(key)
    await asyncio.sleep(60)
    return "paid"
"""


@pytest.mark.parametrize(
    ("outcome", "result", "text"),
    [("done", "by hand", "by hand after 0"), ("redo", None, "paid after 1"), ("fail", None, "failed after 0")],
)
async def test_an_unsafe_effect_found_unfinished_waits_for_an_operator(
    world: MakeWorld, outcome: str, result: str | None, text: str
) -> None:
    made = world(UNSAFE, {"spender": {}})
    async with made.running() as o:
        injected = await o.inject("spender", {"text": ""})
        await o.until("step_started", thread=injected.thread_id, kind="effect")
        await o.crash()
    made.write(UNSAFE.replace("await asyncio.sleep(60)", "pass"))
    async with made.running() as o:
        assert (await o.thread(injected.thread_id))["status"] == "active"
        assert len(await o.events("message_started", thread=injected.thread_id)) == 1
        effect = f"{injected.message_id}:1"
        resolve = ResolveIndeterminate(id=effect, outcome=outcome, result=result)  # type: ignore[arg-type]  # a parameter
        await o.do(resolve)
        assert await answers(o, injected.thread_id) == [text]
        with pytest.raises(AlreadyResolved):
            await o.do(resolve)


async def test_a_step_that_does_not_fit_its_record_stops_the_handling(world: MakeWorld) -> None:
    source = """
    async def changer(payload: Ask, metadata: HandlerMetadata):
        await metadata.now()
        await asyncio.sleep(60)
    """
    made = world(source, {"changer": {}})
    async with made.running() as o:
        injected = await o.inject("changer", {"text": ""})
        await o.until("step_recorded", thread=injected.thread_id)
        await o.crash()
    made.write(source.replace("metadata.now()", "metadata.random()"))
    async with made.running() as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        dead = (await o.events("message_dead"))[0].data
    assert dead["code"] == "replay_diverged"
    assert "recorded as now" in dead["reason"]
    assert "now it is random" in dead["reason"]


async def test_an_ask_that_comes_back_after_a_restart_is_sent_once(world: MakeWorld) -> None:
    source = """
    async def asker(payload: Ask, metadata: HandlerMetadata):
        told = await metadata.ask("slow", Ask("x"))
        return HandlerResponse.respond(told)

    async def slow(payload: Ask, metadata: HandlerMetadata):
        await asyncio.sleep(60)
        return HandlerResponse.respond(Told("at last"))
    """
    made = world(source, {"asker": {"peers": ["slow"]}, "slow": {}})
    async with made.running() as o:
        injected = await o.inject("asker", {"text": ""})
        await o.until("message_started", agent="slow")
        await o.crash()
    made.write(source.replace("asyncio.sleep(60)", "asyncio.sleep(0)"))
    async with made.running() as o:
        assert await answers(o, injected.thread_id) == ["at last"]
        requests = [event for event in await o.events("message_sent") if event.data["to"] == "slow"]
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("target", "timeout", "code"),
    [
        ("nobody", 5, "routing"),
        ("silent", 5, "no_reply"),
        ("stuck", 0.1, "timeout"),
        ("broken", 5, "dead_letter"),
        ("far", 5, "no_reply"),
    ],
)
async def test_an_ask_without_a_reply_says_why(world: MakeWorld, target: str, timeout: float, code: str) -> None:
    made = world(
        f"""
        async def asker(payload: Ask, metadata: HandlerMetadata):
            try:
                told = await metadata.ask(payload.text, Ask("x"), timeout={timeout})
            except AskError as error:
                return HandlerResponse.respond(Told(error.code))
            return HandlerResponse.respond(told)

        async def silent(payload: Ask, metadata: HandlerMetadata):
            return None

        async def stuck(payload: Ask, metadata: HandlerMetadata):
            await asyncio.sleep(60)

        async def broken(payload: Ask, metadata: HandlerMetadata):
            raise ValueError("broken")

        async def far(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse(Ask("on"), to="silent")
        """,
        {"asker": {"peers": ["silent", "stuck", "broken", "far"]}, "silent": {}, "stuck": {}, "broken": {},
         "far": {"peers": ["silent"]}},
    )  # fmt: skip
    async with made.running() as o:
        injected = await o.inject("asker", {"text": target})
        recorded = await o.until("step_recorded", thread=injected.thread_id)
        await o.until("message_handled", thread=injected.thread_id, agent="asker")
        assert (await o.replies(injected.thread_id))[0] == {"text": code}
    assert recorded.data["error"]["code"] == code


async def test_asks_may_overlap(world: MakeWorld) -> None:
    made = world(
        """
        async def asker(payload: Ask, metadata: HandlerMetadata):
            told = await asyncio.gather(*(metadata.ask("echo", Ask(str(n))) for n in range(5)))
            return HandlerResponse.respond(Told(" ".join(each.text for each in told)))

        async def echo(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told(payload.text))
        """,
        {"asker": {"peers": ["echo"]}, "echo": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("asker", {"text": ""}, wait=True)
    assert outcome.replies == ({"text": "0 1 2 3 4"},)


APPROVER = """
async def approver(payload: Ask, metadata: HandlerMetadata):
    approval = await metadata.approve({"pay": 5})
    return HandlerResponse.respond(Told(f"{approval.decision} {approval.edits} {approval.comment}"))
"""


async def test_a_human_decides_once_and_the_decision_outlives_a_restart(world: MakeWorld) -> None:
    made = world(APPROVER, {"approver": {}})
    async with made.running() as o:
        injected = await o.inject("approver", {"text": ""})
        requested = await o.until("approval_requested", thread=injected.thread_id)
        await o.crash()
    async with made.running() as o:
        approval = requested.data["approval"]
        decide = ResolveApproval(approval=approval, decision="approve", edits={"pay": 4}, comment="less")
        results = await asyncio.gather(o.do(decide), o.do(decide), return_exceptions=True)
        assert [isinstance(result, AlreadyResolved) for result in results] == [False, True]
        assert await answers(o, injected.thread_id) == ["approve {'pay': 4} less"]


async def test_an_approval_that_nobody_gives_expires(world: MakeWorld) -> None:
    async with world(APPROVER, {"approver": {}}, limits={"approval_expires_s": 0.05}).running() as o:
        outcome = await o.inject("approver", {"text": ""}, wait=True)
    assert outcome.replies == ({"text": "expired None "},)


async def test_a_reminder_nudges_once_what_it_waits_for_has_passed(world: MakeWorld) -> None:
    made = world(
        """
        async def planner(payload: Ask | Told, metadata: HandlerMetadata):
            if isinstance(payload, Told):
                return HandlerResponse.respond(Told(f"[{metadata.todo_nudge.split(' (')[0]}]"))
            wanted = TodoUntil(wait_for="Told", from_listener="worker", description="check")
            registered = await metadata.ask("system.todo", wanted)
            assert isinstance(registered, TodoRegistered)
            return HandlerResponse(Ask("do it"), to="worker")

        async def worker(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told("done"))
        """,
        {"planner": {"peers": ["worker"]}, "worker": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("planner", {"text": ""}, wait=True)
    assert outcome.replies == ({"text": "[check]"},)
