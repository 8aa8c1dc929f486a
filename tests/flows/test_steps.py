"""Steps: recorded once, given back after failures and restarts, never to another step; attempts (G2, G3, G8)."""

from __future__ import annotations

from typing import Any

import pytest

from organism.events.vocabulary import MessageDead, MessageRetried, MessageSent, MessageStarted, StepRecorded
from organism.model.commands import ReplayDeadLetter
from tests.flows.stage import TurnedTime, answers, inject_and_crash_at, open_gate, pass_gate, play
from tests.flows.world import MakeWorld

ALL_STEPS = """
CALLS = []

async def stepper(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("echo", Ask("hi"))
    at, name, chance = await metadata.now(), await metadata.uuid(), await metadata.random()
    done = await metadata.effect("write", write)
    if payload.text == "stop" and len(CALLS) == 1:
        await asyncio.sleep(60)
    return HandlerResponse.respond(Told(f"{reply.text} {at.isoformat()} {name} {chance} {done}"))

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
        await o.until(StepRecorded, thread=injected.thread_id, kind="effect")
        recorded = [(record.event.step, record.event.kind) for record in await o.records(StepRecorded)]
        await o.crash()
    async with made.running() as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        after = [(record.event.step, record.event.kind) for record in await o.records(StepRecorded)]
        texts = await o.replies(injected.thread_id)
        now = next(record for record in await o.records(StepRecorded) if record.event.kind == "now")
    assert recorded == after == [(1, "ask"), (2, "now"), (3, "uuid"), (4, "random"), (5, "effect")]
    assert texts[0]["text"].startswith("HI ")
    assert now.content is not None
    assert texts[0]["text"].endswith("{'n': 1}")


VALUES = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("echo", Ask("x"))
    values = (reply.text, await metadata.now(), await metadata.uuid(), await metadata.random())
    TRACE.append(values)
    {between}
    if metadata.attempt < 3:
        raise ValueError("not yet")
    return HandlerResponse.respond(Told(str(values)))

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text + str(len(TRACE))))
"""


async def test_a_new_attempt_is_given_what_succeeded(world: MakeWorld) -> None:
    async with world(VALUES.format(between="pass"), {"worker": {"peers": ["echo"]}, "echo": {}}).running() as o:
        await o.inject("worker", {"text": "x"}, wait=True)
        first, *others = play(o)["TRACE"]
        asked = [record.event.to for record in await o.records(MessageSent)]
    assert others == [first, first]
    assert asked.count("echo") == 1


async def test_time_chance_and_names_differ_between_messages(world: MakeWorld) -> None:
    made = world(VALUES.format(between="pass").replace("< 3", "< 1"), {"worker": {"peers": ["echo"]}, "echo": {}})
    async with made.running() as o:
        for _ in range(2):
            await o.inject("worker", {"text": "x"}, wait=True)
        first, second = play(o)["TRACE"]
    assert all(one != other for one, other in zip(first, second, strict=True))
    assert first[1].utcoffset().total_seconds() == 0
    assert 0 <= first[3] < 1


@pytest.mark.parametrize("attempts", [1, 4])
async def test_a_handling_is_attempted_as_often_as_the_organism_says(world: MakeWorld, attempts: int) -> None:
    made = world(
        """
        async def broken(payload: Ask, metadata: HandlerMetadata):
            TRACE.append(metadata.attempt)
            raise ValueError("broken")
        """,
        {"broken": {}},
        retry={"attempts": attempts, "base_delay_s": 0.01},
    )
    async with made.running() as o:
        await o.inject("broken", {"text": "x"}, wait=True)
        dead = (await o.records(MessageDead))[0].event
        assert play(o)["TRACE"] == list(range(1, attempts + 1))
    assert dead.attempts == attempts


async def test_failed_attempts_are_counted_across_crashes(world: MakeWorld) -> None:
    source = """
    async def broken(payload: Ask, metadata: HandlerMetadata):
        raise ValueError(f"attempt {metadata.attempt}")
    """
    made = world(source, {"broken": {}}, retry={"base_delay_s": 60, "max_delay_s": 60})
    time = TurnedTime()
    async with made.running(parts=time.parts()) as o:
        thread = (await o.inject("broken", {"text": "x"})).thread_id
        await o.until(MessageRetried)
        await o.crash()
    for seed in (2, 3):
        async with made.running(parts=time.parts(seed)) as o:
            time.turn(61)
            await o.until(MessageRetried if seed == 2 else MessageDead, after=o.log.head)
            await o.crash()
    async with made.running(parts=time.parts(4)) as o:
        dead = (await o.records(MessageDead))[0].event
        assert (await o.thread(thread))["status"] == "error"
        assert len(await o.records(MessageStarted)) == 3
    assert (dead.attempts, dead.reason) == (3, "ValueError: attempt 3")


