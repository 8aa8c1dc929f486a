"""The turn loop: a listener without a handler is run by a model."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from organism.agents.conversation import unfenced
from organism.events.vocabulary import MessageDead, MessageSent, TodoClosed, TodoRegistered
from tests.flows.thinking import Thinking, agent, call, calls, refusing, run_of, says, thinking
from tests.flows.world import MakeWorld

SOURCE = '''
from decimal import Decimal

@dataclass
class Sum:
    """Add two numbers."""

    a: int
    b: int = 1

@dataclass
class Total:
    total: int

async def adder(payload: Sum, metadata: HandlerMetadata):
    return HandlerResponse.respond(Total(payload.a + payload.b))

async def broken(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("no")

async def silent(payload: Ask, metadata: HandlerMetadata):
    return None

async def refuser(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(SystemError("validation", "Not so."))
'''
ADDER = {"adder": {"payload_class": "Sum"}}


def made(world: MakeWorld, *answers: dict[str, Any], **keys: Any) -> Thinking:
    tools = keys.pop("tools", ["adder"])
    listeners = {**ADDER, "thinker": agent(tools=tools, **keys), "broken": {}, "silent": {}, "refuser": {}}
    return thinking(world, listeners, *answers, source=SOURCE)


async def test_what_the_model_calls_is_asked_as_messages_through_the_pump(world: MakeWorld) -> None:
    play = made(world, calls(call("adder", a=1, b=2), call("adder", a=5), text="Let me add."), says("3 and 6."))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add."}, wait=True)
        sent = [record.event for record in await o.records(MessageSent) if record.event.to == "adder"]
        run = await run_of(o, outcome.message_id)
    assert [(each.sender, each.step) for each in sent] == [("thinker", (outcome.message_id, step)) for step in (2, 3)]
    assert [(kind, data.get("input"), data.get("output")) for kind, data in run if kind.startswith("tool")] == [
        ("tool_call", {"a": 1, "b": 2}, None),
        ("tool_call", {"a": 5}, None),
        ("tool_result", None, '{"total":3}'),
        ("tool_result", None, '{"total":6}'),
    ]
    assert run[-1] == ("done", {"stopReason": "stop"})
    assert outcome.replies[0]["text"] == "3 and 6."


async def test_the_model_gets_charter_prompt_peers_history_message_and_results(world: MakeWorld) -> None:
    play = made(world, calls(call("adder", a=1), text="Let me add."), says("2"), peers=["silent"], prompt="Be exact.")
    history = [{"role": "user", "content": "I am Dan."}, {"role": "assistant", "content": "Hello."}]
    async with play.running(on_disk=False) as o:
        await o.inject("thinker", {"message": "Add.", "history": history}, wait=True)
    first, second = play.models.calls
    system = first[0]["content"]
    assert system.startswith("You are an agent in an organism")
    assert "\n\nBe exact.\n\n" in system
    assert "silent: Ask" in system
    assert first[1:] == [*history, {"role": "user", "content": "Add."}]
    assert second[: len(first)] == first
    assert [message["role"] for message in second[len(first) :]] == ["assistant", "tool"]
    assert second[-2]["content"] == "Let me add."
    found = unfenced(second[-1]["content"])
    assert found == ("result of adder", '{"total":2}')


async def test_any_other_payload_class_is_reported_as_its_json(world: MakeWorld) -> None:
    play = made(world, says("Added."), payload_class="actors.play.Sum")
    async with play.running(on_disk=False) as o:
        await o.inject("thinker", {"a": 1}, wait=True)
    assert play.models.calls[0][-1]["content"] == '{"a":1,"b":1}'


async def test_the_requests_of_one_round_overlap(world: MakeWorld) -> None:
    source = """
    async def first(payload: Ask, metadata: HandlerMetadata):
        await gate("second has come")
        return HandlerResponse.respond(Told("first"))

    async def second(payload: Ask, metadata: HandlerMetadata):
        GATES.setdefault("second has come", asyncio.Event()).set()
        return HandlerResponse.respond(Told("second"))
    """
    listeners = {"first": {}, "second": {}, "thinker": agent(tools=["first", "second"])}
    play = thinking(world, listeners, calls(call("first"), call("second")), says("Both."), source=source)
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Both!"}, wait=True, seconds=10)
        results = [data["output"] for kind, data in await run_of(o, outcome.message_id) if kind == "tool_result"]
    assert results == ['{"text":"first"}', '{"text":"second"}']


@pytest.mark.parametrize(
    ("made_call", "code", "said"),
    [
        (call("nobody", a=1), "unknown_function", "There is no function 'nobody'"),
        ({"name": "adder", "raw": "{a: 1"}, "invalid_arguments", "no JSON object"),
        ({"name": "adder", "raw": "[1, 2]"}, "invalid_arguments", "no JSON object"),
        (call("adder"), "invalid_arguments", "/a: this field is missing"),
        (call("adder", a="one"), "invalid_arguments", "/a: expected whole number"),
        (call("adder", a=1, c=2), "invalid_arguments", "/c: this field is not known"),
        (call("broken"), "dead_letter", ""),
        (call("silent"), "no_reply", ""),
        (call("refuser"), "validation", "Not so."),
    ],
)
async def test_a_call_that_fails_is_answered_with_its_error_and_the_model_goes_on(
    world: MakeWorld, made_call: dict[str, Any], code: str, said: str
) -> None:
    play = made(world, calls(made_call), says("I could not."), tools=["adder", "broken", "silent", "refuser"])
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Do it."}, wait=True)
        run = await run_of(o, outcome.message_id)
    result = next(data for kind, data in run if kind == "tool_result")
    error = orjson.loads(result["output"])["error"]
    assert result["isError"] is True
    assert error["code"] == code
    assert said in error["message"]
    assert outcome.replies[0]["text"] == "I could not."
    assert unfenced(play.models.calls[1][-1]["content"]) == (f"result of {made_call['name']}", result["output"])


async def test_after_eight_rounds_of_calls_the_turn_stops_with_what_was_said(world: MakeWorld) -> None:
    play = made(world, {"text": "Once more.", "calls": [call("adder", a=1)]})
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add for ever."}, wait=True)
        run = await run_of(o, outcome.message_id)
    assert [kind for kind, _ in run].count("tool_result") == 8
    assert len(play.models.calls) == 9
    assert run[-1] == ("done", {"stopReason": "tool_rounds"})
    assert outcome.replies[0]["text"] == "Once more."


async def test_a_spent_budget_ends_the_turn_with_what_was_said(world: MakeWorld) -> None:
    play = made(world, calls(call("adder", a=1), text="Let me add."), says("2"))
    play.models.refuse = refusing("budget_exhausted", after=1)
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add."}, wait=True)
        run = await run_of(o, outcome.message_id)
    assert run[-1] == ("done", {"stopReason": "budget"})
    assert "error" not in dict(run)
    said = "Let me add.\n\nStopped before the answer was finished: No."
    assert outcome.replies == ({"text": said, "citations": []},)


async def test_a_model_that_gives_no_answer_makes_the_turn_a_dead_letter(world: MakeWorld) -> None:
    play = made(world, calls(call("adder", a=1), text="Let me add."))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add."}, wait=True)
        run = await run_of(o, outcome.message_id)
        dead = (await o.records(MessageDead))[0].event
    assert outcome.replies == ()
    assert outcome.thread is not None
    assert outcome.thread["status"] == "error"
    assert "script.yaml has no answer" in dead.reason
    assert [data["code"] for kind, data in run if kind == "error"] == ["upstream_error"] * 3
    assert run[-1] == ("done", {"stopReason": "error"})
    assert [kind for kind, _ in run].count("tool_result") == 1


async def test_the_usage_of_each_model_call_is_shown(world: MakeWorld) -> None:
    usage = {"usage": {"input_tokens": 7, "output_tokens": 2}}
    play = made(world, {**calls(call("adder", a=1)), **usage}, says("2", **usage))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add."}, wait=True)
        run = await run_of(o, outcome.message_id)
    assert [data for kind, data in run if kind == "usage"] == [
        {"input": 7, "output": 2, "total": 9, "model": "scripted", "served_by": "scripted"}
    ] * 2


async def test_the_charter_is_the_file_next_to_organism_yaml_or_none(world: MakeWorld) -> None:
    play = made(world, says("One."), says("Two."))
    folder = play.world.folder / "prompts"
    folder.mkdir()
    (folder / "charter.md").write_text("Be good.\n")
    async with play.running(on_disk=False) as o:
        await o.inject("thinker", {"message": "Hello"}, wait=True)
        play.world.top["organism"] = {"name": "play", "imports": ["actors"], "charter": False}
        play.world.write(SOURCE)
        await o.organism.reload()
        await o.inject("thinker", {"message": "Hello"}, wait=True)
    assert [messages[0]["content"] for messages in play.models.calls] == ["Be good.\n\nBe brief.", "Be brief."]


async def test_of_the_calls_of_one_round_thirty_two_are_made(world: MakeWorld) -> None:
    play = made(world, calls(*(call("adder", a=n) for n in range(34))), says("Enough."))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add."}, wait=True)
        results = [data for kind, data in await run_of(o, outcome.message_id) if kind == "tool_result"]
    assert [result["isError"] for result in results] == [False] * 32 + [True] * 2
    assert "too_many_calls" in results[-1]["output"]


async def test_what_was_mended_is_noted_on_the_message(world: MakeWorld) -> None:
    play = made(world, says("```xml\n<Sum><a>1</a><b>2"), says("Three\x00."))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("thinker", {"message": "Add."}, wait=True)
        sent = {record.event.to: record.event.notes for record in await o.records(MessageSent)}
    assert [note.split()[0] for note in sent["adder"]] == ["closed", "removed"]
    assert sent["console"] == ("/: replaced characters that XML cannot carry by U+FFFD, first U+0000 at 5",)
    assert sent["thinker"] == ()
    assert outcome.replies[0]["text"] == "Three\ufffd."


async def test_two_agents_that_call_each_other_stop_at_the_depth(world: MakeWorld) -> None:
    listeners = {"ping": agent("I am ping.", peers=["pong"]), "pong": agent("I am pong.", tools=["ping"])}
    answers = (
        {"when": {"tool_result": {"pattern": "."}}, "text": "Over."},
        {"when": {"system": "I am ping."}, "text": "", "calls": [call("pong", message="Go on.")]},
        {"when": {"system": "I am pong."}, "text": "", "calls": [call("ping", message="Go on.")]},
    )
    play = thinking(world, listeners, *answers)
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("ping", {"message": "Go."}, wait=True)
        sent = [record for record in await o.records(MessageSent) if not record.event.reply]
        dead = [record.event.reason for record in await o.records(MessageDead)]
        refused = [data for record in sent for kind, data in await run_of(o, record.event.message) if kind == "error"]
    assert [record.event.to for record in sent] == ["ping", "pong", "ping", "pong"]
    assert [data["code"] for data in refused] == ["recursion_depth_exceeded"] * 3
    assert len(dead) == 1
    assert outcome.replies == ({"text": "Over.", "citations": []},)


async def test_reminders_are_functions_and_what_has_passed_is_reported(world: MakeWorld) -> None:
    listeners = {"adder": {"payload_class": "Sum"}, "thinker": agent(tools=["adder"], peers=["system.todo"])}
    wait_for = call("todo_until", wait_for="Total", from_listener="adder", description="Tell the sum.")
    play = thinking(world, listeners, calls(wait_for), calls(call("adder", a=1)), says("Later."), source=SOURCE)
    async with play.running(on_disk=False) as o:
        first = await o.inject("thinker", {"message": "Remind me."}, wait=True)
        todo = (await o.records(TodoRegistered))[0].event.todo
        closing = {
            "when": {"system": "Tell the sum."},
            "text": "",
            "calls": [call("todo_complete", id=todo)],
            "times": 1,
        }
        play.script(closing, {"when": {"tool_result": "closed"}, "text": "Closed."})
        play.models.forget()
        second = await o.inject("thinker", {"message": "Now?"}, thread_id=first.thread_id, wait=True)
        results = [data for kind, data in await run_of(o, second.message_id) if kind == "tool_result"]
        closed = [record.event.todo for record in await o.records(TodoClosed)]
    assert results == [{"id": results[0]["id"], "output": '{"closed":true}', "isError": False}]
    assert closed == [todo]
    assert second.replies[-1]["text"] == "Closed."
