"""Live secrets are replaced before anything is written (S30): in contents, and in whatever text an event holds.

A unit pays for one look at the JSON of its contents, whose XML holds the same text, and at its row if that has texts.
Only one in which a secret was found is gone through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import orjson

from organism.log.encode import SealedContent
from organism.model.events import Content, Unit

CLOSED: Final = frozenset({"outcome", "kind", "effect", "why", "status", "type", "decision"})
"""Fields whose values are words of ours: a secret that is one of them hides nothing there."""
PLAIN: Final = frozenset({"message_sent", "message_started", "message_handled", "thread_created", "thread_completed"})
"""What a message without a fault is made of: ids, names and times, no text."""


class Redactor(Protocol):
    """See ``model/redact.py``."""

    marks: tuple[bytes, ...]

    def holds(self, finished: bytes) -> bool:
        """Whether a secret that is known by its text is in finished JSON or XML."""

    def holds_token(self, finished: bytes) -> bool:
        """Whether a token that is known by its digest is in it."""

    def kept(self, finished: bytes) -> bytes:
        """The same without live secrets."""


def is_held(redactor: Redactor, unit: Unit, row: bytes, contents: Sequence[SealedContent]) -> bool:
    """Whether a live secret is in a unit: in its finished row, or in one of its contents."""
    for event in unit.events:
        if event.type not in PLAIN:
            if _holds(redactor, row):
                return True
            break
    for sealed in contents:  # noqa: SIM110 - a loop costs half of what `any` does
        if _holds(redactor, sealed[3]):
            return True
    return False


def _holds(redactor: Redactor, finished: bytes) -> bool:
    """Each message pays for this: the marks are looked for here, and next to none is found.

    By ``find``, as ``in`` takes bytes for a number first, and makes the error that they are none.
    """
    for mark in redactor.marks:
        if finished.find(mark) >= 0:
            return redactor.holds(finished) or redactor.holds_token(finished)
    return False


def conceal(unit: Unit, redactor: Redactor) -> None:
    """Replace the live secrets in the unit's events: from here on nobody sees them, the followers neither."""
    for event in unit.events:
        event.data = {name: _kept(name, value, redactor) for name, value in event.data.items()}
        content = event.content
        if content is not None:
            event.content = Content(content.owner, redactor.kept(content.json), redactor.kept(content.xml))


def _kept(name: str, value: Any, redactor: Redactor) -> Any:
    return value if name in CLOSED else orjson.loads(redactor.kept(orjson.dumps(value)))
