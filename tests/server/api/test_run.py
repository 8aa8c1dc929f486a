"""The run of one message: what people saw of its handling, page by page and as of any position."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from organism.model.ids import DEFAULT_TENANT
from tests.flows.world import MakeWorld
from tests.server.contract import refusal_of
from tests.server.served import Served, served
from tests.server.tenanted import bearer, write_tokens

SOURCE = """
async def thinker(payload: Ask, metadata: HandlerMetadata):
    await metadata.emit("thought", {"text": f"about {payload.text}"})
    await metadata.emit("data", {"name": "mood", "data": {"calm": True}})
    if payload.text == "fail":
        raise ValueError("as it was told")
    if payload.text == "on":
        return HandlerResponse(Ask("more"), "thinker")
    return HandlerResponse.respond(Told("done"))

async def silent(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("done"))
"""


@pytest.fixture
async def thinking(world: MakeWorld) -> AsyncIterator[Served]:
    made = world(SOURCE, {"thinker": {"peers": ["thinker"]}, "silent": {}}, retry={"attempts": 1})
    message = {"alone": ["read:message:nothing"]}
    write_tokens(made.folder, {DEFAULT_TENANT: message, "acme": {"boss": ["admin"]}})
    async with served(made.config) as server:
        yield server


async def run_of(server: Served, message: str, query: str = "") -> Any:
    return await server.get(f"/messages/{message}/run{query}")


def told(run: Any) -> list[tuple[str, Any]]:
    return [(entry["type"], entry["data"]) for entry in run["entries"]]


def thoughts(of: str, end: str) -> list[tuple[str, Any]]:
    mood = {"name": "mood", "data": {"calm": True}}
    return [("thought", {"text": f"about {of}"}), ("data", mood), ("done", {"stopReason": end})]


async def test_a_run_is_of_one_message_alone(thinking: Served) -> None:
    sent = await thinking.inject("thinker", {"text": "on"})
    _, other, *_ = (await thinking.get(f"/threads/{sent['thread_id']}/messages"))["messages"]
    assert told(await run_of(thinking, sent["message_id"])) == thoughts("on", "stop")
    run = await run_of(thinking, other["id"])
    assert (told(run), run["next"]) == (thoughts("more", "stop"), None)
    events = (await thinking.get(f"/log?thread={sent['thread_id']}&type=run_thought"))["events"]
    first = run["entries"][0]
    assert (first["position"], first["at"]) == (events[-1]["position"], events[-1]["at"])


async def test_a_failed_run_is_shown_to_its_end(thinking: Served) -> None:
    sent = await thinking.inject("thinker", {"text": "fail"}, wait=None)
    await thinking.organism.tenants["default"].ended(sent["thread_id"], 10)
    assert told(await run_of(thinking, sent["message_id"])) == thoughts("fail", "error")


async def test_a_run_is_read_page_by_page_and_as_of_any_position(thinking: Served) -> None:
    message = (await thinking.inject("thinker", {"text": "once"}))["message_id"]
    whole = (await run_of(thinking, message))["entries"]
    first = await run_of(thinking, message, "?limit=2")
    assert (first["entries"], first["next"]) == (whole[:2], whole[1]["position"])
    rest = await run_of(thinking, message, f"?limit=2&after={first['next']}")
    assert (rest["entries"], rest["next"]) == (whole[2:], None)
    exact = await run_of(thinking, message, "?limit=3")
    assert (exact["entries"], exact["next"]) == (whole, None)
    then = await run_of(thinking, message, f"?at={whole[1]['position']}")
    assert (then["entries"], then["next"]) == (whole[:2], None)


async def test_a_message_whose_handler_shows_nothing_has_an_empty_run(thinking: Served) -> None:
    message = (await thinking.inject("silent", {"text": ""}))["message_id"]
    assert await run_of(thinking, message) == {"entries": [], "next": None}


async def test_an_erased_run_says_so(thinking: Served) -> None:
    sent = await thinking.inject("thinker", {"text": "once"})
    await thinking.log.erase(sent["thread_id"], thinking.log.last_at)
    run = await run_of(thinking, sent["message_id"])
    assert [data for _, data in told(run)][:2] == [{"erased": True}] * 2


async def test_a_run_needs_the_right_to_its_message_and_a_foreign_one_is_missing(thinking: Served) -> None:
    message = (await thinking.inject("thinker", {"text": "once"}))["message_id"]
    for path, who, status in (
        ("nothing", (DEFAULT_TENANT, "alone"), 404),
        (message, (DEFAULT_TENANT, "alone"), 403),
        (message, ("acme", "boss"), 404),
    ):
        answer = await thinking.call("GET", f"/messages/{path}/run", headers=bearer(*who))
        assert answer.status_code == status, (path, who)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_field"),
        ("limit=501", "invalid_field"),
        ("until=3", "unknown_field"),
        ("at=999999", "bad_position"),
    ],
)
async def test_a_run_that_cannot_be_shown_is_refused(thinking: Served, query: str, code: str) -> None:
    message = (await thinking.inject("silent", {"text": ""}))["message_id"]
    answer = await thinking.call("GET", f"/messages/{message}/run?{query}")
    assert (answer.status_code, refusal_of(answer)["code"]) == (400, code)
