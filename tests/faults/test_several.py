"""Acts on several that a kill cuts off: the same request does the rest, and is answered as if nothing had happened."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.faults.client import Gone
from tests.faults.lives import fork
from tests.faults.stage import Stage
from tests.flows.world import World

pytestmark = pytest.mark.faults

SOURCE = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad":
        raise ValueError("bad")
    await metadata.approve({"sum": 3})
"""
MANY = 3


@pytest_asyncio.fixture
async def acting(stage: Stage) -> AsyncIterator[Stage]:
    """The stage with threads that wait for a person, and failures that are alike."""
    made = World(stage.folder / "world", SOURCE, {"asker": {}}, retry={"attempts": 1})
    stage.setting = dataclasses.replace(stage.setting, config=made.config)
    life = await stage.serve()
    for text in ("ask", "bad") * MANY:
        body = {"to": "asker", "payload": {"text": text}, "wait": 0.01 if text == "ask" else 10}
        (await stage.api.call("POST", "/inject", body)).expect(200, 202)
    await life.stop()
    yield stage


async def wanted_of(stage: Stage, what: str) -> dict[str, Any]:
    """The body of an act on all threads, all failures by their ids, or all of them as a group."""
    if what == "group":
        page = await stage.api.get("/dead-letters?group=true")
        return {"group": page["groups"][0]["group"], "until": page["groups"][0]["newest"]["position"]}
    rows = await stage.api.rows("threads" if what == "threads" else "dead-letters")
    return {"ids": [row["id"] for row in rows if what == "letters" or row["waiting_for_people"]["approvals"]]}


async def count(stage: Stage, event: str) -> int:
    return len([each async for each in stage.api.events() if each["type"] == event])


@pytest.mark.parametrize(
    ("path", "what", "event"),
    [
        ("/threads/kill", "threads", "thread_killed"),
        ("/dead-letters/replay", "letters", "message_replayed"),
        ("/dead-letters/replay", "group", "message_replayed"),
        ("/dead-letters/discard", "group", "message_discarded"),
    ],
)
async def test_what_kills_cut_off_after_each_act_is_ended_by_the_same_request(
    acting: Stage, path: str, what: str, event: str
) -> None:
    body = None
    for done in range(1, MANY + 1):
        life = await fork(acting.setting.dying_at(f"answered:{done}"))
        acting.api.url = await life.serving()
        body = body or await wanted_of(acting, what)
        assert await count(acting, event) == done - 1
        with pytest.raises(Gone):
            await acting.api.call("POST", path, body, key="key")
        assert await life.end() == -signal.SIGKILL
    life = await acting.serve()
    assert await count(acting, event) == MANY
    answers = [(await acting.api.call("POST", path, body, key="key")).expect(200) for _ in range(2)]
    assert answers[0] == answers[1]
    status = 202 if path.endswith("replay") else 200
    assert [each["status"] for each in answers[0]["results"]] == [status] * MANY
    assert answers[0]["left"] == 0
    assert await count(acting, event) == MANY
    assert (await acting.api.call("POST", path, {"ids": ["x"]}, key="key")).status == 422
    await life.stop()
