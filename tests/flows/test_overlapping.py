"""Steps that overlap: each handler ends, and a replay finds each record again, whatever the timing (G2, G3, G7)."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Final

import orjson
import pytest

from organism.events.vocabulary import (
    ApprovalCancelled,
    MessageDead,
    MessageHandled,
    MessageRetried,
    StepRecorded,
    StepStarted,
)
from organism.model.commands import PauseAgent, ResumeAgent
from organism.testing import Running
from organism.views.views import Query
from tests.flows.stage import TurnedTime, answers, at_gate, inject_and_crash_at, open_gate, pass_gate, play, until
from tests.flows.world import MakeWorld, World

PEERS: Final = """
import json
from organism import NonRetryable

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def late(payload: Ask, metadata: HandlerMetadata):
    for _ in range(int(payload.text.partition("-")[2] or 9)):
        await asyncio.sleep(0.001)
    return HandlerResponse.respond(Told(payload.text))

async def broken(payload: Ask, metadata: HandlerMetadata):
    raise NonRetryable("broken")

async def silent(payload: Ask, metadata: HandlerMetadata):
    await gate("silent")

async def attempt(metadata, to, text="x", timeout=None):
    try:
        return (await metadata.ask(to, Ask(text), timeout)).text
    except AskError as error:
        return error.code
"""
LISTENERS: Final[dict[str, dict[str, Any]]] = {
    "player": {"peers": ["echo", "late", "broken", "silent"], "max_concurrent": 20},
    "echo": {"max_concurrent": 20},
    "late": {"max_concurrent": 20},
    "broken": {"max_concurrent": 20},
    "silent": {"max_concurrent": 50, "timeout_s": 1000},
}


async def rows(o: Running, model: str) -> list[dict[str, Any]]:
    """What a list of things that wait for people shows."""
    found: list[dict[str, Any]] = orjson.loads((await o.views.rows(model, Query(limit=10))).rows)
    return found


def player(body: str) -> str:
    """A handler with this body, which answers its ``result``."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"""{PEERS}
async def player(payload: Ask, metadata: HandlerMetadata):
{lines}
    return HandlerResponse.respond(Told(str(result)))
"""


ENDINGS = {
    "refused and answered": (
        'result = await asyncio.gather(attempt(metadata, "nobody"), attempt(metadata, "late"))',
        "['routing', 'x']",
    ),
    "two chains": (
        """
async def chain(first, second):
    return [await attempt(metadata, first), await attempt(metadata, second)]
result = await asyncio.gather(chain("late", "echo"), chain("echo", "late"), chain("echo", "nobody"))
""",
        "[['x', 'x'], ['x', 'x'], ['x', 'routing']]",
    ),
    "several that give up at once": (
        """
result = 0
for _ in range(3):
    try:
        async with asyncio.timeout(0.01):
            await asyncio.gather(*(metadata.ask("silent", Ask("x")) for _ in range(3)))
    except TimeoutError:
        result += 1
""",
        "3",
    ),
    "a group that fails": (
        """
result = []
try:
    async with asyncio.TaskGroup() as group:
        group.create_task(metadata.ask("silent", Ask("x")))
        group.create_task(attempt(metadata, "late"))
        group.create_task(metadata.ask("broken", Ask("x")))
        group.create_task(metadata.ask("silent", Ask("y")))
except* AskError as errors:
    result = [error.code for error in errors.exceptions]
""",
        "['dead_letter']",
    ),
    "a task that never waits": (
        """
asked = asyncio.create_task(attempt(metadata, "late"))
other = asyncio.create_task(attempt(metadata, "echo"))
while not asked.done():
    await asyncio.sleep(0)
result = [asked.result(), await other]
""",
        "['x', 'x']",
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_overlapping_asks_end_and_give_back_the_slot(world: MakeWorld, name: str) -> None:
    body, result = ENDINGS[name]
    listeners = {**LISTENERS, "player": {**LISTENERS["player"], "max_concurrent": 1}}
    async with world(player(body), listeners).running() as o:
        for _ in range(3):
            thread = (await o.inject("player", {"text": "x"})).thread_id
            await o.until(MessageHandled, thread, agent="player", outcome="done")
            assert [reply["text"] for reply in await o.replies(thread)] == [result]


SLEEPER: Final = """
async def other():
    await gate("other")
    return await attempt(metadata, "echo")
if payload.text == "second":
    await gate("second")
    result = 2
else:
    result = await asyncio.gather(attempt(metadata, "silent"), other())
