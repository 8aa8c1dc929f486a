"""What ships with the organism for those who think: a charter, which every prompt begins with, and agents."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BUNDLED_AGENTS: Final = Path(__file__).parent / "bundled"
"""The files of the agents that are served where there are no others."""
CHARTER: Final = Path(__file__).parent / "prompts" / "charter.md"


def bundled_charter() -> str:
    """The charter that ships with the organism."""
    return CHARTER.read_text(encoding="utf-8").strip()
