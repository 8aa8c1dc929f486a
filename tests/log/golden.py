"""Makes a golden log: a small organism lives through nearly every kind of event there is, and its log is kept.

Run once a version: ``python -m tests.log.golden`` writes ``tests/golden/log-N``, and beside it what the log then says.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson
import pytest

from organism.bootstrap import Parts
from organism.codec.limits import SpoofAttempt
from organism.events.record import Actor, Record
from organism.events.stored import VERSION
from organism.events.vocabulary import (
    ApprovalExpired,
    ApprovalRequested,
    Event,
    MessageDead,
    MessageRefused,
    StepStarted,
)
from organism.log.log import EventFilter, EventLog
from organism.log.sqlite import SqliteLog
from organism.model.commands import (
    DiscardDeadLetter,
    Idempotency,
    Inject,
    KillThread,
    PauseAgent,
    PauseOrganism,
    PauseThread,
    ReplayDeadLetter,
    ResolveApproval,
    ResolveIndeterminate,
    ResumeAgent,
    ResumeOrganism,
    ResumeThread,
)
from organism.testing import Running
from organism.views.read_models import READ_MODELS, portions
from organism.views.usage import DAY, HOUR, accounts
from organism.views.views import Query
from tests.flows.stage import at_gate, open_gate
from tests.flows.thinking import agent
from tests.flows.world import World
from tests.log.engines import FixedClock, views

GOLDEN: Final = Path(__file__).parents[1] / "golden"
MOST: Final = 10_000
DAYS_NS: Final = 2 * 86_400 * 10**9

SOURCE: Final = """
@dataclass
class Removal:
    id: str
    confirm_token: str = ""

