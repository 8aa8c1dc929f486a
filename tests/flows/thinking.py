"""Organisms whose agents think by a script: the models of a test, its agents, and what a run of theirs was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from organism.agents.gateway import check_depth
from organism.agents.providers import ProviderError
from organism.agents.providers.scripted import Scripted
from organism.bootstrap import Parts
from organism.events.vocabulary import StepError
from organism.model.completion import (
    ChatMessage,
    CompleteError,
    CompleteOptions,
    ModelRequest,
    added_up,
)
from organism.pump.decide.decision import Decision
from organism.pump.decide.spend import ModelCall, Outcome
from organism.pump.run.model_call import StreamPart
from organism.testing import Running
from organism.views.run import entry_of
from tests.flows.stage import messages_of, shown
from tests.flows.world import MakeWorld, World

MODEL = "scripted"
REMOVE = '''
@dataclass
class Removal:
    """Remove it for good."""

    id: str

async def remove(payload: Removal, metadata: HandlerMetadata):
    TRACE.append(payload.id)
    return HandlerResponse.respond(Told("removed " + payload.id))
'''
"""A listener ``remove`` for which a person is asked; the trace has what was removed."""
Say = dict[str, Any]


@dataclass
class Played:
    """Models that answer from the script next to organism.yaml. ``refuse`` may raise what a gateway would."""

    path: Path
    refuse: Callable[[ModelCall], None] = lambda _: None
    calls: list[Sequence[ChatMessage]] = field(default_factory=list)
    options: list[CompleteOptions] = field(default_factory=list)
    _model: Scripted | None = None

    async def prepare(self, call: ModelCall) -> None:
        """Nothing takes long."""

    def reserve(self, decision: Decision, call: ModelCall) -> None:
        check_depth(call.message, decision.state.rules.listeners)
        self.refuse(call)

    def forget(self) -> None:
        """Read the script again."""
        self._model = None

    async def call(self, call: ModelCall, on_part: Callable[[StreamPart], None]) -> Outcome:
        self._model = self._model or Scripted.read(self.path)
        messages = messages_of(call)
        self.calls.append(messages)
        self.options.append(call.options)
        request = ModelRequest(MODEL, tuple(messages), tuple(call.options.get("tools", ())))
        heard: list[Any] = []
        try:
            async for part in self._model.stream(request):
                on_part(part)
                heard.append(part)
        except ProviderError as error:
            return Outcome(None, StepError("upstream_error", str(error)), 1, 0)
        return Outcome(added_up(heard, model=MODEL, served_by="scripted"), None, 1, 0)


def agent(prompt: str = "Be brief.", **keys: Any) -> dict[str, Any]:
    """The keys of a listener that the turn loop runs."""
    return {"handler": None, "model": MODEL, "prompt": prompt, **keys}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call in a script."""
    return {"name": name, "arguments": arguments}


def calls(*made: Mapping[str, Any], text: str = "") -> Say:
    """An answer with calls."""
    return {"text": text, "calls": list(made), "times": 1}


def says(text: str, **more: Any) -> Say:
    """An answer in words."""
    return {"text": text, "times": 1, **more}


class Thinking:
    """An organism whose agents think by a script; ``models`` is what they asked in this life."""

    def __init__(self, made: World) -> None:
        self.world = made
        self.models = Played(made.folder / "script.yaml")

    def script(self, *answers: Say) -> None:
        """What the model says: the first answer that fits and is not used up."""
        (self.world.folder / "script.yaml").write_bytes(orjson.dumps({"answers": list(answers)}))

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Running]:
        """Start it."""
        async with self.running_with(Played(self.models.path, self.models.refuse), **options) as o:
            yield o

    @asynccontextmanager
    async def running_with(self, models: Played, **options: Any) -> AsyncIterator[Running]:
        """Start it on other models."""
        self.models = models
        async with self.world.running(parts=Parts(models=lambda _: models), **options) as o:
            yield o


def thinking(world: MakeWorld, listeners: dict[str, dict[str, Any]], *answers: Say, source: str = "") -> Thinking:
    """An organism with a scripted model."""
    models = {MODEL: {"provider": "scripted", "script": "script.yaml"}}
    folder = world("", {}).folder
    (folder / "script.yaml").write_bytes(orjson.dumps({"answers": list(answers)}))
    return Thinking(world(source, listeners, models=models))


def refusing(code: str, message: str = "No.", after: int = 0) -> Callable[[ModelCall], None]:
    """Models that refuse each call after so many."""
    made: list[ModelCall] = []

    def refuse(asked: ModelCall) -> None:
        made.append(asked)
        if len(made) > after:
            raise CompleteError(code, message)  # type: ignore[arg-type]  # a parameter of tests

    return refuse


async def run_of(o: Running, message_id: str) -> list[tuple[str, dict[str, Any]]]:
    """The entries of a message's run: the type and the data of each."""
    entries = [entry_of(record) for record in await shown(o) if record.event.message == message_id]
    return [(entry["type"], entry["data"]) for entry in entries]
