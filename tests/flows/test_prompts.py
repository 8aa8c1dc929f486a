"""A handler has the prompts that were loaded with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from organism import UnknownAgentConfigError
from organism.errors import ConfigInvalid
from organism.events.vocabulary import MessageDead
from organism.testing import Running
from tests.agents.stack import a2, write
from tests.flows.stage import at_gate, play
from tests.flows.world import MakeWorld, World

SOURCE = """
from organism import AgentFactory

async def tells(payload: Ask, metadata: HandlerMetadata):
    if payload.text:
        await gate(payload.text)
    return HandlerResponse.respond(Told(AgentFactory.create("A2", "v1", {}).model_name))

def blocks(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(AgentFactory.create("A2", "v1", {}).model_name))

async def effects(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(await metadata.effect("name", name)))

async def name(key):
    return AgentFactory.create("A2", "v1", {}).model_name
"""
LISTENERS: dict[str, dict[str, Any]] = {"tells": {}, "blocks": {"blocking": True}, "effects": {}}


def names_model(folder: Path, model: str) -> None:
    write(folder, {**a2(), "model_name": model})


@pytest.fixture
def made(world: MakeWorld, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> World:
    """An organism with a prompt of its own; another one lies below the working directory."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    names_model(elsewhere, "of-the-directory")
    made = world(SOURCE, LISTENERS)
    names_model(made.folder, "of-the-organism")
    return made


async def reply_of(o: Running, name: str = "tells") -> str:
    outcome = await o.inject(name, {}, wait=True)
    text: str = outcome.replies[-1]["text"]
    return text


@pytest.mark.parametrize("name", LISTENERS)
async def test_a_handler_has_the_prompts_next_to_its_organism_yaml(made: World, name: str) -> None:
    async with made.running() as o:
        assert await reply_of(o, name) == "of-the-organism"


async def test_an_edit_acts_from_the_reload_on(made: World) -> None:
    async with made.running() as o:
        names_model(made.folder, "edited")
        assert await reply_of(o) == "of-the-organism"
        await o.organism.reload()
        assert await reply_of(o) == "edited"


async def test_a_handling_ends_with_the_prompts_that_it_began_with(made: World) -> None:
    async with made.running() as o:
        begun = await o.inject("tells", {"text": "door"})
        await at_gate(o, "door")
        before = play(o)
        names_model(made.folder, "edited")
        await o.organism.reload()
        assert await reply_of(o) == "edited"
        before["GATES"]["door"].set()
        assert await o.tenant.ended(begun.thread_id, 10)
        assert (await o.replies(begun.thread_id))[-1]["text"] == "of-the-organism"


async def test_a_bad_file_refuses_the_reload_and_changes_nothing(made: World) -> None:
    async with made.running() as o:
        write(made.folder, {**a2(), "mode": "Guesser"})
        with pytest.raises(ConfigInvalid) as refused:
            await o.organism.reload()
        assert [fault.pointer for fault in refused.value.details] == ["config/agents/A2/v1.json:/mode"]
        assert await reply_of(o) == "of-the-organism"


async def test_a_prompt_that_was_not_loaded_is_unknown_to_handlers(made: World) -> None:
    (made.folder / "config/agents/A2/v1.json").unlink()
    async with made.running() as o:
        names_model(made.folder, "too-late")
        outcome = await o.inject("tells", {}, wait=True)
        dead = await o.records(MessageDead, thread=outcome.thread_id)
        assert UnknownAgentConfigError.__name__ in dead[-1].event.reason


async def test_two_organisms_in_one_process_have_their_own_prompts(
    made: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = World(tmp_path_factory.mktemp("other"), SOURCE, LISTENERS)
    names_model(other.folder, "of-the-other")
    async with made.running() as o, other.running(on_disk=False) as p:
        assert [*await asyncio.gather(reply_of(o), reply_of(p))] == ["of-the-organism", "of-the-other"]
