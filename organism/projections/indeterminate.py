"""The unsafe effects that were found started and not finished: each waits until an operator says what became of it.

An effect under way is none of them. Who finds one (after a death, or when its handling failed in the middle) writes its
``step_started`` once more, with ``unknown``; the first such event is the one that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event
from organism.model.times import iso


def found(event: Event) -> Sequence[str]:
    """``MESSAGE:STEP`` of an effect whose outcome is unknown."""
    return named(event) if "unknown" in event.data else ()


def recorded(event: Event) -> Sequence[str]:
    """``MESSAGE:STEP`` of an effect; steps of other kinds are never in doubt."""
    return named(event) if event.data["kind"] == "effect" else ()


def named(event: Event) -> Sequence[str]:
    return (f"{event.data['message']}:{event.data['step']}",)


def apply(key: str, row: Row | None, event: Event) -> Row | None:
    """The open question, or None once the step has a record or an operator's word."""
    if event.type != "step_started":
        return None
    data = event.data
    return row or {
        "id": key,
        "thread_id": event.thread,
        "message_id": data["message"],
        "agent": data["agent"],
        "step": data["step"],
        "key": data["key"],
        "since": iso(event.at),
        "position": event.position,
        "_found_at": event.at,
    }


KEYS: Final[Mapping[str, Keys]] = {"step_started": found, "step_recorded": recorded, "step_resolved": named}

MODEL = ReadModel(
    name="indeterminate",
    version=2,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"position": "INTEGER", "thread_id": "TEXT", "agent": "TEXT", "found_at": "INTEGER"},
    indexes=(("position",), ("thread_id", "position")),
)
