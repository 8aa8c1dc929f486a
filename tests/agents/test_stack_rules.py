"""What AgentStack forbids, and what it asks of all three parts alike; every other rule is tested with its part."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from organism.agents import agent_factory, agent_prompt, llm_client
from organism.agents.agent_factory import AgentFactory
from organism.agents.agent_prompt import AgentPrompt, AgentPromptInputError
from tests.agents.stack import SHIPPED, a2, write

ROOT = Path(__file__).parents[2]
PARTS = (agent_factory, agent_prompt, llm_client)
AGENTS = re.compile(r"PromptShaper|PreProcessing|SuperPrompt|RAGstream|Controller")
LABELS = re.compile(r"audience|response_depth|confidence|\btone\b")
ASKED = """
import json
from organism.agents.agent_factory import AgentFactory
prompt = AgentFactory.create("A2", "v1", {"task": "Write", "context": "a", "purpose": "b"})
print(json.dumps(prompt.compose({"task": "Write", "context": "a", "purpose": "b"})))
"""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_no_part_knows_an_agent_or_its_labels(part: ModuleType) -> None:
    """A2 stands in docstrings as the example of a name, and nowhere else."""
    code = inspect.getsource(part)
    assert AGENTS.findall(code) == []
    assert LABELS.findall(code) == []
    assert [line for line in code.splitlines() if "A2" in line and "such as A2" not in line and "``" not in line] == []


def test_the_signatures_of_factory_and_prompt_are_the_seeds() -> None:
    assert [*inspect.signature(AgentFactory.create).parameters] == ["agent_name", "version", "input_payload"]
    assert [*inspect.signature(AgentPrompt.compose).parameters] == ["self", "input_payload"]
    assert len(inspect.signature(AgentPrompt.parse_and_validate).parameters) == 2


def test_the_factory_composes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be composed can be created."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, a2())
    endless: list[Any] = []
    endless.append(endless)
    made = AgentFactory.create("A2", "v1", {"task": endless})
    with pytest.raises(AgentPromptInputError):
        made.compose({"task": endless})


def test_another_process_composes_the_same_from_the_same_file() -> None:
    """No time, no chance and no hidden state: whatever the seed of its hashes, and whatever it did before."""
    ran = [
        subprocess.run(
            [sys.executable, "-c", ASKED], cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert ran[0] == ran[1]
    assert json.loads(ran[0])[1] == json.loads(SHIPPED.read_text("utf-8"))["output_schema"]


def test_a_prompt_is_labelled_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2 as its users write it, from the factory to its labels."""
    monkeypatch.chdir(ROOT)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    payload = {"task": "Write a Python loop", "purpose": "for a manager", "context": "be formal"}
    agent_prompt = AgentFactory.create(agent_name="A2", version="v1", input_payload=payload)
    messages, response_format = agent_prompt.compose(payload)
    raw_output = llm_client.call(
        model=agent_prompt.model_name,
        messages=messages,
        response_format=response_format,
        temperature=agent_prompt.temperature,
    )
    labels = agent_prompt.parse_and_validate(raw_output)
    assert list(labels) == ["system", "audience", "tone", "response_depth", "confidence"]
    assert all(label in a2()["enums"][name] for name, label in labels.items())
