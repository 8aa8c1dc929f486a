"""Records, that is, events in the log; and the unit in which they are written.

A record is made once, at the decision, and the same object goes to the log, the folds and the followers. Once it is
appended only the log changes it, by giving it its position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct

from organism.events.entity import Entity
from organism.events.vocabulary import Event

ORGANISM_STREAM: Final = "organism"
"""The stream of events that belong to no thread."""

E_co = TypeVar("E_co", bound=Event, covariant=True)


class Actor(Struct, frozen=True, array_like=True):
    """Who caused it. ``principal`` is the holder of the token that was used; absent fields are None."""

    tenant: str = "default"
    user: str | None = None
    request_id: str | None = None
    principal: str | None = None


class Content(Entity):
    """Text that is stored apart from its event so that it can be erased: the payload's JSON and the recorded envelope.

    It is erased with its ``owner``, a session or thread. Both parts are UTF-8; ``xml`` is empty where there is no
    envelope, both are empty after the erasure (``erased``).
    """

    owner: str
    json: bytes
    xml: bytes = b""
    erased: bool = False


class Record(Entity, Generic[E_co]):
    """One event in the log. ``position`` is 0 until the log has given it one; ``at`` is UTC in microseconds since 1970.

    ``thread`` is its thread, of a session's facts the session, or None for the organism's own stream; ``cause`` is the
    message whose handling led to it; ``correlation`` is the message of the injection at the root. ``digest`` seals its
    content, which belongs to ``content_owner``. If ``at`` is 0, what it shares with its unit is filled in when it is
    appended.
    """

    event: E_co
    content: Content | None = None
    thread: str | None = None
    at: int = 0
    cause: str | None = None
    correlation: str | None = None
    actor: Actor | None = None
    position: int = 0
    digest: str = ""
    content_owner: str | None = None

    @property
    def type(self) -> str:
        """The event's name on the wire."""
        return self.event.event_type

    @property
    def stream(self) -> str:
        """The thread or session, or the organism's own stream."""
        return self.thread or ORGANISM_STREAM


class Unit(Entity):
    """The records of one decision, written whole or not at all.

    ``thread_id`` is the thread of every record without one. ``expect`` maps each stream that the decision rests on (the
    id of a thread or session, or ``ORGANISM_STREAM``) to the position of the last event seen there, or to the unit that
    wrote it, which may not be on disk yet; 0 means that the stream must be new. ``then`` is called in the loop's
    thread, in order of position, once the outcome is known: with None after the commit, else with the error.
    ``first`` and ``last`` are the positions of its records; they are trusted only after ``then``.
    """

    thread_id: str | None
    records: list[Record[Event]]
    at: int
    expect: dict[str, int | Unit]
    cause: str | None = None
    correlation: str | None = None
    actor: Actor | None = None
    then: Callable[[Unit, Exception | None], None] | None = None
    first: int = 0
    last: int = 0
