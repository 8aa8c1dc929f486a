"""The message that an agent of the bench answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Said:
    """What somebody said."""

    message: str
