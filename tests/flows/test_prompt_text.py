"""What a prompt's messages are written as: the digests that are recorded of them, and what is masked in them (S30)."""

from __future__ import annotations

import pytest

from organism.bootstrap import Parts
from organism.events.vocabulary import ModelCalled, StepStarted
from organism.model.commands import Injected, SendTurn
from organism.model.completion import ChatMessage
from organism.model.redact import MASK, Redactor
from organism.pump.history import Histories
from organism.testing import Running
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.flows.speaker import Speaker
from tests.flows.talking import begun, said
from tests.flows.thinking import agent
from tests.flows.world import MakeWorld

SECRET = "canary-of-a-prompt-4711"
SCRIPT = '{"answers": [{"text": "Well."}]}'
SAYS = """
from organism.model.tool import ToolSpec

TOOL = ToolSpec("look", "Looks something up.", {"type": "object", "properties": {"über": {}}}, strict=True)
FORM = {"type": "object", "properties": {"z": {"type": "number"}, "a": {"type": ["string", "null"]}}}
CALL = {"type": "function", "id": "c1", "function": {"name": "look", "arguments": '{"über":"<x> & \\\\u2028"}'}}

async def plain(payload: Ask, metadata: HandlerMetadata):
    await metadata.complete([{"role": "user", "content": payload.text}])

async def offered(payload: Ask, metadata: HandlerMetadata):
    said = [
        {"role": "system", "content": "Be brief.\\n"},
        {"content": [{"type": "text", "text": payload.text}, {"text": "🙂", "type": "text"}], "role": "user"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"tool_call_id": "c1", "role": "tool", "content": payload.text, "weights": [1, 0.5, -1e-7, True]},
        {"role": "assistant", "content": "", "api_key": "mine"},
        {"role": "user", "content": "And " + payload.text},
    ]
    await metadata.complete(said, tools=(TOOL,), response_format=FORM, temperature=0.25, max_tokens=7, model="m")
"""
RECORDED: dict[tuple[str, str], tuple[str, str]] = {
    ("plain", "Good day, “Dan”"): ("97214314093e150ba81c8a1f9e6ffd70", "61e4c7144bf00a5e6aa83d27db3fc005"),
    ("plain", f"Use {SECRET}!"): ("a7839524ca710ce990e3bb008ccf2a2f", "93f149a9b5cc0fa070e5bcd90b9ad556"),
    ("offered", "What is <2> & 3?"): ("fb663e08cf4734ad04096b65757b15eb", "63f32df0e5118786b1cb9c642ee0b477"),
    ("offered", f"Use {SECRET} at https://dan:pw@host/?key=x"): (
        "bdeb84407195600e69a51254f1a7275d",
        "9b901f0bf2d102ceed6a36b3f261d88a",
    ),
}
"""The inputs of the steps and the prompts of the calls, as versions before wrote them into their logs."""


@pytest.mark.parametrize(("handler", "text"), RECORDED)
async def test_a_call_has_the_digests_that_it_always_had(world: MakeWorld, handler: str, text: str) -> None:
    models = {"m": {"provider": "scripted", "script": "script.yaml"}}
    made = world(SAYS, {handler: {"model": "m"}}, models=models)
    (made.folder / "script.yaml").write_text(SCRIPT)
    async with made.running(on_disk=False, parts=Parts(redactor=Redactor([SECRET]))) as o:
        await o.inject(handler, {"text": text}, wait=True)
        found = [record.event for record in await o.records()]
    steps = [event.input for event in found if isinstance(event, StepStarted)]
    prompts = [event.prompt for event in found if isinstance(event, ModelCalled)]
    assert (*steps, *prompts) == RECORDED[handler, text]


async def ask(o: Running, session: str, text: str) -> None:
    """One turn of an agent's session."""
    begun = await o.do(SendTurn(session_id=session, user="ann", to="talk", json={"message": text}))
    assert isinstance(begun, Injected)
    assert await o.tenant.ended(begun.thread_id, 20)


