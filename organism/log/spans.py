"""Which spans of the log hold events of which types, so that who looks for rare ones reads no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.model.events import Event

SPAN_EVENTS: Final = 1024

TypeSpan = tuple[str, int]
"""A type of events, and a span that holds some."""


def span_of(position: int) -> int:
    """The span that holds the position; span ``n`` begins after position ``n * SPAN_EVENTS``."""
    return (position - 1) // SPAN_EVENTS


class TypeSpans:
    """What is new to the index of types. What it has noted of the newest span is remembered."""

    __slots__ = ("_seen", "_span")

    def __init__(self) -> None:
        self._span = -1
        self._seen: set[str] = set()

    def take(self, events: Sequence[Event], noted: list[TypeSpan]) -> None:
        """Note what these events, the next ones, add to the index. Some of it may be there already."""
        for event in events:
            span = span_of(event.position)
            if span != self._span:
                self._span = span
                self._seen = set()
            if event.type not in self._seen:
                self._seen.add(event.type)
                noted.append((event.type, span))

    def forget(self) -> None:
        """A commit failed: what was noted may not be there."""
        self._span = -1
