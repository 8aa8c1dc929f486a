"""Whatever a handler does changes its own thread's fate only: for the others nothing begins anew (G7)."""

from __future__ import annotations

import pytest

from tests.flows.stage import folded_anew, folded_live, open_gate
from tests.flows.world import MakeWorld

OTHERS = """
class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")

class Shy:
    def __repr__(self):
        raise ValueError("no text")

async def bystander(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(metadata.attempt)
    await gate("bystander")
    return HandlerResponse.respond(Told(str(metadata.attempt)))

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def touch(key: str):
    return key

async def break_down(key: str):
    raise ValueError(chr(0xd800))

async def plain(payload: Ask, metadata: HandlerMetadata):
    return None

async def bad(payload: Ask, metadata: HandlerMetadata):
    {body}
"""
BODIES = {
    "an error with a lone surrogate in its text": "raise ValueError(chr(0xd800))",
    "an error that cannot say what it is": "raise Mute",
    "an endless error text": "raise ValueError('x' * 10_000_000)",
    "a receiver that is no text": "return HandlerResponse(Ask('x'), to=object())",
    "a receiver with a lone surrogate": "return HandlerResponse(Ask('x'), to=chr(0xd800))",
    "an ask of a receiver that is no text": "await metadata.ask(object(), Ask('x'))",
    "an ask of a receiver with a lone surrogate": "await metadata.ask(chr(0xd800), Ask('x'))",
    "an ask with a payload that is none": "await metadata.ask('echo', object())",
    "an ask for longer than there is time": "await metadata.ask('echo', Ask('x'), timeout=1e20)",
    "an ask for ever": "await metadata.ask('echo', Ask('x'), timeout=float('inf'))",
    "an ask for no time at all": "await metadata.ask('echo', Ask('x'), timeout=float('nan'))",
    "an effect whose key is no text": "await metadata.effect(object(), touch)",
    "an effect whose key has a lone surrogate": "await metadata.effect(chr(0xd800), touch)",
    "an effect that is no function": "await metadata.effect('x', None)",
    "an effect that raises a lone surrogate": "await metadata.effect('x', break_down)",
    "an effect of no kind": "await metadata.effect('x', touch, kind='odd')",
    "an effect whose kind is no text": "await metadata.effect('x', touch, kind=[])",
    "an answer that cannot say what it is": "return HandlerResponse(Shy(), to='echo')",
    "an ask of something that cannot say what it is": "await metadata.ask('echo', Shy())",
    "a preview that is no JSON": "await metadata.approve(object())",
    "a preview with a lone surrogate": "await metadata.approve(chr(0xd800))",
    "a list with other things in it": "return [HandlerResponse.respond(Told('x')), None]",
    "a generator": "return (HandlerResponse.respond(Told('x')) for _ in range(2))",
    "its own cancellation": "asyncio.current_task().cancel(); await asyncio.sleep(0)",
    "a cancellation that it raises": "raise asyncio.CancelledError",
    "an exit": "raise SystemExit(1)",
    "an interrupt": "raise KeyboardInterrupt",
    "a generator's end": "raise GeneratorExit",
    "a stop": "raise StopIteration",
    "a recursion": "return await bad(payload, metadata)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_whatever_a_handler_does_ends_its_own_message_and_nothing_else(world: MakeWorld, body: str) -> None:
    made = world(
        OTHERS.format(body=body), {"bad": {"peers": ["echo"]}, "bystander": {}, "echo": {}}, retry={"attempts": 1}
    )
    async with made.running(on_disk=False) as o:
        bystander = await o.inject("bystander", {"text": "x"})
        bad = await o.inject("bad", {"text": "x"}, wait=True, seconds=10)
        open_gate(o, "bystander")
        assert await o.tenant.ended(bystander.thread_id, 10)
        assert await o.replies(bystander.thread_id) == ({"text": "1"},)
        assert len(await o.events("organism_started")) == 1
        assert o.pump.state.boxes.running == 0
        assert await folded_live(o) == await folded_anew(o.log)
    assert bad.thread is not None
    assert bad.thread["status"] in {"error", "completed"}
