"""Approvals: what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from organism.events.record import Record
from organism.events.vocabulary import (
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    Verdict,
)
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each

DECIDED: Final[Mapping[Verdict, str]] = {"approve": "approved", "reject": "rejected"}
"""The status that a decision gives to an approval."""

Closing = ApprovalResolved | ApprovalExpired | ApprovalCancelled


def status_after(event: Closing) -> str:
    """What an approval is for good."""
    if isinstance(event, ApprovalResolved):
        return DECIDED[event.decision]
    return "expired" if isinstance(event, ApprovalExpired) else "cancelled"


def apply(_key: str, row: Row | None, record: Record[ApprovalRequested | Closing]) -> Row | None:
    """The approval; ``status`` is ``pending``, then for good ``approved``, ``rejected``, ``expired`` or ``cancelled``.

    ``position`` stays that of the request, whose content is the preview; ``digest`` is that of the edits, if any.
    ``payload_type`` is the class of the payload that is previewed; None where a handler asks and shows what it likes.
    ``why`` says why a tainted run's call needs a person; None where a person is always asked.
    """
    event = record.event
    if isinstance(event, ApprovalRequested):
        return {
            "id": event.approval,
            "thread_id": record.thread,
            "message_id": event.message,
            "agent": event.agent,
            "payload_type": event.type or None,
            "why": event.why or None,
            "digest": event.digest,
            "status": "pending",
            "requested_at": iso(record.at),
            "expires_at": iso(event.expires_at),
            "position": record.position,
            "_asked_at": record.at,
        }
    if row is None or row["status"] != "pending":
        return row
    row["status"] = status_after(event)
    if isinstance(event, ApprovalResolved) and event.digest:
        row["digest"] = event.digest
    return row


_KEYS: Final[Mapping[type[Event], Keys]] = dict.fromkeys(
    (ApprovalRequested, ApprovalResolved, ApprovalExpired, ApprovalCancelled),
    lambda record: (record.event.approval,),
)

APPROVALS = ReadModel(
    name="approvals",
    version=4,
    types=_KEYS,
    fold=fold_each(_KEYS, apply),
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
