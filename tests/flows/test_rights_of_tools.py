"""An agent may call what its file names, if the token at the root is valid by then and does not leave it out (S5)."""

from __future__ import annotations

from typing import Any

import pytest

from organism.events.record import Actor
from organism.events.vocabulary import ApprovalRequested, MessageHandled
from organism.model.commands import Inject, Injected, ResolveApproval
from organism.testing import Running
from tests.flows import stage
from tests.flows.spender import tenants, token
from tests.flows.thinking import Say, Thinking, agent, call, calls, says, thinking
from tests.flows.world import MakeWorld

SOURCE = """
async def act(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    return HandlerResponse.respond(Told("done " + payload.text))

async def waits(payload: Ask, metadata: HandlerMetadata):
    await gate("waits")
    return HandlerResponse.respond(Told("waited"))

async def relay(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(await metadata.ask("act", payload))
"""
LISTENERS: dict[str, dict[str, Any]] = {
    "act": {},
    "asked": {"handler": "act", "approval": True},
    "peer": {"handler": "act"},
    "waits": {},
    "relay": {"peers": ["act"]},
    "helper": agent("I help.", tools=["act"]),
    "thinker": agent(tools=["act", "asked", "waits"], peers=["peer", "relay", "helper"]),
}
DONE = says("Over.")


def made(world: MakeWorld, *answers: Say) -> Thinking:
    play = thinking(world, LISTENERS, *answers, source=SOURCE)
    tokens = [token("all"), token("waits-only", tools=["waits", "relay", "helper"]), token("none", tools=[])]
    tenants(play.world, default={"tokens": tokens})
    return play


async def sent(o: Running, principal: str, to: str = "thinker", **json: str) -> str:
    """Inject for the token; gives the thread."""
    injected = await o.do(Inject(to=to, json=json or {"message": "Go."}, actor=Actor(principal=principal)))
    assert isinstance(injected, Injected)
    return injected.thread_id


def acts(o: Running) -> list[str]:
    return list(stage.play(o)["TRACE"])


WAYS = {
    "a tool": [calls(call("act", text="x"))],
    "a peer that is no tool": [calls(call("peer", text="x"))],
    "a tool behind a listener with code": [calls(call("relay", text="x"))],
    "a tool of another agent": [
        {"when": {"system": "I help."}, **calls(call("act", text="x"))},
        {"when": {"system": "I help."}, **DONE},
        calls(call("helper", message="Help.")),
    ],
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize(("principal", "done"), [("all", ["x"]), ("waits-only", []), ("none", []), ("gone", [])])
async def test_an_agent_calls_what_its_file_names_and_the_token_does_not_leave_out(
    world: MakeWorld, way: list[Say], principal: str, done: list[str]
) -> None:
    async with made(world, *way, DONE).running(on_disk=False) as o:
        assert await o.tenant.ended(await sent(o, principal), stage.PLAY_S)
        assert acts(o) == done


async def test_the_model_reads_why_a_tool_was_not_called(world: MakeWorld) -> None:
    play = made(world, calls(call("act", text="x")), DONE)
    async with play.running(on_disk=False) as o:
        assert await o.tenant.ended(await sent(o, "none"), stage.PLAY_S)
    result = play.models.calls[1][-1]["content"]
    assert "The token 'none', from whose injection this follows, may not have act called." in result


@pytest.mark.parametrize(("principal", "done"), [("all", ["x"]), ("none", []), ("gone", [])])
async def test_a_message_to_a_tool_is_a_call_of_it(world: MakeWorld, principal: str, done: list[str]) -> None:
    async with made(world).running(on_disk=False) as o:
        assert await o.tenant.ended(await sent(o, principal, "act", text="x"), stage.PLAY_S)
        assert acts(o) == done


async def test_a_token_that_is_revoked_ends_the_chain_at_the_next_call_of_a_tool(world: MakeWorld) -> None:
    play = made(world, calls(call("waits", text="x")), calls(call("act", text="x")), DONE)
    async with play.running(on_disk=False) as o:
        thread = await sent(o, "all")
        await stage.at_gate(o, "waits")
        o.organism.entries = ()
        stage.open_gate(o, "waits")
        assert await o.tenant.ended(thread, stage.PLAY_S)
        assert acts(o) == []
    assert "waited" in play.models.calls[1][-1]["content"]
    assert "not valid any more" in play.models.calls[2][-1]["content"]


async def test_what_a_person_approves_after_the_token_was_revoked_is_not_done(world: MakeWorld) -> None:
    play = made(world, calls(call("asked", text="x")), DONE)
    async with play.running(on_disk=False) as o:
        thread = await sent(o, "all")
        asked = await o.until(ApprovalRequested)
        o.organism.entries = ()
        await o.do(ResolveApproval(approval=asked.event.approval, decision="approve"))
        assert await o.tenant.ended(thread, stage.PLAY_S)
        assert acts(o) == []
    assert "not valid any more" in play.models.calls[1][-1]["content"]


async def test_what_is_no_tool_of_anyone_needs_no_tool(world: MakeWorld) -> None:
    async with made(world).running(on_disk=False) as o:
        await sent(o, "none", "peer", text="x")
        await o.until(MessageHandled, agent="peer")
        assert acts(o) == ["x"]
