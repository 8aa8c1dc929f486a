"""Listeners that share a payload class: by name, or as a group that gets what one of it gets."""

from __future__ import annotations

from typing import Any

import pytest

from organism.events.vocabulary import MessageDead, MessageHandled, MessageRefused, MessageSent
from tests.flows.stage import answers, at_gate, open_gate
from tests.flows.world import MakeWorld

GROUP = """
async def caller(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(Ask(payload.text), to="left")

async def asker(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("left", Ask(payload.text))
    return HandlerResponse.respond(reply)

async def left(payload: Ask, metadata: HandlerMetadata):
    await gate("left")
    return HandlerResponse.respond(Told("left"))

async def right(payload: Ask, metadata: HandlerMetadata):
    await gate("right")
    return HandlerResponse.respond(Told("right"))
"""
MEMBERS: dict[str, dict[str, Any]] = {"left": {"broadcast": True}, "right": {"broadcast": True}}


async def test_an_injection_to_one_of_a_group_is_a_message_to_each_of_the_same_cause(world: MakeWorld) -> None:
    async with world(GROUP, MEMBERS).running(on_disk=False) as o:
        injected = await o.inject("left", {"text": "x"})
        open_gate(o, "left", "right")
        assert await o.tenant.ended(injected.thread_id, 10)
        sent = [record for record in await o.records(MessageSent) if record.event.sender == "console"]
        replies = await o.replies(injected.thread_id)
    assert sorted(record.event.to for record in sent) == ["left", "right"]
    assert {(record.cause, record.correlation, record.thread) for record in sent} == {
        (None, injected.message_id, injected.thread_id)
    }
    assert sorted(reply["text"] for reply in replies) == ["left", "right"]


async def test_listeners_of_one_class_that_are_no_group_are_told_apart_by_name(world: MakeWorld) -> None:
    async with world(GROUP, {"left": {"broadcast": True}, "right": {}}).running(on_disk=False) as o:
        injected = await o.inject("left", {"text": "x"})
        open_gate(o, "left")
        assert await answers(o, injected.thread_id) == ["left"]


@pytest.mark.parametrize(("first", "second"), [("left", "right"), ("right", "left")])
async def test_an_ask_takes_the_first_reply_and_later_ones_end_unread(
    world: MakeWorld, first: str, second: str
) -> None:
    async with world(GROUP, {"asker": {"peers": ["left", "right"]}, **MEMBERS}).running(on_disk=False) as o:
        injected = await o.inject("asker", {"text": "x"})
        await at_gate(o, second)
        open_gate(o, first)
        await o.until(MessageHandled, agent="asker", outcome="done")
        open_gate(o, second)
        assert await o.tenant.ended(injected.thread_id, 10)
        ends = [record.event for record in await o.records(MessageHandled)]
        assert await o.replies(injected.thread_id) == ({"text": first},)
    assert [end.outcome for end in ends if end.agent == "asker"] == ["answered", "done", "unread"]


async def test_a_group_of_which_one_member_is_no_peer_is_refused_whole(world: MakeWorld) -> None:
    async with world(GROUP, {"caller": {"peers": ["left"]}, **MEMBERS}).running(on_disk=False) as o:
        await o.inject("caller", {"text": "x"}, wait=True)
        refused = (await o.records(MessageRefused))[0].event
        assert not {record.event.to for record in await o.records(MessageSent)} & MEMBERS.keys()
    assert refused.why == "not_a_peer"
    assert "right" in refused.reason


async def test_an_ask_of_a_group_goes_on_while_one_of_it_can_still_answer(world: MakeWorld) -> None:
    made = world(
        GROUP.replace('return HandlerResponse.respond(Told("left"))', 'raise ValueError("left is broken")'),
        {"asker": {"peers": ["left", "right"]}, **MEMBERS},
        retry={"attempts": 1},
    )
    async with made.running(on_disk=False) as o:
        injected = await o.inject("asker", {"text": "x"})
        open_gate(o, "left")
        await o.until(MessageDead, agent="left")
        open_gate(o, "right")
        assert await answers(o, injected.thread_id) == ["right"]
