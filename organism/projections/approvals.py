"""What a person agrees to: approvals, which wait for a word, and tokens that confirm a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import field

from organism.events.entity import Entity
from organism.events.record import Record
from organism.events.vocabulary import (
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    ConfirmRedeemed,
    ConfirmRequested,
    Event,
    Verdict,
)
from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.times import iso

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

# Confirmations (S22). A token is known by its hash alone. One that has ended is kept for a while, so that a late use
# hears why.

MOST_OPEN: Final = 16  # in a thread; one more makes the oldest worthless
KEPT_US: Final = 600_000_000  # after its end, to say what became of it


class Confirmation(NamedTuple):
    """What a token confirms. ``used_by`` is the message that it was used in, if it was."""

    thread: str
    digest: str
    expires: int
    used_by: str = ""

    def is_open(self, at: int) -> bool:
        return not self.used_by and at < self.expires


class Confirms(Entity):
    """All of a tenant, by the hash of the token, oldest first."""

    by_token: dict[str, Confirmation] = field(default_factory=dict)

    def requested(self, record: Record[ConfirmRequested]) -> None:
        event, thread, at = record.event, record.thread or "", record.at
        kept = {token: each for token, each in self.by_token.items() if at < each.expires + KEPT_US}
        open_here = [token for token, each in kept.items() if each.thread == thread and each.is_open(at)]
        for token in open_here[: max(0, len(open_here) + 1 - MOST_OPEN)]:
            kept[token] = kept[token]._replace(expires=at)
        kept[event.token] = Confirmation(thread, event.digest, event.expires_at)
        self.by_token = kept

    def redeemed(self, record: Record[ConfirmRedeemed]) -> None:
        token = record.event.token
        if token in self.by_token:
            self.by_token[token] = self.by_token[token]._replace(used_by=record.event.message)