async def test_a_secret_that_comes_between_two_turns_is_masked_in_old_messages_too(
    world: MakeWorld, peer: Peer
) -> None:
    models = {"m": {"provider": "openai", "base_url": peer.url}}
    made, redactor = world("", {"talk": agent(model="m", agent=True)}, models=models), Redactor()
    await peer.script(*[Answer(text=f"{SECRET}, you say?")] * 3)
    async with made.running(on_disk=False, parts=Parts(redactor=redactor)) as o:
        session = await begun(o)
        await ask(o, session, f"It is {SECRET}.")
        await ask(o, session, "Well?")
        redactor.add(SECRET)
        await ask(o, session, "Well?")
    requests = [[message["content"] for message in asked["body"]["messages"]] for asked in await peer.requests()]
    assert requests[1][-3:] == [f"It is {SECRET}.", f"{SECRET}, you say?", "Well?"]
    assert requests[2][-5:] == [f"It is {MASK}.", f"{MASK}, you say?", "Well?", f"{MASK}, you say?", "Well?"]


async def test_a_turn_writes_only_the_messages_that_the_turn_before_it_did_not_send(world: MakeWorld) -> None:
    models = {"m": {"provider": "offline"}}
    made, speaker = world("", {"talk": agent(model="m", agent=True)}, models=models), Speaker()
    async with made.running(on_disk=False, parts=speaker.parts()) as o:
        session = await begun(o)
        for text in ("a b", "c d", "e f"):
            await ask(o, session, text)
    before, after = ({id(message) for message in call.messages} for call in speaker.heard[1:])
    assert [message.given["content"] for message in speaker.heard[2].messages[-3:]] == ["c d", "cd", "e f"]
    assert len(after - before) == 2  # the answer of the second turn, and what the third says


async def test_what_equals_a_message_before_it_is_written_as_it_is(world: MakeWorld) -> None:
    source = """
    async def talk(payload: Ask, metadata: HandlerMetadata):
        await metadata.history()
        for weight in (1, True, 1.0, 1):
            await metadata.complete([{"role": "user", "content": "x", "weight": weight}], model="m")
    """
    made, speaker = world(source, {"talk": {}}), Speaker()
    async with made.running(on_disk=False, parts=speaker.parts()) as o:
        await said(o, await begun(o), "x")
        inputs = [record.event.input for record in await o.records() if isinstance(record.event, StepStarted)]
    assert (len(inputs), len({*inputs}), inputs[0] == inputs[3]) == (4, 3, True)


async def test_what_is_changed_after_the_call_is_sent_as_it_was(world: MakeWorld) -> None:
    source = """
    async def talk(payload: Ask, metadata: HandlerMetadata):
        await metadata.history()
        for _ in range(2):
            said = [{"role": "user", "content": "before"}, {"role": "user", "content": [{"text": "before"}]}]
            call = metadata.complete(said, model="m")
            said[0]["content"] = said[1]["content"][0]["text"] = "after"
            await call
    """
    made, speaker = world(source, {"talk": {}}), Speaker()
    async with made.running(on_disk=False, parts=speaker.parts()) as o:
        await said(o, await begun(o), "x")
    heard = [[message.given["content"] for message in call.messages] for call in speaker.heard]
    assert heard == [["before", [{"text": "before"}]]] * 2


def texts(count: int, size: int, letter: str) -> list[ChatMessage]:
    """So many messages of so many bytes, each of them another one."""
    return [{"role": "user", "content": f"{number:09}{letter * size}"} for number in range(count)]


async def test_prompts_in_memory_are_bounded(world: MakeWorld) -> None:
    async with world("", {}).running(on_disk=False) as o:
        histories = Histories()
        for session in "abcd":
            await histories.said_before(o.log, o.views, session, 1)

        def is_known(session: str, messages: list[ChatMessage]) -> bool:
            first, again = histories.prompt(session, messages), histories.prompt(session, messages)
            return all(one is other for one, other in zip(first, again, strict=True))

        assert is_known("a", texts(3, 1 << 20, "a"))
        assert is_known("b", texts(3, 1 << 20, "b"))
        assert not is_known("c", texts(9, 1 << 20, "c"))  # more than there is room for
        assert is_known("c", texts(1, 1 << 20, "c"))
        assert is_known("d", texts(3, 1 << 20, "d"))
        assert not is_known("a", texts(1, 1, "a"))  # it gave way to the others
        histories.forget("d")
        assert not is_known("d", texts(1, 1, "d"))
        assert not is_known("nobody", texts(1, 1, "x"))
