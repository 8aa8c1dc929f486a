"""Whatever a model says is mended as documented, refused by name, or a dead letter: never a silent default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from organism.model.completion import Completion
from organism.pump.models import ModelCall, Outcome, Told
from organism.testing import Running
from tests.flows.hostile_answers import TOOL, Case, cases
from tests.flows.thinking import Played, agent, run_of, thinking
from tests.flows.world import MakeWorld

SOURCE = '''
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal
from annotated_types import Ge, Le, Len

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Part:
    name: str

@dataclass
class Circle:
    radius: float

@dataclass
class Square:
    side: float

@dataclass
class Sort:
    """Sort it."""

    text: Annotated[str, Len(1, 100)]
    count: Annotated[int, Ge(0), Le(100)]
    ratio: float = 1.0
    fresh: bool = False
    price: Decimal = Decimal("1.50")
    raw: bytes = b""
    day: date = date(2026, 1, 1)
    at: datetime | None = None
    colour: Colour = Colour.RED
    size: Literal["S", "L"] = "S"
    tags: list[str] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    part: Part | None = None
    shape: Circle | Square | None = None

async def sorter(payload: Sort, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("sorted"))

async def hidden(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("found"))
'''
LISTENERS = {"sorter": {"payload_class": "Sort"}, "hidden": {}, "thinker": agent(tools=[TOOL])}
CASES = {case.name: case for case in cases()}
OVER = Completion("m", "Over.")


@dataclass
class Canned(Played):
    """Says what the case says, and then that it is over."""

    seen: dict[str, list[Any]] = field(default_factory=dict)

    async def call(self, call: ModelCall, tell: Callable[[Told], None]) -> Outcome:
        case = next(message["content"] for message in call.messages if message["role"] == "user")
        is_first = call.messages[-1]["role"] == "user"
        self.seen.setdefault(case, []).append(call.messages)
        return Outcome(CASES[case].completion if is_first else OVER, None, 1, 0)


@pytest.mark.thorough
@pytest.mark.timeout(240)
async def test_each_of_more_than_two_hundred_kinds_of_answers_ends_as_documented(world: MakeWorld) -> None:
    play = thinking(world, LISTENERS, source=SOURCE)
    wrong = []
    async with play.running_with(Canned(play.models.path), on_disk=False) as o:
        for case in CASES.values():
            outcome = await o.inject("thinker", {"message": case.name}, wait=True)
            found = await _became(o, outcome.thread_id, outcome.message_id)
            if found != _wanted(case):
                wrong.append((case.name, _wanted(case), found))
    assert len(CASES) == len(cases()) >= 200
    assert wrong == []


def _wanted(case: Case) -> dict[str, Any]:
    if case.dead:
        return {"dead": case.dead}
    wanted: dict[str, Any] = {"text": case.text if case.text is not None else "Over.", "notes": bool(case.notes)}
    return wanted | ({"sent": case.sent} if case.sent else {}) | ({"code": case.code} if case.code else {})


async def _became(o: Running, thread_id: str, message_id: str) -> dict[str, Any]:
    events = await o.events(thread=thread_id)
    dead = [event.data["reason"] for event in events if event.type == "message_dead"]
    if dead:
        return {"dead": next((case.dead for case in CASES.values() if case.dead and case.dead in dead[0]), dead[0])}
    sent = [event for event in events if event.type == "message_sent"]
    tool = [orjson.loads(event.content.json) for event in sent if event.data["to"] == TOOL and event.content]
    errors = [data for kind, data in await run_of(o, message_id) if kind == "tool_result" and data["isError"]]
    answer = next(orjson.loads(event.content.json) for event in sent if event.data["to"] == "console" and event.content)
    found: dict[str, Any] = {
        "text": answer["text"],
        "notes": any("notes" in event.data for event in sent),
    }
    if tool:
        found["sent"] = {key: tool[0][key] for key in ("text", "count")}
    if errors:
        found["code"] = orjson.loads(errors[0]["output"])["error"]["code"]
    return found
