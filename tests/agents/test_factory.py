"""From a name and a version to a prompt: by the file, and by nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from organism.agents.agent_factory import AgentFactory, UnknownAgentConfigError
from organism.agents.agent_prompt import AgentPromptInputError
from organism.errors import ConfigInvalid
from tests.agents.stack import SHIPPED, a2, write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the file of A2."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SHIPPED.read_text("utf-8"))
    return tmp_path


def test_a_prompt_has_all_that_its_file_says() -> None:
    prompt = AgentFactory.create(agent_name="A2", version="v1", input_payload={})
    assert dataclasses.asdict(prompt) == a2()


def test_a_new_agent_or_version_is_a_new_file_and_nothing_else(folder: Path) -> None:
    for name, version in (("A2", "v2"), ("PreProcessing", "v1"), ("A5", "2026.1-rc_1")):
        write(folder, {**a2(), "agent_name": name, "version": version}, name, version)
        prompt = AgentFactory.create(name, version, {})
        assert (prompt.agent_name, prompt.version) == (name, version)


def test_nothing_is_kept_between_calls(folder: Path) -> None:
    AgentFactory.create("A2", "v1", {})
    write(folder, {**a2(), "model_name": "other"})
    assert AgentFactory.create("A2", "v1", {}).model_name == "other"
    (folder / "config/agents/A2/v1.json").unlink()
    with pytest.raises(UnknownAgentConfigError):
        AgentFactory.create("A2", "v1", {})


@pytest.mark.parametrize(
    ("name", "version"),
    [("A3", "v1"), ("A2", "v2"), ("a2", "v1"), ("A2", "V1"), ("A2", "v1.json"), ("config", "agents")],
)
def test_what_there_is_no_file_for_is_unknown(name: str, version: str) -> None:
    with pytest.raises(UnknownAgentConfigError, match=rf"config/agents/{name}/{version}\.json cannot be read: No such"):
        AgentFactory.create(name, version, {})


@pytest.mark.parametrize(
    "wrong",
    [
        "..", ".", "", "../A2", "A2/../A2", "/etc", "A2/v1", "A2\\v1", "A2\0", "A2\n", "-rf", ".hidden", "A 2", "Ä2",
        "A2%2f..", "~root", "A" * 129, None, 2, b"A2", ["A2"], {}, ("A2", "v1"),
    ],
)  # fmt: skip
def test_no_name_and_no_version_leads_out_of_the_folder(folder: Path, wrong: Any) -> None:
    write(folder.parent, a2(), "..", "v1")
    for name, version in ((wrong, "v1"), ("A2", wrong)):
        with pytest.raises(UnknownAgentConfigError, match="expected names of letters, digits"):
            AgentFactory.create(name, version, {})


def test_no_link_leads_out_of_the_working_directory(folder: Path) -> None:
    (folder / "config/agents/A2/v9.json").symlink_to(SHIPPED)
    with pytest.raises(UnknownAgentConfigError, match=r"v9\.json is a link that leads out"):
        AgentFactory.create("A2", "v9", {})


def test_a_file_says_the_name_and_version_that_it_is_asked_for_by(folder: Path) -> None:
    write(folder, a2(), "A3", "v3")
    with pytest.raises(ConfigInvalid, match=r"config/agents/A3/v3\.json is not valid") as refused:
        AgentFactory.create("A3", "v3", {})
    assert {fault.pointer: fault.message for fault in refused.value.details} == {
        "/agent_name": 'expected `A3`, as the file\'s path says, came "A2" (text)',
        "/version": 'expected `v3`, as the file\'s path says, came "v1" (text)',
    }


def test_the_keys_that_a_file_expects_must_be_there(folder: Path) -> None:
    write(folder, {**a2(), "input_keys": ["task", "purpose", "context"]})
    AgentFactory.create("A2", "v1", {"context": None, "purpose": 3, "task": "", "more": 1})
    with pytest.raises(
        AgentPromptInputError, match=r"^A2@v1 expects task, purpose, context; missing: task, context\.$"
    ):
        AgentFactory.create("A2", "v1", {"purpose": "x"})
