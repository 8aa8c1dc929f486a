"""The charter: what every prompt of the turn loop begins with, unless organism.yaml says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BUNDLED: Final = Path(__file__).parent / "prompts" / "charter.md"


def bundled_charter() -> str:
    """The charter that ships with the organism."""
    return BUNDLED.read_text(encoding="utf-8").strip()
