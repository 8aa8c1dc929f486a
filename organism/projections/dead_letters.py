"""What waits for an operator: dead letters, and unsafe effects of which nobody knows whether they happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event
from organism.model.times import iso

# Dead letters: messages whose handling failed for good, and sends that were refused. Each stays until it is replayed
# or discarded.


def _own_id(event: Event) -> Sequence[str]:
    """The message that died, was refused or is discarded."""
    return (event.data["message"],)


def apply(_key: str, _row: Row | None, event: Event) -> Row | None:
    """The dead letter, or None once it is closed.

    ``agent`` is who was to handle it, or who wanted to send it; ``timestamp`` is when it died. ``position`` is where
    its payload lies: that of the message itself, or of the refusal.
    """
    is_refusal = event.type == "message_refused"
    if not is_refusal and event.type != "message_dead":
        return None
    data = event.data
    return {
        "id": data["message"],
        "thread_id": event.thread,
        "agent": data["from"] if is_refusal else data["agent"],
        "from": data["from"],
        "to": data["to"] if is_refusal else data["agent"],
        "payload_type": data["type"],
        "code": data["code"],
        "reason": data["reason"],
        "attempts": 0 if is_refusal else data["attempts"],
        "timestamp": iso(event.at),
        "position": event.position if is_refusal else data["sent"],
        "_died_at": event.at,
    }


_CLOSING: Final[Mapping[str, Keys]] = {
    "message_replayed": lambda event: (event.data["dead"],),
    "message_discarded": _own_id,
}
_KEYS: Final[Mapping[str, Keys]] = {"message_dead": _own_id, "message_refused": _own_id, **_CLOSING}

DEAD_LETTERS = ReadModel(
    name="dead_letters",
    version=2,
    types=_KEYS,
    fold=fold_each(_KEYS, apply),
    columns={"position": "INTEGER", "thread_id": "TEXT", "agent": "TEXT", "died_at": "INTEGER"},
    indexes=(("died_at",), ("thread_id", "died_at")),
    with_content=True,
)


def _closed(_key: str, _row: Row | None, event: Event) -> Row:
    """How a dead letter was closed: ``replayed`` or ``discarded``, for good: what is sent again gets a new id."""
    return {"status": event.type.removeprefix("message_")}


CLOSED_LETTERS = ReadModel(name="closed_letters", version=1, types=_CLOSING, fold=fold_each(_CLOSING, _closed))

# Indeterminate effects: found started and not finished, after a death or when their handling failed in the middle.
# Who finds one writes its ``step_started`` once more, with ``unknown``; the first such event counts.


def _step(event: Event) -> Sequence[str]:
    """``MESSAGE:STEP``; an effect under way is not in doubt, nor is a step of another kind."""
    data = event.data
    if event.type == "step_started":
        is_meant = "unknown" in data
    else:
        is_meant = event.type == "step_resolved" or data["kind"] == "effect"
    return (f"{data['message']}:{data['step']}",) if is_meant else ()


def _in_doubt(key: str, row: Row | None, event: Event) -> Row | None:
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


_STEP_KEYS: Final[Mapping[str, Keys]] = dict.fromkeys(("step_started", "step_recorded", "step_resolved"), _step)

INDETERMINATE = ReadModel(
    name="indeterminate",
    version=2,
    types=_STEP_KEYS,
    fold=fold_each(_STEP_KEYS, _in_doubt),
    columns={"position": "INTEGER", "thread_id": "TEXT", "agent": "TEXT", "found_at": "INTEGER"},
    indexes=(("position",), ("thread_id", "position")),
)
