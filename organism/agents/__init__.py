"""Agents: prompts as files, the gateway to models, the turn loop; and the charter and agents that ship with them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BUNDLED_AGENTS: Final = Path(__file__).parent / "bundled"
"""Served where organism.yaml has no ``config/agents`` next to it."""


def bundled_charter() -> str:
    """The charter that every prompt begins with by default."""
    return bundled_prompt("charter")


def bundled_prompt(name: str) -> str:
    """A text that ships with the organism."""
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
