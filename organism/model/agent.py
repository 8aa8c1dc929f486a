"""What an agent is asked and answers when its listener names no payload class of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass
class Said:
    """Something that was said before, by the one who asks or by the agent."""

    role: Literal["user", "assistant"]
    content: str


@dataclass
class Prompt:
    """A message in plain words, for an agent that the turn loop runs.

    ``history`` is what was said before it, oldest first: the turn loop puts it between the agent's instructions and
    the message.
    """

    message: str
    history: list[Said] = field(default_factory=list)


@dataclass
class Answer:
    """What such an agent answers; ``citations`` name the sources that it rests on."""

    text: str
    citations: list[str] = field(default_factory=list)
