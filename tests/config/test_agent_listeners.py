"""Conversational agents as listeners, and listeners that refer to files of agents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import organism.agents
from organism.config.load import load
from organism.config.reload import diff
from organism.config.settings import Budget, Model, Settings, ShippedTool, Spend
from organism.config.shown import shown_section, shown_settings
from organism.config.tools import Tools
from organism.model.agent import Prompt
from tests.agents.stack import a2, write
from tests.config.place import GREETER, HEAD, HELLO, Place

BUNDLED = Path(organism.agents.__file__).parent / "bundled"
NAMES = ("berlin-rag", "berlin-tour", "concise-de", "librarian", "researcher-rag", "researcher")
ADA = """\
name: ada
model: offline
description: Answers
system_prompt: Be exact.
max_tokens: 99
budget: {run: {calls: 3}}
"""
THINKER = "  - {name: thinker, description: Thinks, %s}\n"


@dataclass
class Sum:
    """Adds."""

    a: int


def ship(tools: Tools, _named: Collection[str]) -> Sequence[ShippedTool]:
    off = "" if tools.http_fetch else "list hosts"
    adder = ShippedTool(name="adder", scope="tools:execute", payload_class=Sum, replies=())
    return (adder, ShippedTool(name="fetcher", scope="tools:execute", payload_class=Sum, replies=(), is_off=off))


def bundled(place: Place) -> Settings:
    """Load it as the organism does, with the bundled agents at hand."""
    path = place.folder / "organism.yaml"
    return load(path, check_payload=place.check_payload, imports=place.importer, bundled=BUNDLED, ship=place.ship)


@pytest.fixture
def ada(place: Place) -> Place:
    """A place with a file of an agent, ``ada``."""
    place.write("config/agents/ada.yaml", ADA)
    return place


def faults(place: Place, text: str | None = None) -> dict[str, str]:
    return {where.removeprefix("config/agents/"): what for where, what in place.faults(text).items()}


def test_an_agent_is_a_listener_without_a_handler(ada: Place) -> None:
    listener = ada.listener("ada")
    assert (listener.description, listener.model, listener.prompt) == ("Answers", "offline", "Be exact.")
    assert (listener.handler, listener.handler_path, listener.is_agent) == (None, None, True)
    assert (listener.payload_class, listener.payload_class_path) == (Prompt, "organism.Prompt")
    assert listener.accepts == {Prompt}
    assert listener.budget == Budget(Spend(calls=3))
    assert listener.agent is not None
    assert listener.agent.max_tokens == 99


def test_agents_come_after_the_listeners_of_the_file_by_name(ada: Place) -> None:
    ada.write("config/agents/Bob.yaml", ADA.replace("ada", "Bob"))
    assert [listener.name for listener in ada.load().listeners] == ["greeter", "Bob", "ada"]


def test_an_agent_may_name_listeners_agents_and_shipped_tools_as_tools(ada: Place) -> None:
    ada.ship = ship
    ada.write("config/agents/bob.yaml", ADA.replace("ada", "bob") + "tools: [adder, ada, greeter]\n")
    loaded = ada.load()
    assert [listener.name for listener in loaded.listeners] == ["greeter", "ada", "bob", "adder"]
    bob = loaded.listener("bob")
    assert bob is not None
    assert all(bob.may_send_to(name) for name in ("adder", "ada", "greeter"))
    assert not bob.may_send_to("console")


def test_a_tool_that_is_not_there_or_off_is_a_fault_of_its_file(ada: Place) -> None:
    ada.ship = ship
    ada.write("config/agents/ada.yaml", ADA + "tools:\n  - ader\n  - fetcher\n")
    assert faults(ada) == {
        "ada.yaml:8:tools[0]": "there is no tool `ader`; did you mean `adder`?",
        "ada.yaml:9:tools[1]": "`fetcher` is off: list hosts",
    }


def test_a_model_that_is_not_configured_is_a_fault(ada: Place) -> None:
    ada.yaml("models: {tiny: {provider: offline}}\n" + HEAD + GREETER)
    assert faults(ada) == {"ada.yaml:2:model": "there is no model `offline` in `models` of organism.yaml"}


def test_a_name_that_a_listener_has_is_a_fault(ada: Place) -> None:
    text = HEAD + GREETER.replace("greeter", "ada")
    assert faults(ada, text) == {
        "ada.yaml:1:name": "`ada` is taken: listeners[0] of organism.yaml, line 3, has it already"
    }


@pytest.mark.parametrize("name", ["console", "system"])
def test_a_reserved_name_is_a_fault(place: Place, name: str) -> None:
    place.write(f"config/agents/{name}.yaml", ADA.replace("ada", name))
    assert faults(place) == {f"{name}.yaml:1:name": f"`{name}` is reserved for the organism itself; take another name"}


def test_a_reference_to_a_prompt_gives_its_model_unless_there_is_an_own_one(place: Place) -> None:
    write(place.folder, a2())
    place.yaml(
        HEAD + THINKER % "prompt_ref: A2@v1" + THINKER.replace("thinker", "other") % "prompt_ref: A2@v1, model: offline"
    )
    loaded = place.load()
    assert [listener.model for listener in loaded.listeners] == ["gpt-4.1-mini", "offline"]
    assert [listener.agent for listener in loaded.listeners] == [None, None]


def test_a_reference_to_an_agent_gives_what_the_listener_does_not_say_itself(ada: Place) -> None:
    ada.write("config/agents/ada.yaml", ADA + "tools: [greeter]\n")
    ada.yaml(HEAD + GREETER + THINKER % "prompt_ref: ada")
    thinker, file = ada.listener("thinker"), ada.listener("ada")
    assert (thinker.prompt, thinker.model, thinker.tools) == (file.prompt, file.model, file.tools)
    assert (thinker.budget, thinker.agent, thinker.is_agent) == (file.budget, file.agent, True)
    ada.yaml(
        HEAD
        + GREETER
        + THINKER % "prompt_ref: ada, prompt: P, model: gpt-4.1-mini, tools: [ada], budget: {day: {calls: 1}}"
    )
    thinker = ada.listener("thinker")
    assert (thinker.prompt, thinker.model, thinker.tools) == ("P", "gpt-4.1-mini", ("ada",))
    assert thinker.budget == Budget(day=Spend(calls=1))


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("A2@v2", "there is no config/agents/A2/v2.json; did you mean `A2@v1`?"),
        ("adda", "there is no agent `adda`; did you mean `ada`?; a prompt is named with its version, as A2@v1"),
        ("A2@v1", "there is no model `gpt-4.1-mini` in `models` of organism.yaml"),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_fault(ada: Place, ref: str, message: str) -> None:
    write(ada.folder, a2())
    text = "models: {offline: {provider: offline}}\n" + HEAD + THINKER % f"prompt_ref: {ref}"
    assert faults(ada, text) == {"organism.yaml:4:listeners[0].prompt_ref".removeprefix("organism.yaml:"): message}


def test_a_changed_file_updates_its_agent_and_who_refers_to_it(ada: Place) -> None:
    write(ada.folder, a2())
    one, two = THINKER % "prompt_ref: ada", THINKER.replace("thinker", "labels") % "prompt_ref: A2@v1"
    ada.yaml(HEAD + GREETER + one + two)
    old = ada.load()
    ada.write("config/agents/ada.yaml", ADA.replace("exact", "brief"))
    new = ada.load()
    assert diff(old, new).updated == ("thinker", "ada")
    write(ada.folder, {**a2(), "temperature": 1})
    newest = ada.load()
    assert diff(new, newest).updated == ("labels",)
    assert len({old.digest, new.digest, newest.digest}) == 3


def test_agents_are_added_and_removed_by_their_files(ada: Place) -> None:
    old = ada.load()
    (ada.folder / "config/agents/ada.yaml").rename(ada.folder / "config/agents/bob.yaml")
    ada.write("config/agents/bob.yaml", ADA.replace("ada", "bob"))
    changes = diff(old, ada.load())
    assert (changes.added, changes.removed, changes.updated) == (("bob",), ("ada",), ())


def test_the_bundled_agents_are_served_by_the_offline_model_until_their_models_are_configured(place: Place) -> None:
    loaded = bundled(place)
    assert [listener.name for listener in loaded.listeners] == ["greeter", *NAMES]
    assert {loaded.models[listener.model or ""].provider for listener in loaded.listeners[1:]} == {"offline"}
    place.yaml("models: {llama-4-scout: {provider: openai}}\n" + HEAD + GREETER)
    models = bundled(place).models
    assert {name: model.provider for name, model in models.items()} == {
        "llama-4-scout": "openai",
        "claude-opus-4.7": "offline",
    }


def test_without_models_the_offline_model_serves_the_usual_names(place: Place) -> None:
    for text in ("", "models: {}\n"):
        place.yaml(text + HEAD + GREETER)
        assert place.load().models == {
            name: Model(provider="offline", model=name)
            for name in ("builtin", "offline", "claude-opus-4.7", "gpt-4.1-mini", "llama-4-scout")
        }
    place.yaml("models: {tiny: {provider: offline}}\n" + HEAD + GREETER)
    assert list(place.load().models) == ["tiny"]


def test_a_bundled_agent_gives_way_to_a_listener_of_its_name(place: Place) -> None:
    place.yaml(HEAD + GREETER.replace("greeter", "researcher"))
    loaded = bundled(place)
    assert [listener.name for listener in loaded.listeners] == ["researcher", *NAMES[:-1]]
    assert loaded.listeners[0].handler is not None


def test_bundled_agents_give_way_to_classes_that_are_called_as_theirs(place: Place) -> None:
    place.write("handlers/hello.py", HELLO.replace("Greeting", "Prompt"))
    place.yaml(HEAD + GREETER.replace("Greeting", "Prompt"))
    assert [listener.name for listener in bundled(place).listeners] == ["greeter"]


def test_a_bundled_agent_goes_without_tools_that_are_not_there(place: Place) -> None:
    def calculators(_tools: Tools, _named: Collection[str]) -> Sequence[ShippedTool]:
        return (ShippedTool(name="calculator", scope="tools:execute", payload_class=Sum, replies=()),)

    researcher = bundled(place).listener("researcher")
    assert researcher is not None
    assert researcher.tools == ()
    place.ship = calculators
    researcher = bundled(place).listener("researcher")
    assert researcher is not None
    assert researcher.tools == ("calculator",)


def test_an_agent_goes_without_the_tool_of_an_index_until_there_is_one(ada: Place) -> None:
    def queries(_tools: Tools, _named: Collection[str]) -> Sequence[ShippedTool]:
        return (ShippedTool(name="rag_query", scope="tools:execute", payload_class=Sum, replies=()),)

    ada.write("config/agents/ada.yaml", ADA + "tools: [rag_query, greeter]\n")
    ada.yaml(HEAD + GREETER + THINKER % "prompt_ref: ada")
    for there in ((), ("rag_query",)):
        loaded = ada.load()
        assert [listener.tools for listener in loaded.listeners if listener.agent] == [(*there, "greeter")] * 2
        ada.ship = queries


def test_the_file_of_an_agent_is_shown_as_it_was_written_and_its_prompt_to_the_operator_alone(ada: Place) -> None:
    listener = ada.listener("ada")
    shown = shown_section(listener, with_prompt=True)
    assert shown == {
        "name": "ada",
        "model": "offline",
        "description": "Answers",
        "system_prompt": "Be exact.",
        "max_tokens": 99,
        "budget": {"run": {"calls": 3}},
    }
    hidden = shown_section(listener, with_prompt=False)
    assert hidden["system_prompt"].startswith("sha256:")
    assert {**hidden, "system_prompt": "Be exact."} == shown


def test_agents_of_files_are_no_part_of_the_shown_organism_yaml(ada: Place) -> None:
    assert [each["name"] for each in shown_settings(ada.load())["listeners"]] == ["greeter"]


def test_a_group_stands_in_a_section_in_an_agents_file_or_is_that_of_the_file_that_is_named(ada: Place) -> None:
    ada.ship = ship
    ada.write("config/agents/ada.yaml", ADA + "group: Front office\n")
    sections = (
        THINKER % "prompt_ref: ada",
        "  - {name: other, description: Thinks, prompt_ref: ada, group: Back office}\n",
        "  - {name: adder, group: Tools}\n",
    )
    ada.yaml(HEAD + GREETER + "".join(sections))
    assert {each.name: each.group for each in ada.load().listeners} == {
        "greeter": None,
        "thinker": "Front office",
        "other": "Back office",
        "adder": "Tools",
        "ada": "Front office",
    }


@pytest.mark.parametrize("group", ['""', "null", "[a]", '"a\\nb"', "x" * 129])
def test_a_group_is_one_short_line_of_text(ada: Place, group: str) -> None:
    ada.write("config/agents/ada.yaml", ADA + f"group: {group}\n")
    found = faults(ada, HEAD + GREETER + f"    group: {group}\n")
    assert [where.rpartition(":")[2] for where in found] == ["listeners[0].group", "group"]
