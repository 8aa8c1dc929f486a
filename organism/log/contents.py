"""What lies beside the events: a row of the table ``content``, held against the event that it belongs to.

The digest in the event covers the text and its owner. Content is empty only where the chain says so: the row then names
the position of a ``content_erased`` event, which comes after its own event and names the same owner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from organism.errors import ContentDamaged
from organism.log.chain import seal
from organism.log.encode import OWNER, REMEDY
from organism.model.events import ORGANISM_STREAM, Content, Event

ContentRow = Sequence[Any]
"""Owner, salt, JSON, XML, and the position of the event that says it was erased, else None."""
EventAt = Callable[[int], Event | None]
"""The event at a position, checked against its unit's digest; None if there is none."""
ERASURE: Final = "content_erased"
"""The event that says whose content was erased, by its field ``owner``."""
MISSING: Final = "is missing, and no event says that it was erased"


def fault(position: int, sealed: Any, row: ContentRow, event_at: EventAt) -> str | None:
    """Why a row is not the content of the event at ``position``; None if it is, or was erased."""
    owner, salt, json, xml, erased_at = row
    if not (isinstance(salt, bytes) and isinstance(json, bytes) and isinstance(xml, bytes)):
        return "is not of the form in which it was written"
    if erased_at is None and seal(owner, salt, json, xml) == sealed:
        return None
    if salt or json or xml:
        return "does not fit its digest, it was changed"
    if not isinstance(erased_at, int) or not _was_erased(position, owner, erased_at, event_at):
        return "is empty, and no event says that it was erased"
    return None


def _was_erased(position: int, owner: str, erased_at: int, event_at: EventAt) -> bool:
    event, erasure = event_at(position), event_at(erased_at)
    if event is None or erasure is None:
        return False
    is_owner = owner == event.data.get(OWNER, event.thread or ORGANISM_STREAM)
    return is_owner and erased_at > position and erasure.type == ERASURE and erasure.data.get("owner") == owner


def content_of(position: int, sealed: str, row: ContentRow | None, event_at: EventAt) -> Content:
    """The content at a position; raises ``ContentDamaged`` if it is not there as it was written, nor erased."""
    said = MISSING if row is None else fault(position, sealed, row, event_at)
    if row is None or said is not None:
        raise ContentDamaged(f"The content at position {position} {said}. {REMEDY}")
    owner, salt, json, xml, _ = row
    return Content(owner, json, xml, erased=not salt)
