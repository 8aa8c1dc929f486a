"""Confirm: a call to a listener with ``confirm: true`` is previewed, and acts when it comes again with its token."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.events.record import Actor
from organism.events.vocabulary import ApprovalRequested
from organism.model.commands import ResolveApproval
from organism.rag.documents import Document
from organism.rag.hashed_words import HashedWords
from organism.rag.library import By
from organism.testing import Running
from tests.flows.stage import TurnedTime
from tests.flows.thinking import agent, call, calls, run_of, says, thinking
from tests.flows.world import MakeWorld, World

ROUGH = Path(__file__).parents[1] / "tools" / "mcp" / "rough.py"
SOURCE = """
@dataclass
class Removal:
    id: str
    why: str = ""
    confirm_token: str = ""

async def remove(payload: Removal, metadata: HandlerMetadata):
    TRACE.append((payload.id, payload.confirm_token))
    if payload.id == "broken" and len(TRACE) < 2:
        raise ValueError("no")
    return HandlerResponse.respond(Told("removed " + payload.id))
"""
REMOVE: dict[str, Any] = {"payload_class": "Removal", "confirm": True}


def made(world: MakeWorld, **keys: Any) -> World:
    """A world in which to remove things."""
    return world(SOURCE, {"remove": {**REMOVE, **keys}})


def trace(o: Running) -> list[tuple[str, str]]:
    """What has run."""
    listener = o.organism.settings.listener("remove")
    assert listener is not None
    found: list[tuple[str, str]] = listener.handler.__globals__["TRACE"]  # type: ignore[union-attr]  # it has one
    return found


async def asked(o: Running, **payload: Any) -> dict[str, Any]:
    """What a call is answered with."""
    (reply,) = (await o.inject("remove", {"id": "1", **payload}, wait=True)).replies
    found: dict[str, Any] = reply
    return found


async def token(o: Running, **payload: Any) -> str:
    """The token of a call."""
    return str((await asked(o, **payload))["confirm_token"])


async def test_the_first_call_shows_what_would_be_done_and_does_nothing(world: MakeWorld) -> None:
    async with made(world).running(on_disk=False) as o:
        said = await asked(o, why="x" * 300)
        assert said["confirm_required"] is True
        assert said["expires_in_seconds"] == 60
        assert said["op"] == "remove"
        assert orjson.loads(said["preview"]) == {"id": "1", "why": "x" * 199 + "…", "confirm_token": ""}
        assert "Call remove again within 60 seconds" in said["message"]
        assert trace(o) == []


async def test_the_same_call_with_its_token_acts_once(world: MakeWorld) -> None:
    async with made(world).running(on_disk=False) as o:
        given = await token(o)
        assert await asked(o, confirm_token=given) == {"text": "removed 1"}
        assert (await asked(o, confirm_token=given))["code"] == "confirm_used"
        assert trace(o) == [("1", "")]


async def test_the_log_knows_a_token_by_its_hash_and_what_became_of_it(world: MakeWorld) -> None:
    async with made(world).running(on_disk=False) as o:
        given = await token(o)
        await asked(o, confirm_token=given)
        await asked(o, confirm_token="wrong")
        found = [record for record in await o.records() if record.type.startswith("confirm_")]
        assert [record.type for record in found] == ["confirm_requested", "confirm_redeemed", "confirm_refused"]
        assert {record.event.token for record in found[:2]} == {hashlib.sha256(given.encode()).hexdigest()}
        assert found[2].event.code == "confirm_mismatch"
        assert given not in str([record.event for record in found])


@pytest.mark.parametrize("other", [{"id": "2"}, {"why": "other"}])
async def test_a_token_of_another_call_is_refused_and_stays_good(world: MakeWorld, other: dict[str, str]) -> None:
    async with made(world).running(on_disk=False) as o:
        given = await token(o)
        assert (await asked(o, confirm_token=given, **other))["code"] == "confirm_mismatch"
        assert trace(o) == []
        assert await asked(o, confirm_token=given) == {"text": "removed 1"}


async def test_of_two_calls_at_once_with_one_token_one_acts(world: MakeWorld) -> None:
    async with made(world).running(on_disk=False) as o:
        given = await token(o)
        said = await asyncio.gather(*(asked(o, confirm_token=given) for _ in range(5)))
        assert sorted(each.get("code", "acted") for each in said) == ["acted"] + ["confirm_used"] * 4
        assert trace(o) == [("1", "")]


async def test_a_token_outlives_a_restart(world: MakeWorld) -> None:
    play = made(world)
    async with play.running() as o:
        given, used = await token(o), await token(o, id="2")
        await asked(o, id="2", confirm_token=used)
        await o.crash()
    async with play.running() as o:
        assert await asked(o, confirm_token=given) == {"text": "removed 1"}
        assert (await asked(o, id="2", confirm_token=used))["code"] == "confirm_used"


async def test_a_further_attempt_of_a_confirmed_call_goes_on_with_its_token(world: MakeWorld) -> None:
    async with made(world).running(on_disk=False) as o:
        given = await token(o, id="broken")
        assert await asked(o, id="broken", confirm_token=given) == {"text": "removed broken"}
        assert len(trace(o)) == 2


async def test_a_call_that_is_confirmed_may_need_consent_too_and_then_once(world: MakeWorld) -> None:
    async with made(world, approval=True).running(on_disk=False) as o:
        given = await token(o)
        await o.inject("remove", {"id": "1", "confirm_token": given})
        question = await o.until(ApprovalRequested, agent="remove")
        assert question.event.type == "Removal"
        assert trace(o) == []


async def test_a_confirmed_call_that_waits_for_a_person_keeps_its_token_however_long(world: MakeWorld) -> None:
    time, play = TurnedTime(), made(world, approval=True)
    async with play.running(parts=time.parts()) as o:
        confirmed = {"id": "1", "confirm_token": await token(o)}
        sent = await o.inject("remove", confirmed)
        question = await o.until(ApprovalRequested)
        time.turn(3600)
        await token(o, id="2")  # those that ended long ago are forgotten
        await o.crash()
    async with play.running(parts=time.parts()) as o:
        await o.do(ResolveApproval(approval=question.event.approval, decision="approve", actor=Actor(user="ann")))
        assert await o.tenant.ended(sent.thread_id, 20)
        assert await o.replies(sent.thread_id) == ({"text": "removed 1"},)
        assert (await asked(o, **confirmed))["code"] == "confirm_used"


async def test_a_person_may_point_a_confirmed_call_at_another_document(world: MakeWorld) -> None:
    play = world("", {})
    config = orjson.loads(play.config.read_bytes())
    config["listeners"].append({"name": "rag_doc_delete", "approval": True})
    play.config.write_bytes(orjson.dumps(config))
    async with play.running(on_disk=False, parts=Parts(embeddings=HashedWords())) as o:
        library = o.tenant.library
        await library.replace("x", [Document("a", "one"), Document("b", "two")], None, By())
        call = {"index_id": "x", "doc_id": "a"}
        (said,) = (await o.inject("rag_doc_delete", call, wait=True)).replies
        sent = await o.inject("rag_doc_delete", {**call, "confirm_token": said["confirm_token"]})
        question = await o.until(ApprovalRequested)
        word = ResolveApproval(
            approval=question.event.approval, decision="approve", edits={**call, "doc_id": "b"}, actor=Actor(user="ann")
        )
        await o.do(word)
        assert await o.tenant.ended(sent.thread_id, 20)
        assert await o.replies(sent.thread_id) == ({"deleted": True},)
        assert (await library.digests("x", ["a", "b"])).keys() == {"a"}


async def test_an_agent_s_model_is_shown_the_preview_and_confirms(world: MakeWorld) -> None:
    listeners = {"remove": REMOVE, "thinker": agent(tools=["remove"])}
    play = thinking(world, listeners, calls(call("remove", id="7")), says("Shall I?"), source=SOURCE)
    async with play.running(on_disk=False) as o:
        done = await o.inject("thinker", {"message": "Remove 7."}, wait=True)
        results = [data["output"] for kind, data in await run_of(o, done.message_id) if kind == "tool_result"]
        assert "confirm_token" in str(results)
        assert trace(o) == []


async def test_a_tool_of_a_server_is_confirmed_by_an_argument_that_it_never_sees(
    world: MakeWorld, tmp_path: Path
) -> None:
    command = [sys.executable, "-S", str(ROUGH), str(tmp_path / "diary")]
    play = world("", {}, tools={"mcp": {"rough": {"command": command}}})
    config = orjson.loads(play.config.read_bytes())
    config["listeners"].append({"name": "rough__do", "confirm": True})
    play.config.write_bytes(orjson.dumps(config))
    async with play.running(on_disk=False) as o:
        (said,) = (await o.inject("rough__do", {"json": '{"do": "this"}'}, wait=True)).replies
        confirmed = {"json": orjson.dumps({"do": "this", "confirm_token": said["confirm_token"]}).decode()}
        assert (await o.inject("rough__do", confirmed, wait=True)).replies[0]["text"] == "did this"
        assert (await o.inject("rough__do", confirmed, wait=True)).replies[0]["code"] == "confirm_used"
        assert (tmp_path / "diary").read_text().split() == ["begun", "this"]
