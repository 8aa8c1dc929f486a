"""Organisms whose agents think by a script: the models of a test, its agents, and what a run of theirs was."""

from __future__ import annotations

from typing import Any

import orjson

from organism.testing import Running
from tests.flows.world import MakeWorld, World

MODEL = "scripted"
Say = dict[str, Any]


def agent(prompt: str = "Be brief.", **keys: Any) -> dict[str, Any]:
    """The keys of a listener that the turn loop runs."""
    return {"handler": None, "model": MODEL, "prompt": prompt, **keys}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call in a script."""
    return {"name": name, "arguments": arguments}


def script(made: World, *answers: Say) -> World:
    """Write what the model says: the first answer that fits and is not used up."""
    (made.folder / "script.yaml").write_bytes(orjson.dumps({"answers": list(answers)}))
    return made


def in_order(*answers: Say) -> tuple[Say, ...]:
    """Each answer once, one after the other, whatever is asked."""
    return tuple({**answer, "times": 1} for answer in answers)


def thinking(world: MakeWorld, listeners: dict[str, dict[str, Any]], *answers: Say, source: str = "") -> World:
    """An organism with a scripted model."""
    models = {MODEL: {"provider": "scripted", "script": "script.yaml"}}
    return script(world(source, listeners, models=models), *answers)


async def run_of(o: Running, message_id: str) -> list[tuple[str, dict[str, Any]]]:
    """The entries of a message's run: the type and the data of each."""
    found = [event for event in await o.events() if event.type.startswith("run_")]
    return [
        (event.type.removeprefix("run_"), orjson.loads(event.content.json))
        for event in found
        if event.data["message"] == message_id and event.content is not None
    ]
