"""The approvals: what waits for a human's word, and what was said. The preview is the content of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event
from organism.model.times import iso

DECIDED: Final[Mapping[str, str]] = {"approve": "approved", "reject": "rejected"}


def keys(event: Event) -> Sequence[str]:
    return (event.data["approval"],)


def apply(_key: str, row: Row | None, event: Event) -> Row | None:
    """The approval; ``status`` is ``pending``, then for good ``approved``, ``rejected``, ``expired`` or ``cancelled``.

    ``position`` stays that of the request, where the preview lies; ``digest`` is that of the edits, once there are any.
    ``payload_type`` is the class of the payload that is previewed; None where a handler asks and shows what it likes.
    ``why`` says why a tainted run's call needs a person; None where a person is always asked.
    """
    if event.type == "approval_requested":
        return _requested(event)
    if row is not None and row["status"] == "pending":
        row["status"] = _end(event)
        if "digest" in event.data:
            row["digest"] = event.data["digest"]
    return row


def _requested(event: Event) -> Row:
    data = event.data
    return {
        "id": data["approval"],
        "thread_id": event.thread,
        "message_id": data["message"],
        "agent": data["agent"],
        "payload_type": data.get("type"),
        "why": data.get("why"),
        "digest": data["digest"],
        "status": "pending",
        "requested_at": iso(event.at),
        "expires_at": iso(data["expires_at"]),
        "position": event.position,
        "_asked_at": event.at,
    }


def _end(event: Event) -> str:
    if event.type == "approval_resolved":
        return DECIDED[event.data["decision"]]
    return "expired" if event.type == "approval_expired" else "cancelled"


KEYS: Final[Mapping[str, Keys]] = dict.fromkeys(
    ("approval_requested", "approval_resolved", "approval_expired", "approval_cancelled"), keys
)

MODEL = ReadModel(
    name="approvals",
    version=4,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={
        "position": "INTEGER",
        "status": "TEXT",
        "thread_id": "TEXT",
        "agent": "TEXT",
        "asked_at": "INTEGER",
    },
    indexes=(("position",), ("status", "position"), ("thread_id", "position")),
    with_content=True,
)