"""


async def test_a_task_that_runs_on_while_the_handler_waits_for_its_slot_asks_when_it_has_it(world: MakeWorld) -> None:
    listeners = {**LISTENERS, "player": {**LISTENERS["player"], "max_concurrent": 1}}
    async with world(player(SLEEPER), listeners).running() as o:
        first = await o.inject("player", {"text": "first"})
        await at_gate(o, "silent")
        second = await o.inject("player", {"text": "second"})
        await at_gate(o, "second")
        open_gate(o, "silent")
        await o.until(StepRecorded, step=1)
        open_gate(o, "other")
        await o.inject("echo", {"text": "x"}, wait=True)
        assert len(await o.records(StepStarted, thread=first.thread_id)) == 1
        open_gate(o, "second")
        for injected, result in ((second, "2"), (first, "['no_reply', 'x']")):
            assert await answers(o, injected.thread_id) == [result]
        third = await o.inject("player", {"text": "first"})
        assert await answers(o, third.thread_id) == ["['no_reply', 'x']"]


EFFECTS = """
async def branch(name, passes):
    async def write(key):
        TRACE.append(key.rpartition("/")[2])
        for _ in range(passes if payload.text == "first" else 0):
            await asyncio.sleep(0.001)
        return name
    return [await metadata.effect(name + "1", write), await metadata.effect(name + "2", write)]
result = await asyncio.gather(branch("x", 9), branch("y", 2))
TRACE.append(result)
"""


async def test_a_replay_finds_the_steps_of_overlapping_chains_without_their_waiting_times(world: MakeWorld) -> None:
    made = world(player(EFFECTS + 'await gate("end")'), LISTENERS)
    injected = await inject_and_crash_at(made, "end", "player", "first")
    async with made.running() as o:
        await pass_gate(o, "end")
        assert await answers(o, injected.thread_id) == ["[['x', 'x'], ['y', 'y']]"]
        assert play(o)["TRACE"] == [[["x", "x"], ["y", "y"]]]  # no effect ran again
        places = [(record.event.step, record.event.place) for record in await o.records(StepRecorded)]
    assert sorted(places) == [(1, "1/1"), (2, "2/1"), (3, "2/2"), (4, "1/2")]


# -- programs drawn by chance

PROGRAMS: Final = player(
    """
async def part(node):
    kind, *rest = node
    if kind == "ask":
        return await attempt(metadata, *rest)
    if kind == "effect":
        async def run(key):
            RAN.append(key)
            for _ in range(rest[1]):
                await asyncio.sleep(0.001)
            if rest[2]:
                raise ValueError("on purpose")
            return rest[0]
        try:
            return await metadata.effect(rest[0], run)
        except EffectError:
            return "failed"
    if kind == "now":
        return str(await metadata.now())
    if kind == "complete":
        return (await metadata.complete([{"role": "user", "content": rest[0]}], model="offline")).text
    if kind == "sequence":
        return [await part(each) for each in rest]
    if kind == "gather":
        return await asyncio.gather(*map(part, rest))
    if kind == "group":
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part(each)) for each in rest]
        return [task.result() for task in tasks]
    tasks = [asyncio.create_task(part(each)) for each in rest]
    if kind == "as_completed":
        return [await each for each in asyncio.as_completed(tasks)]
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    first = [number for number, task in enumerate(tasks) if task in done]
    if kind == "race":
        for task in waiting:
            task.cancel()
        await asyncio.wait(tasks)
        return first, [task.cancelled() or task.result() for task in tasks]
    return first, [await task for task in tasks]

