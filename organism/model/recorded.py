"""What a shipped tool answers with where the answer makes something so: no part of the front door for handlers."""

from __future__ import annotations

from dataclasses import dataclass

from organism.events.vocabulary import ValueSet
from organism.model.handler import HandlerResponse


@dataclass(frozen=True, slots=True)
class Recorded(HandlerResponse):
    """An answer, with what it made so, and whose text it gives back. Both count if it comes from a shipped tool.

    Each fact is an event of the very unit in which it answers, and its content: JSON that is stored apart from it, and
    erased with the thread that it came from.
    """

    facts: tuple[tuple[ValueSet, bytes | None], ...] = ()
    authors: frozenset[str] = frozenset()
