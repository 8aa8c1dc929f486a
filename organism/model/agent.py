"""What an agent is asked and answers when its listener names no payload class of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Prompt:
    """A message in plain words, for an agent that the turn loop runs."""

    message: str