async def test_a_retry_that_is_due_later_is_not_earlier_after_a_restart(world: MakeWorld) -> None:
    made = world(
        "async def broken(payload: Ask, metadata: HandlerMetadata):\n    raise ValueError\n",
        {"broken": {}},
        retry={"base_delay_s": 60, "max_delay_s": 60},
    )
    time = TurnedTime()
    async with made.running(parts=time.parts()) as o:
        await o.inject("broken", {"text": "x"})
        await o.until(MessageRetried)
        await o.crash()
    async with made.running(parts=time.parts(2)) as o:
        await time.passes(o, 55)
        assert len(await o.records(MessageStarted)) == 1
        time.turn(6)
        second = await o.until(MessageStarted, attempt=2)
    assert second.event.after == "retry"


DIVERGING = """
async def worker{number}(payload: Ask, metadata: HandlerMetadata):
    try:
        {first}
    except BaseException:
        {swallow}
    {second}
    await gate("end")
    return HandlerResponse.respond(Told("end"))
"""
HELPERS = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(payload)

async def touch(key: str):
    TRACE.append(key)
"""
CHANGES = [
    ("await metadata.now()", "await metadata.uuid()", "now", "uuid"),
    ('await metadata.ask("echo", Ask("x"))', 'await metadata.ask("echo", Ask("y"))', "ask", "ask"),
    ('await metadata.ask("echo", Ask("x"))', 'await metadata.ask("sink", Ask("x"))', "ask", "ask"),
    ('await metadata.effect("a", touch)', 'await metadata.effect("b", touch)', "effect", "effect"),
    ('await metadata.effect("a", touch)', 'await metadata.effect("a", touch, kind="pure")', "effect", "effect"),
    ("await metadata.random()", 'await metadata.effect("a", touch)', "random", "effect"),
]


def diverging(*firsts: str, second: str = "pass", swallow: str = "raise") -> str:
    """Handlers ``worker0``, ``worker1`` … whose first steps are these."""
    made = (DIVERGING.format(number=n, first=first, second=second, swallow=swallow) for n, first in enumerate(firsts))
    return HELPERS + "".join(made)


async def test_a_step_that_does_not_fit_its_record_stops_the_handling_and_names_both(world: MakeWorld) -> None:
    workers: dict[str, dict[str, Any]] = {f"worker{n}": {"peers": ["echo", "sink"]} for n in range(len(CHANGES))}
    made = world(diverging(*(before for before, *_ in CHANGES)), {**workers, "echo": {}, "sink": {"handler": "echo"}})
    async with made.running() as o:
        injected = [await o.inject(worker, {"text": "x"}) for worker in workers]
        for each in injected:
            await o.until(StepRecorded, thread=each.thread_id)
        await o.crash()
    made.write(diverging(*(after for _, after, *_ in CHANGES), second="await metadata.effect('never', touch)"))
    async with made.running() as o:
        for each, (*_, recorded, now) in zip(injected, CHANGES, strict=True):
            assert await o.tenant.ended(each.thread_id, 10)
            (dead,) = await o.records(MessageDead, thread=each.thread_id)
            assert dead.event.code == "replay_diverged"
            was, came = dead.event.reason.split(";")
            assert was.startswith(f"Step 1 is recorded as {recorded} with input ")
            assert came.startswith(f" now it is {now} with input ")
        assert play(o)["TRACE"] == []
        assert len(await o.records(MessageRetried)) == 0
        open_gate(o, "end")
        await o.do(ReplayDeadLetter(message_id=injected[0].message_id))
        assert await o.tenant.ended(injected[0].thread_id, 10)
        assert (await o.thread(injected[0].thread_id))["status"] == "completed"


async def test_a_handler_that_swallows_its_divergence_answers_nothing(world: MakeWorld) -> None:
    made = world(diverging("await metadata.now()", swallow="pass"), {"worker0": {}})
    injected = await inject_and_crash_at(made, "end", "worker0")
    made.write(diverging("await metadata.uuid()", second="return None", swallow="pass"))
    async with made.running() as o:
        assert await answers(o, injected.thread_id) == []
        assert [record.event.code for record in await o.records(MessageDead)] == ["replay_diverged"]


async def test_more_steps_than_are_recorded_are_no_divergence(world: MakeWorld) -> None:
    made = world(diverging("await metadata.now()"), {"worker0": {}})
    injected = await inject_and_crash_at(made, "end", "worker0")
    made.write(diverging("await metadata.now()", second="await metadata.uuid()"))
    async with made.running() as o:
        await pass_gate(o, "end")
        assert await answers(o, injected.thread_id) == ["end"]
