"""`organism` is the front door for authors of handlers: a short list of names, and nothing heavy behind it."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import organism
from tests.house.tree import ROOT


def test_all_lists_exactly_the_names_behind_the_door() -> None:
    public = {name for name in vars(organism) if not name.startswith("_")}
    offered = {name for name in public if not isinstance(getattr(organism, name), ModuleType)}
    assert sorted(offered) == organism.__all__


def test_each_name_behind_the_door_says_what_it_is() -> None:
    assert [name for name in organism.__all__ if not getattr(organism, name).__doc__] == []


def test_the_door_tells_of_each_room() -> None:
    rooms = {
        path.name.removesuffix(".py") for path in (ROOT / "organism").iterdir() if not path.name.startswith(("_", "."))
    }
    assert {room for room in rooms - {"py.typed"} if f"``{room}``" not in str(organism.__doc__)} == set()


def test_the_door_opens_onto_the_vocabulary_and_the_prompts_alone() -> None:
    loaded = loaded_by("organism") - loaded_by("sys")
    own = {name for name in loaded if name.startswith("organism.")}
    assert {name for name in own if not name.startswith(("organism.model", "organism.errors"))} == {
        "organism.agents",
        "organism.agents.agent_factory",
        "organism.agents.agent_prompt",
        "organism.config",
        "organism.config.faults",
        "organism.config.json_schema",
        "organism.config.json_text",
        "organism.config.prompts",
    }
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"organism"}


def loaded_by(module: str) -> set[str]:
    """What is loaded in a fresh interpreter once it has imported the module."""
    code = f"import sys, {module}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split())
