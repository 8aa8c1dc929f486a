"""A listener that names a prompt of AgentStack and has no handler: one call, and its checked answer."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from organism.events.vocabulary import MessageDead
from tests.flows.thinking import MODEL, Say, Thinking, run_of, says, thinking
from tests.flows.world import MakeWorld

SOURCE = '''
@dataclass
class Shape:
    """What is to be labelled."""

    task: str
    purpose: str = ""
'''
PROMPT: dict[str, Any] = {
    "agent_name": "A2",
    "version": "v1",
    "mode": "Chooser",
    "system_text": "Choose labels.",
    "purpose_text": "Look at the task.",
    "output_schema": {
        "type": "object",
        "required": ["tone", "depth"],
        "properties": {
            "tone": {"type": "string", "enum": ["direct", "friendly"]},
            "depth": {"type": "string", "enum": ["short", "detailed"]},
            "note": {"type": "string"},
        },
    },
    "enums": {"tone": ["direct", "friendly"], "depth": ["short", "detailed"]},
    "defaults": {"depth": "short"},
    "model_name": MODEL,
    "temperature": 0.5,
    "max_output_tokens": 99,
    "input_keys": ["task"],
}
SHAPER = {"handler": None, "prompt_ref": "A2@v1", "payload_class": "actors.play.Shape"}


def made(world: MakeWorld, *answers: Say, **keys: Any) -> Thinking:
    folder = world("", {}).folder / "config/agents/A2"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "v1.json").write_bytes(orjson.dumps(PROMPT))
    return thinking(world, {"shaper": {**SHAPER, **keys}}, *answers, source=SOURCE)


async def test_the_fields_of_the_payload_are_what_the_prompt_is_composed_of(world: MakeWorld) -> None:
    play = made(world, says('{"tone": "direct", "depth": "detailed"}'))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("shaper", {"task": 'Sort "a".', "purpose": "speed"}, wait=True)
    (messages,) = play.models.calls
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[0]["content"].startswith("Choose labels.\n\nLook at the task.\n\nAgent: A2, version v1.")
    assert messages[1]["content"].startswith('task = "Sort \\"a\\"."\npurpose = "speed"\n')
    (options,) = play.models.options
    assert options["model"] == MODEL
    assert (options["temperature"], options["max_tokens"]) == (0.5, 99)
    assert options["response_format"] == PROMPT["output_schema"]
    assert outcome.replies == ({"text": '{"tone":"direct","depth":"detailed"}', "citations": []},)


async def test_prose_and_fences_are_cut_away_and_defaults_fill_what_is_missing(world: MakeWorld) -> None:
    play = made(world, says('Here:\n```json\n{"tone": "friendly"}\n```\nBye.'))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("shaper", {"task": "Sort."}, wait=True)
        run = await run_of(o, outcome.message_id)
    labels = '{"tone":"friendly","depth":"short"}'
    assert outcome.replies[0]["text"] == labels
    assert [entry for entry in run if entry[0] != "usage"] == [
        ("message", {"text": labels}),
        ("done", {"stopReason": "stop"}),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I choose direct.", "no JSON object"),
        ('{"tone": "rude", "depth": "short"}', "/tone"),
        ("", ""),
    ],
)
async def test_an_answer_that_does_not_fit_is_a_dead_letter_that_names_every_field(
    world: MakeWorld, text: str, reason: str
) -> None:
    play = made(world, says(text))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("shaper", {"task": "Sort."}, wait=True)
        dead = (await o.records(MessageDead))[0].event
    assert outcome.replies == ()
    assert "The answer to A2@v1 does not fit" in dead.reason
    assert reason in dead.reason
    assert len(play.models.calls) == 1


async def test_an_answer_that_does_not_fit_is_the_error_of_its_run(world: MakeWorld) -> None:
    play = made(world, says('{"tone": "rude", "depth": 1}'))
    async with play.running(on_disk=False) as o:
        outcome = await o.inject("shaper", {"task": "Sort."}, wait=True)
        run = await run_of(o, outcome.message_id)
    (error, *_) = [data for kind, data in run if kind == "error"]
    assert (error["code"], run[-1]) == ("upstream_error", ("done", {"stopReason": "error"}))
    assert "/tone: " in error["message"]
    assert "/depth: " in error["message"]


async def test_the_prompt_of_a_listener_without_a_payload_class_gets_the_message(world: MakeWorld) -> None:
    folder = world("", {}).folder / "config/agents/A2"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "v1.json").write_bytes(orjson.dumps({**PROMPT, "input_keys": []}))
    listeners = {"shaper": {"handler": None, "prompt_ref": "A2@v1"}}
    play = thinking(world, listeners, says('{"tone": "direct"}'))
    async with play.running(on_disk=False) as o:
        await o.inject("shaper", {"message": "Sort."}, wait=True)
    assert play.models.calls[0][1]["content"].startswith('message = "Sort."')


async def test_an_input_that_the_prompt_lacks_is_a_dead_letter_that_names_it(world: MakeWorld) -> None:
    play = made(world, payload_class="actors.play.Ask")
    async with play.running(on_disk=False) as o:
        await o.inject("shaper", {"text": "Sort."}, wait=True)
        dead = (await o.records(MessageDead))[0].event
    assert "missing: task" in dead.reason
    assert play.models.calls == []
