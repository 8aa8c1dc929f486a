"""An agent's row: what it works on, what that waits for, since when, and who paused it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.world import MakeWorld, World
from tests.server.served import Frames, Served, served

WAITING = """
async def asks(payload: Ask, metadata: HandlerMetadata):
    await metadata.ask("decides", payload)

async def decides(payload: Ask, metadata: HandlerMetadata):
    await metadata.approve({"text": payload.text})
    return HandlerResponse.respond(Told("done"))

async def works(payload: Ask, metadata: HandlerMetadata):
    async def work(key):
        await gate("work")
    await metadata.effect("job", work)
    return HandlerResponse.respond(Told("done"))

async def many(payload: Ask, metadata: HandlerMetadata):
    await asyncio.gather(*(metadata.ask("decides", Ask(str(number))) for number in range(22)))

async def plain(payload: Ask, metadata: HandlerMetadata):
    await gate("plain")
"""


def waiting(world: MakeWorld) -> World:
    """Listeners that wait for one another, for a person, in an effect, and for nothing."""
    asks = {"peers": ["decides"]}
    listeners = {"asks": asks, "many": asks, "decides": {}, "works": {}, "plain": {"max_concurrent": 8}}
    return world(WAITING, listeners)


async def handlings(server: Served, agent: str) -> list[dict[str, Any]]:
    """What the agent works on."""
    found: list[dict[str, Any]] = (await server.get(f"/agents/{agent}"))["handlings"]
    return found


async def begun(frames: Frames, agent: str, kind: str | None) -> dict[str, Any]:
    """The state of the agent that says that its only handling waits for this."""
    while True:
        state = (await frames.until("agent_state", agent=agent))[-1]
        wait = [each["waits_for"] for each in state["handlings"]]
        if wait and (wait[0] and wait[0]["kind"]) == kind:
            return state


async def test_each_handling_says_what_it_waits_for(world: MakeWorld) -> None:
    async with served(waiting(world).config) as server, server.socket() as socket:
        frames = Frames(socket)
        thread = (await server.inject("asks", {"text": "x"}, wait=None))["thread_id"]
        state = await begun(frames, "decides", "person")
        (approval,) = (await server.get("/approvals"))["approvals"]
        (asks,), (decides,) = await handlings(server, "asks"), await handlings(server, "decides")
        assert asks["waits_for"] == {
            "kind": "agent", "name": "decides", "since": asks["waits_for"]["since"], "step": 1, "effect": None,
        }  # fmt: skip
        assert decides["waits_for"] == {
            "kind": "person", "name": approval["id"], "since": approval["requested_at"], "step": 1, "effect": None,
        }  # fmt: skip
        assert (decides["thread_id"], decides["payload_type"], decides["attempt"]) == (thread, "Ask", 1)
        assert state["handlings"] == [decides]
        assert (state["open_handlings"], state["state"]) == (1, "waiting")
        shown = await server.get(f"/threads/{thread}")
        assert (shown["handlings"], shown["open_handlings"]) == ([asks, decides], 2)
        before = server.log.head
        await server.call("POST", f"/threads/{thread}/kill")
        killed = await server.get(f"/threads/{thread}")
        assert (killed["handlings"], killed["open_handlings"]) == ([], 0)
        assert await server.get(f"/threads/{thread}?at={before}") == shown


async def test_an_effect_is_waited_for_by_its_key_and_plain_code_for_nothing(world: MakeWorld) -> None:
    async with served(waiting(world).config) as server, server.socket() as socket:
        frames = Frames(socket)
        await server.inject("works", {"text": "x"}, wait=None)
        (work,) = (await begun(frames, "works", "effect"))["handlings"]
        assert (work["waits_for"]["name"], work["waits_for"]["effect"]) == ("job", "idempotent")
        for _ in range(7):
            await server.inject("plain", {"text": "x"}, wait=None)
        await frames.until("agent_state", agent="plain", open_handlings=7)
        row = await server.get("/agents/plain")
        starts = [each["started_at"] for each in row["handlings"]]
        assert (len(starts), row["open_handlings"]) == (5, 7)
        assert starts == sorted(starts)
        assert (await server.get(f"/agents/plain?at={server.log.head}")) == row


async def test_a_thread_counts_all_that_works_on_it_and_shows_the_oldest(world: MakeWorld) -> None:
    async with served(waiting(world).config) as server, server.socket() as socket:
        thread = (await server.inject("many", {"text": "x"}, wait=None))["thread_id"]
        other = (await server.inject("asks", {"text": "x"}, wait=None))["thread_id"]
        await Frames(socket).until("agent_state", agent="decides", open_handlings=23)
        shown = await server.get(f"/threads/{thread}")
        assert (shown["open_handlings"], len(shown["handlings"]), shown["handlings"][0]["agent"]) == (23, 20, "many")
        assert {each["thread_id"] for each in shown["handlings"]} == {thread}
        assert (await server.get(f"/threads/{other}"))["open_handlings"] == 2


async def test_a_paused_agent_says_who_paused_it_and_how_long_its_queue_has_waited(hello: Served) -> None:
    for pause, path in (("/agents/shouter", "/agents/shouter"), ("/organism", "/organism")):
        paused = (await hello.call("POST", pause + "/pause")).json()
        assert paused["paused_by"] == {"principal": "operator", "user": None, "reason": None}
        assert paused["paused_at"] == (await hello.get("/log?limit=500"))["events"][-1]["at"]
        head = hello.log.head
        resumed = (await hello.call("POST", pause + "/resume")).json()
        assert (resumed["paused_by"], resumed["paused_at"]) == (None, None)
        assert (await hello.get(f"{path}?at={head}"))["paused_by"] == paused["paused_by"]
    await hello.call("POST", "/agents/greeter/pause")
    first = await hello.inject(wait=None)
    await hello.inject(wait=None)
    sent = (await hello.get(f"/messages/{first['message_id']}"))["timestamp"]
    row = await hello.get("/agents/greeter")
    assert (row["queue_depth"], row["oldest_waiting_at"], row["handlings"]) == (2, sent, [])


@pytest.mark.parametrize("came_before", [False, True])
async def test_the_first_viewer_is_told_of_no_agent_what_it_has_just_been_shown(
    hello: Served, *, came_before: bool
) -> None:
    for _ in range(2):
        if came_before:  # what it is shown was read for another one, who has left
            async with hello.socket() as socket:
                assert (await Frames(socket).next())["event"] == "connected"
        async with hello.socket() as socket:
            frames = Frames(socket)
            shown = {row["name"]: row for row in (await frames.next())["agents"]}
            await hello.call("POST", "/agents/shouter/pause")
            (*before, state) = await frames.until("agent_state", agent="shouter", paused=True)
            assert [frame for frame in before if frame["event"] == "agent_state"] == []
            assert state["paused_by"]["principal"] == "operator"
            assert not shown["shouter"]["paused"]
            await hello.call("POST", "/agents/shouter/resume")