result = json.dumps(await part(json.loads(payload.text)))
RESULTS[metadata.thread_id] = result
await metadata.ask("silent", Ask("end"), 1000)
"""
).replace("async def player", "RESULTS, RAN = {}, []\n\nasync def player", 1)


def program(chance: random.Random, depth: int = 0, count: list[int] | None = None) -> list[Any]:
    """Steps that overlap in any of the ways that a handler has."""
    count = count if count is not None else [0]
    count[0] += 1
    if depth == 3 or (depth and chance.random() < 0.45):
        name = f"n{count[0]}-{chance.randrange(9)}"
        draw = chance.random()
        if draw < 0.25:
            return ["effect", name, chance.randrange(9), chance.random() < 0.2]
        if draw < 0.35:
            return chance.choice([["now"], ["complete", name]])
        to = chance.choice(["echo", "late", "late", "broken", "nobody", "silent"])
        return ["ask", to, name, chance.choice([0.01, 0.03]) if to == "silent" else None]
    ways = ["sequence", "sequence", "gather", "group", "as_completed", "wait", "race"]
    way = chance.choice(ways)
    return [way, *(program(chance, depth + 1, count) for _ in range(chance.randint(2, 4)))]


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_overlaps_ends_and_takes_the_same_way_after_a_crash(world: MakeWorld, seed: int) -> None:
    chance = random.Random(seed)
    programs = [json.dumps(program(chance)) for _ in range(10)]
    slots = {"max_concurrent_handlers": 100, "max_tokens_per_thread": 1_000_000}
    listeners = {**LISTENERS, "player": {**LISTENERS["player"], "max_concurrent": chance.choice([1, 2, 20])}}
    made = world(
        PROGRAMS, listeners, limits=slots, retry={"attempts": 100}, models={"offline": {"provider": "offline"}}
    )
    async with made.running() as o:
        for text in programs:
            await o.inject("player", {"text": text})
        head = chance.randrange(400)
        await until(lambda: o.log.head >= min(head // 2, 50))
        await o.do(PauseAgent(agent="player"))
        for agent in chance.sample(["echo", "late"], chance.randrange(3)):
            await o.do(PauseAgent(agent=agent))
            await o.do(ResumeAgent(agent=agent))
        await o.do(ResumeAgent(agent="player"))
        await until(lambda: o.log.head >= head or len(play(o)["RESULTS"]) == len(programs))
        first = dict(play(o)["RESULTS"])
        await o.crash()
    whole, again = [await _life(made, len(programs)) for _ in range(2)]
    assert {thread: whole[thread] for thread in first} == first
    assert again == whole


async def _life(made: World, ends: int) -> dict[str, str]:
    """What each handler has come to, in a life that ends as by ``kill -9`` when all wait at their end."""
    async with made.running() as o:
        await until(lambda: len(play(o)["RESULTS"]) == ends)
        assert [record for record in await o.records(MessageDead) if record.event.agent == "player"] == []
        await o.crash()
        return dict(play(o)["RESULTS"])


async def test_a_task_that_is_left_behind_ends_with_its_handling(world: MakeWorld) -> None:
    body = """
async def later():
    try:
        await metadata.now()
    except BaseException as error:
        TRACE.append(type(error).__name__)
        raise
KEPT.append(asyncio.create_task(later()))
await asyncio.wait(KEPT[-1:], timeout=0)
result = 1
"""
    source = player(body).replace("async def player", "KEPT = []\n\nasync def player", 1)
    async with world(source, LISTENERS).running() as o:
        await o.inject("player", {"text": "x"}, wait=True)
        await until(lambda: play(o)["TRACE"] == ["CancelledError"])


async def test_a_host_may_set_a_task_factory_while_an_organism_runs(world: MakeWorld) -> None:
    loop, made = asyncio.get_running_loop(), []

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **options)

    async with world(player(ENDINGS["two chains"][0]), LISTENERS).running() as o:
        for host in (factory, None):
            loop.set_task_factory(host)
            injected = await o.inject("player", {"text": "x"})
            assert await answers(o, injected.thread_id) == [ENDINGS["two chains"][1]]
    assert made


# -- what cannot be found again is refused

REFUSED: Final = {
    "in an effect": (
        "async def run(key):\n    await metadata.now()\nawait metadata.effect('e', run)",
        "outside of its",
    ),
    "in a task of an effect": (
        "async def run(key):\n    await asyncio.gather(metadata.now())\nawait metadata.effect('e', run)",
        "outside of its",
    ),
    "in a callback": (
        """
asked = asyncio.get_running_loop().create_future()
def ask():
    try:
        metadata.now()
    except RuntimeError as error:
        asked.set_exception(error)
asyncio.get_running_loop().call_soon(ask)
await asked
""",
        "outside of its",
    ),
    "in a thread": ("await asyncio.to_thread(metadata.now)", "outside of its"),
    "coroutines in as_completed": (
        "for each in asyncio.as_completed([attempt(metadata, 'echo'), attempt(metadata, 'late')]):\n    await each",
        "as_completed([asyncio.create_task(each)",
    ),
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("where", REFUSED)
async def test_a_step_whose_place_would_differ_is_refused_with_what_to_do_instead(world: MakeWorld, where: str) -> None:
    body, said = REFUSED[where]
    async with world(player(f"{body}\ntold = 1"), LISTENERS, retry={"attempts": 1}).running() as o:
        await o.inject("player", {"text": "x"}, wait=True)
        (dead,) = await o.records(MessageDead)
    assert said in dead.event.reason


async def test_steps_and_tasks_may_be_given_to_as_completed(world: MakeWorld) -> None:
    body = """
tasks = [asyncio.create_task(attempt(metadata, to)) for to in ("late", "echo")]
result = [await each for each in asyncio.as_completed(tasks)]
for each in asyncio.as_completed([metadata.ask("late", Ask("1")), metadata.ask("echo", Ask("2"))]):
    result.append((await each).text)
