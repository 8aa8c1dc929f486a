"""Where rare events stand: for each kind of them and each thread the position of the last one.

Who looks for one of these kinds in a million events finds the threads that have some here, and looks through no
others. What nearly every thread has (its messages, its birth and its end) is no mark, so a common hop leaves none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import RUN, Event

MARKS: Final[Mapping[str, str]] = {
    "message_retried": "message_retried",
    "message_failed": "message_failed",
    "message_dead": "message_dead",
    "message_refused": "message_refused",
    "message_replayed": "message_replayed",
    "message_discarded": "message_discarded",
    "approval_requested": "approval_requested",
    "approval_resolved": "approval_resolved",
    "approval_expired": "approval_expired",
    "approval_cancelled": "approval_cancelled",
    "step_started": "step_unknown",
    "step_resolved": "step_resolved",
    "model_called": "model_called",
    **dict.fromkeys(sorted(RUN), "run"),
}
"""The mark of each event type that leaves one. The entries of a run are one kind, since they come together."""


def keys(event: Event) -> Sequence[str]:
    """``MARK THREAD``."""
    return (f"{MARKS[event.type]} {event.thread}",) if event.thread else ()


def unknown(event: Event) -> Sequence[str]:
    """The same of a step whose outcome is unknown; any other that starts is common."""
    return keys(event) if "unknown" in event.data else ()


def apply(_key: str, _row: Row | None, event: Event) -> Row:
    return {"mark": MARKS[event.type], "thread_id": event.thread, "position": event.position}


KEYS: Final[Mapping[str, Keys]] = {kind: unknown if kind == "step_started" else keys for kind in MARKS}

MODEL = ReadModel(
    name="marks",
    version=1,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"mark": "TEXT", "thread_id": "TEXT", "position": "INTEGER"},
    indexes=(("mark", "position"),),
)
