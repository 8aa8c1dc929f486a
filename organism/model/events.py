"""Events: facts in the past tense, and the unit in which they are written.

An event is made once, at the decision, and the same object goes to the log, the folds and the followers; after it was
appended only the log changes it: it gives it its position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from organism.events.entity import Entity
from organism.model.run import REQUIRED as RUN_ENTRIES

ORGANISM: Final = frozenset(
    {"organism_started", "organism_stopped", "organism_paused", "organism_resumed", "organism_reloaded"}
)
THREAD: Final = frozenset({
    "thread_created", "thread_reopened", "thread_paused", "thread_resumed", "thread_completed", "thread_failed",
    "thread_killed", "thread_forked",
})  # fmt: skip
APPROVAL: Final = frozenset({
    "approval_requested", "approval_resolved", "approval_expired", "approval_cancelled", "confirm_requested",
    "confirm_redeemed", "confirm_refused",
})  # fmt: skip
RUN: Final = frozenset(f"run_{entry}" for entry in RUN_ENTRIES)
OTHER: Final = frozenset({
    "agent_paused", "agent_resumed", "message_sent", "message_started", "message_handled", "message_retried",
    "message_failed", "message_dropped", "message_dead", "message_refused", "message_replayed", "message_discarded",
    "step_started", "step_recorded", "step_resolved", "session_created", "turn_started", "turn_appended", "turn_ended",
    "session_compacted", "session_uncompacted", "session_deleted", "index_created", "documents_changed",
    "index_deleted", "budget_reserved", "budget_settled", "model_called", "call_answered", "tenant_config_changed",
    "todo_registered", "todo_closed", "value_set", "spoof_attempt", "content_erased", "damage_found", "loop_blocked",
})  # fmt: skip
EVENT_TYPES: Final = ORGANISM | THREAD | APPROVAL | RUN | OTHER
"""Every type there is."""

SCHEMA_VERSION: Final = 1
"""The version of the events' data that this code writes; older ones are lifted by ``log/encode.py``."""

ORGANISM_STREAM: Final = "organism"
"""The stream of what concerns no thread."""


class Actor(Struct, frozen=True):
    """Who caused it. ``principal`` is the holder of the token by which it was asked; absent fields are None."""

    tenant: str = "default"
    user: str | None = None
    request_id: str | None = None
    principal: str | None = None


class Content(Entity):
    """Text that is stored apart from its event, so that it can be erased: the payload's JSON and the recorded envelope.

    ``owner`` is the session or thread that it is erased with. Both parts are UTF-8; ``xml`` is empty where there is no
    envelope, both are in what was read after its erasure (``erased``).
    """

    owner: str
    json: bytes
    xml: bytes = b""
    erased: bool = False


class Event(Entity):
    """One fact. ``position`` is 0 until the log has given it one; ``at`` is UTC in microseconds since 1970.

    ``thread`` is the thread that it belongs to, or None for the organism's own stream; ``cause`` is the message whose
    handling led to it; ``correlation`` is the message of the injection at the root; ``data`` is JSON-able and depends
    on the type. One whose ``at`` is 0 takes what it shares with its unit from there when it is appended.
    """

    type: str
    data: dict[str, Any]
    content: Content | None = None
    thread: str | None = None
    at: int = 0
    cause: str | None = None
    correlation: str | None = None
    actor: Actor | None = None
    position: int = 0


class Unit(Entity):
    """The events of one decision, written whole or not at all.

    ``thread_id`` is the thread of every event that names none itself. ``expect`` maps each stream that the decision
    rests on (a thread id or ``ORGANISM_STREAM``) to the position of the last event seen there, or to the unit that
    wrote it, which may still be on its way; 0 means that the stream must be new. ``then`` is called in the loop's
    thread, in order of position, once it is known how it went: with None after the commit, else with the error.
    ``first`` and ``last`` are the positions of its events; they are trusted only after ``then``.
    """

    thread_id: str | None
    events: list[Event]
    at: int
    expect: dict[str, int | Unit]
    cause: str | None = None
    correlation: str | None = None
    actor: Actor | None = None
    then: Callable[[Unit, Exception | None], None] | None = None
    first: int = 0
    last: int = 0