"""
    async with world(player(body), LISTENERS).running() as o:
        injected = await o.inject("player", {"text": "x"})
        assert await answers(o, injected.thread_id) == ["['x', 'x', '2', '1']"]


async def test_a_blocking_handler_that_takes_a_step_is_told_what_to_write(world: MakeWorld) -> None:
    source = """
    def stepper(payload: Ask, metadata: HandlerMetadata):
        metadata.now()
    """
    async with world(source, {"stepper": {"blocking": True}}, retry={"attempts": 1}).running() as o:
        await o.inject("stepper", {"text": "x"}, wait=True)
        (dead,) = await o.records(MessageDead)
    assert "Write it as `async def`" in dead.event.reason


async def test_one_step_more_than_allowed_ends_the_handling_for_good(world: MakeWorld) -> None:
    body = "try:\n    while True:\n        await metadata.random()\nexcept BaseException:\n    result = 'swallowed'"
    async with world(player(body), LISTENERS, limits={"max_steps_per_handling": 100}).running() as o:
        await o.inject("player", {"text": "x"}, wait=True)
        (dead,) = await o.records(MessageDead)
        assert len(await o.records(StepRecorded)) == 100
    assert (dead.event.code, dead.event.attempts) == ("too_many_steps", 1)
    assert "max_steps_per_handling is 100" in dead.event.reason
    assert [line.function for line in dead.event.traceback] == ["player"]


async def test_a_divergence_in_any_task_ends_the_handling_at_once(world: MakeWorld) -> None:
    body = """
async def part():
    await metadata.random()
    await gate("end")
await asyncio.gather(asyncio.create_task(part()), asyncio.Event().wait())
result = 0
"""
    made = world(player(body), LISTENERS)
    await inject_and_crash_at(made, "end", "player")
    made.write(player(body.replace("random()", "uuid()")))
    async with made.running() as o:
        dead = await o.until(MessageDead)
    assert (dead.event.code, dead.event.attempts) == ("replay_diverged", 2)
    assert [line.function for line in dead.event.traceback] == ["player.<locals>.part"]


# -- steps that the handler's own code cancels

CANCELS: Final = """
async def run(key):
    TRACE.append(key.rpartition("/")[2])
    await gate("never")
result = 0
step = asyncio.create_task({step})
await metadata.ask("echo", Ask("first"))
step.cancel()
try:
    await step
except asyncio.CancelledError:
    result = "cancelled"
await gate("end")
"""


@pytest.mark.parametrize(
    "step", ['metadata.effect("e", run)', 'metadata.effect("e", run, kind="pure")', "metadata.approve('?')"]
)
async def test_a_step_that_the_code_cancels_is_recorded_so_and_given_to_no_replay(world: MakeWorld, step: str) -> None:
    made = world(player(CANCELS.format(step=step)), LISTENERS)
    injected = await inject_and_crash_at(made, "end", "player")
    async with made.running() as o:
        await pass_gate(o, "end")
        assert await answers(o, injected.thread_id) == ["cancelled"]
        assert play(o)["TRACE"] == []  # not run again
        errors = [record.event.error for record in await o.records(StepRecorded)]
        assert [error and error.code for error in errors] == [None, "cancelled"]
        assert len(await o.records(ApprovalCancelled)) == ("approve" in step)
        assert {row["status"] for row in await rows(o, "approvals")} <= {"cancelled"}


async def test_an_unsafe_effect_that_the_code_cancels_waits_for_a_person(world: MakeWorld) -> None:
    made = world(player(CANCELS.format(step='metadata.effect("e", run, kind="unsafe")')), LISTENERS)
    async with made.running() as o:
        injected = await o.inject("player", {"text": "x"})
        retried = await o.until(MessageRetried, agent="player")
        assert retried.event.error.startswith("OutcomeUnknown: ")
        (waits,) = await rows(o, "indeterminate")
        assert waits["id"] == f"{injected.message_id}:2"


async def test_a_handling_that_waits_for_nothing_that_can_come_fails_and_is_tried_again(world: MakeWorld) -> None:
    body = """
if metadata.attempt == 1:
    asked = asyncio.create_task(attempt(metadata, "late"))
    await attempt(metadata, "echo")
    metadata._handling.pending += 1  # what a fault of ours might do
    await asked
    CAME["stuck"] = True
    await asyncio.Event().wait()
result = metadata.attempt
"""
    time = TurnedTime()
    async with world(player(body), LISTENERS).running(parts=time.parts()) as o:
        injected = await o.inject("player", {"text": "x"})
        await until(lambda: "stuck" in play(o)["CAME"])
        for _ in range(2):
            await time.passes(o, 4.5)
        retried = await o.until(MessageRetried)
        time.turn(1)
        assert await answers(o, injected.thread_id) == ["2"]
    assert retried.event.error.startswith("Stuck: ")
