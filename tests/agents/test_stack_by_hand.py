"""A2 as its users write it: from the factory to its labels, offline."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from organism.agents import llm_client
from organism.agents.factory import AgentFactory
from tests.agents.stack import a2

REPOSITORY = Path(__file__).parents[2]


@dataclass
class SuperPrompt:
    task: str
    purpose: str
    context: str
    labels: dict[str, str] = field(default_factory=dict)


class A2:
    """The agent as the controller sees it."""

    def run(self, superprompt: SuperPrompt, version: str = "v1") -> SuperPrompt:
        input_payload = {
            "task": superprompt.task,
            "purpose": superprompt.purpose,
            "context": superprompt.context,
        }
        agent_prompt = AgentFactory.create(
            agent_name="A2",
            version=version,
            input_payload=input_payload,
        )
        messages, response_format = agent_prompt.compose(input_payload)
        llm_raw_output = llm_client.call(
            model=agent_prompt.model_name,
            messages=messages,
            response_format=response_format,
            temperature=agent_prompt.temperature,
        )
        labels = agent_prompt.parse_and_validate(llm_raw_output)
        superprompt.labels = labels
        return superprompt


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_prompt_is_labelled_offline() -> None:
    superprompt = A2().run(SuperPrompt("Write a Python loop", "for a manager", "be formal"), version="v1")
    assert list(superprompt.labels) == ["system", "audience", "tone", "response_depth", "confidence"]
    assert all(label in a2()["enums"][name] for name, label in superprompt.labels.items())
