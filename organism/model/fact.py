"""What a shipped tool made so: events that are recorded in the very unit in which it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from organism.model.handler import HandlerResponse

FACTS: Final = frozenset({"value_set"})
"""The types that a tool may record."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One event. ``content`` is JSON that is kept beside it, and erased with the thread that it came from."""

    type: str
    data: Mapping[str, Any]
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Recorded(HandlerResponse):
    """An answer, with what it made so, and whose text it gives back. Both count if it comes from a shipped tool."""

    facts: tuple[Fact, ...] = ()
    authors: frozenset[str] = frozenset()