async def greeter(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(payload, to="shouter")

async def shouter(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(Told(payload.text.upper()), to="console")

async def flaky(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad" or metadata.attempt == 1:
        raise ValueError("not yet")
    return HandlerResponse.respond(Told("at last"))

async def stray(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(payload, to="greeter")

async def stepper(payload: Ask, metadata: HandlerMetadata):
    answer = await metadata.ask("echo", payload)
    await metadata.now(), await metadata.uuid(), await metadata.random()
    try:
        await metadata.ask("mute", payload)
    except AskError as error:
        answer = Told(f"{answer.text} {error.code}")
    done = await metadata.effect("write", write)
    return HandlerResponse.respond(Told(f"{answer.text} {done}"))

async def write(key: str):
    return {"written": True}

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def mute(payload: Ask, metadata: HandlerMetadata):
    return None

async def payer(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(str(await metadata.effect("pay", pay, kind="unsafe"))))

async def pay(key: str):
    await gate("pay")

async def asker(payload: Ask, metadata: HandlerMetadata):
    approval = await metadata.approve({"text": payload.text})
    return HandlerResponse.respond(Told(approval.decision))

async def remove(payload: Removal, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("removed " + payload.id))

async def planner(payload: Ask | Told, metadata: HandlerMetadata):
    if payload.text == "plan":
        IDS.append((await metadata.ask("system.todo", TodoUntil("Told", "echo", "look at it"))).id)
        await metadata.ask("system.todo", TodoUntil("Told", "", "and at this"))
        return HandlerResponse(Ask("told"), to="echo")
    return HandlerResponse(TodoComplete(IDS[0]), to="system.todo")

async def shower(payload: Ask, metadata: HandlerMetadata):
    for kind, data in SHOWN:
        await metadata.emit(kind, data)
    return HandlerResponse.respond(Told("shown"))

async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate("slow")

IDS = []
SHOWN = [
    ("message", {"text": "hi"}),
    ("thought_start", {"id": "t1"}),
    ("thought_delta", {"id": "t1", "delta": "hm"}),
    ("thought_end", {"id": "t1"}),
    ("thought", {"text": "hm"}),
    ("tool_call", {"id": "c1", "name": "echo", "input": {"text": "x"}}),
    ("tool_result", {"id": "c1", "output": {"text": "X"}, "isError": False}),
    ("interaction_request", {"id": "i1", "kind": "approval", "payload": {"toolName": "echo"}}),
    ("interaction_response", {"id": "i1", "decision": "approve"}),
    ("data", {"name": "chart", "data": [1, 2]}),
    ("file", {"url": "data:,x", "mediaType": "text/plain"}),
    ("usage", {"input": 1, "output": 2, "total": 3}),
    ("error", {"code": "upstream_error", "message": "It did not work."}),
]
"""
LISTENERS: Final[dict[str, dict[str, Any]]] = {
    "greeter": {"agent": True, "peers": ["shouter"]},
    "shouter": {"peers": ["console"]},
    "flaky": {},
    "stray": {},
    "stepper": {"peers": ["echo", "mute"]},
    "echo": {},
    "mute": {},
    "payer": {},
    "asker": {},
    "pay-out": {"handler": "echo", "approval": True},
    "remove": {"payload_class": "Removal", "confirm": True},
    "planner": {"agent": True, "peers": ["echo"]},
    "shower": {},
    "slow": {"max_concurrent": 1},
    "thinker": agent("You help.", tools=["calculator", "key_value_set"], budget={"day": {"tokens": 100_000}}),
    "later": {"handler": "echo"},
}
SPOOFED: Final = (
    b'<message xmlns="urn:organism:envelope:1"><meta><from>shouter</from></meta>'
    b'<Ask xmlns=""><text>hello</text></Ask></message>'
)


def world(folder: Path) -> World:
    """The organism whose log it is."""
    return World(folder, SOURCE, LISTENERS, models={"scripted": {"provider": "offline"}})


async def first_life(o: Running) -> None:
    """What goes well and what fails, and two effects of which nobody knows how they ended."""
    await o.inject("greeter", {"text": 'Grüße 👋 \\ " </text>'}, wait=True)
    ann = Actor(user="ann", request_id="req-1", principal="ann's token")
    once = Idempotency("key-1", "POST", "/inject", "digest")
    for _ in range(2):
        await o.do(Inject(to="greeter", json={"text": "again"}, actor=ann, idempotency=once))
    await o.inject("flaky", {"text": "good"}, wait=True)
    for _ in range(3):
        await o.inject("flaky", {"text": "bad"}, wait=True)
    dead, other, _ = [record.event.message for record in await o.records(MessageDead)]
    await o.do(ReplayDeadLetter(message_id=dead, json={"text": "better"}))
    await o.do(DiscardDeadLetter(message_id=other))
    stray = await o.inject("stray", {"text": "x"}, wait=True)
    await o.until(MessageRefused, thread=stray.thread_id)
    await o.inject("stepper", {"text": "x"}, wait=True)
    plan = await o.inject("planner", {"text": "plan"}, wait=True)
    await o.inject("planner", {"text": "go on"}, thread_id=plan.thread_id, wait=True)
    await o.inject("shower", {"text": "x"}, wait=True)
    for text in ("What is 17 * 23?", "Say something about the sea."):
        await o.inject("thinker", {"message": text}, wait=True)
    await o.inject("key_value_set", {"key": "note", "value": "mine"}, wait=True)
    with pytest.raises(SpoofAttempt):
        await o.do(Inject(to="greeter", xml=SPOOFED))
    for _ in range(2):
        unknown = await o.inject("payer", {"text": "x"})
        await o.until(StepStarted, thread=unknown.thread_id)
    await o.crash()


async def second_life(o: Running, made: World) -> None:
    """What people decide: pauses, approvals, confirmations, a kill, a reload."""
    ann = Actor(user="ann")
    step = await o.until(StepStarted, effect="unsafe")
    await o.do(ResolveIndeterminate(id=f"{step.event.message}:{step.event.step}", outcome="done", result="paid"))
    assert await o.tenant.ended(step.stream, 30)
    for text in ("approve", "reject"):
        asked = await o.inject("pay-out", {"text": text})
        approval = (await o.until(ApprovalRequested, thread=asked.thread_id)).event.approval
        if text == "approve":
            await o.do(ResolveApproval(approval=approval, decision="approve", edits={"text": "edited"}, actor=ann))
        else:
            await o.do(ResolveApproval(approval=approval, decision="reject", comment="too much", actor=ann))
        assert await o.tenant.ended(asked.thread_id, 30)
    (reply,) = (await o.inject("remove", {"id": "1"}, wait=True)).replies
    for _ in range(2):
        await o.inject("remove", {"id": "1", "confirm_token": reply["confirm_token"]}, wait=True)
    for commands in ((PauseAgent(agent="echo"), ResumeAgent(agent="echo")), (PauseOrganism(), ResumeOrganism())):
        await o.do(commands[0])
        waiting = await o.inject("echo", {"text": "x"})
        await o.do(PauseThread(thread_id=waiting.thread_id))
        await o.do(commands[1])
        await o.do(ResumeThread(thread_id=waiting.thread_id))
        assert await o.tenant.ended(waiting.thread_id, 30)
    slow = await o.inject("slow", {"text": "x"})
    await at_gate(o, "slow")
    await o.inject("slow", {"text": "x"}, thread_id=slow.thread_id)
    question_thread = (await o.inject("asker", {"text": "x"}, thread_id=slow.thread_id)).thread_id
    await o.until(ApprovalRequested, thread=question_thread)
    await o.do(KillThread(thread_id=slow.thread_id))
    open_gate(o, "slow")
    made.write(SOURCE, {name: keys for name, keys in LISTENERS.items() if name != "later"})
    await o.organism.reload(ann)
    late = await o.inject("asker", {"text": "late"})
    await o.until(ApprovalRequested, thread=late.thread_id)


async def third_life(o: Running) -> None:
    """Days later: a question has expired, another one stays open."""
    await o.until(ApprovalExpired)
    asked = await o.inject("asker", {"text": "open"})
    await o.until(ApprovalRequested, thread=asked.thread_id)


def shown(record: Record[Event]) -> dict[str, Any]:
    """All that a record is."""
    data = msgspec.to_builtins(record.event)
    del data["event"]
    content = record.content
    return {
        "position": record.position,
        "type": record.type,
        "thread": record.thread,
        "at": record.at,
        "cause": record.cause,
        "correlation": record.correlation,
        "actor": record.actor and list(msgspec.structs.astuple(record.actor)),
        "data": data,
        "digest": record.digest,
        "owner": record.content_owner,
        "content": content and [content.owner, content.json.decode(), content.xml.decode()],
    }


async def answers(log: EventLog) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All events with their contents, every row of every read model, and what models cost."""
    events = [shown(record) for record in await log.read(wanted=EventFilter(content=True), limit=MOST)]
    rows = [
        {"model": model.name, "row": row}
        for model in READ_MODELS
        for row in orjson.loads((await views(log).rows(model.name, Query(limit=MOST))).rows)
    ]
    for by in ("agent", "thread_id", HOUR, DAY):
        rows += [{"account": msgspec.to_builtins(each)} for each in accounts(await portions(views(log), by))]
    return events, rows


def lines(values: Iterable[dict[str, Any]]) -> bytes:
    """Each on a line of JSON."""
    return b"".join(orjson.dumps(value, option=orjson.OPT_SORT_KEYS) + b"\n" for value in values)


async def make(kept: Path) -> None:
    """Live, and keep the log and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        made = world(Path(folder))
        async with made.running() as o:
            await first_life(o)
        async with made.running() as o:
            await second_life(o, made)
        async with made.running(parts=Parts(wall_ns=lambda: time.time_ns() + DAYS_NS)) as o:
            await third_life(o)
        place = made.data / "tenants" / "default"
        log = await SqliteLog.open(place, FixedClock(), READ_MODELS)
        for name, values in zip(("events", "rows"), await answers(log), strict=True):
            kept.with_name(f"{kept.name}.{name}.jsonl").write_bytes(lines(values))
        await log.close()
        (place / "lock").unlink()
        shutil.copytree(place, kept)


if __name__ == "__main__":
    place = GOLDEN / f"log-{VERSION}"
    shutil.rmtree(place, ignore_errors=True)
    asyncio.run(make(place))
