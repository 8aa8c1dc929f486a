"""Dead letters of a thread over REST and the socket: a failure is listed with its line and resolved as one."""

from __future__ import annotations

from pathlib import Path

from tests.flows.test_failures import ASKERS, CHAIN
from tests.flows.world import World
from tests.server.served import Frames, Served, served

STRAY = """
async def stray(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(payload, to="inner")
"""


async def status(server: Served, thread: str) -> str:
    """How the thread stands."""
    found: str = (await server.get(f"/threads/{thread}"))["status"]
    return found


async def test_the_failures_of_a_thread_are_shown_counted_and_sent_again_as_one(tmp_path: Path) -> None:
    made = World(tmp_path, CHAIN + STRAY, {**ASKERS, "stray": {}})
    async with served(made.config) as server, server.socket() as socket:
        frames = Frames(socket)
        thread = (await server.inject("outer", {"text": "ann"}))["thread_id"]
        pushed = (await frames.until("dead_letter", agent="inner"))[-1]["dead_letter"]
        await server.inject("stray", {"text": "ann"}, thread_id=thread)
        outer, middle, inner = [
            each for each in (await server.get("/dead-letters"))["dead_letters"] if each["attempts"]
        ]
        assert (outer["root"], middle["root"], "root" in inner) == (inner["id"], inner["id"], False)
        assert [line["code"] for line in inner["traceback"]] == [
            "return HandlerResponse.respond(Told(NAMES[name]))",
            "return find(payload.text)",
        ]
        assert pushed["traceback"] == inner["traceback"]
        assert (await server.get("/organism"))["waiting_for_people"]["dead_letters"] == 2
        made.write(CHAIN.replace("NAMES = {}", 'NAMES = {"ann": "Ann"}') + STRAY)
        assert (await server.call("POST", "/organism/reload")).status_code == 200
        replayed = await server.call("POST", f"/threads/{thread}/dead-letters/replay")
        assert (replayed.status_code, replayed.json()["id"]) == (200, thread)
        await frames.until("thread_updated", thread_id=thread, status="completed")
        (left,) = (await server.get("/dead-letters"))["dead_letters"]
        assert left["code"] == "routing", "what would be refused again stays"
        discarded = await server.call("POST", f"/threads/{thread}/dead-letters/discard")
        assert discarded.json()["status"] == "completed"
        assert (await server.get("/dead-letters"))["total"] == 0
        for act in ("replay", "discard"):
            assert (await server.call("POST", f"/threads/{thread}/dead-letters/{act}")).status_code == 200
            assert (await server.call("POST", f"/threads/thr-none/dead-letters/{act}")).status_code == 404


async def test_the_failures_of_a_killed_thread_are_discarded_and_not_sent_again(tmp_path: Path) -> None:
    async with served(World(tmp_path, CHAIN, dict(ASKERS)).config) as server:
        thread = (await server.inject("outer", {"text": "ann"}))["thread_id"]
        await server.call("POST", f"/threads/{thread}/kill")
        refused = await server.call("POST", f"/threads/{thread}/dead-letters/replay")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "thread_killed")
        assert (await server.call("POST", f"/threads/{thread}/dead-letters/discard")).status_code == 200
        assert await status(server, thread) == "killed"
        assert (await server.get("/dead-letters"))["total"] == 0
