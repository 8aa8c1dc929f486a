"""What the tests of AgentStack share: prompts made of a few words, and folders of their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from organism.agents.agent_factory import AgentFactory
from organism.agents.agent_prompt import AgentPrompt
from organism.config.prompts import read_prompt

SHIPPED = Path(__file__).parents[2] / "config/agents/A2/v1.json"


def a2() -> dict[str, Any]:
    """The shipped file of A2, to be changed at will."""
    plain: dict[str, Any] = json.loads(SHIPPED.read_text("utf-8"))
    return plain


def prompt_of(plain: dict[str, Any]) -> AgentPrompt:
    """The prompt of a file with this text."""
    return AgentFactory.prompt_of(read_prompt(json.dumps(plain), plain["agent_name"], plain["version"]))


def prompt_with(mode: str, properties: dict[str, Any], **more: Any) -> AgentPrompt:
    """A prompt ``T@v1`` of that mode that asks for these fields."""
    schema = {
        "type": "object",
        "required": more.pop("required", []),
        "properties": properties,
        **more.pop("schema", {}),
    }
    texts = {"agent_name": "T", "version": "v1", "system_text": "Be exact.", "purpose_text": "Try it."}
    return prompt_of({**texts, "mode": mode, "model_name": "tiny", "output_schema": schema, **more})


def write(folder: Path, plain: Any, name: str = "A2", version: str = "v1") -> None:
    """Write a file of a prompt below ``folder``; a text stands as it is."""
    path = folder / "config/agents" / name / f"{version}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plain if isinstance(plain, str) else json.dumps(plain), "utf-8")
