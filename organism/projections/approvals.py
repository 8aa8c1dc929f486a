"""What a person agrees to: approvals, which wait for a word, and tokens that confirm a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import field

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.events.entity import Entity
from organism.model.events import Event
from organism.model.times import iso

ENDS: Final[Mapping[str, str]] = {
    "approve": "approved",
    "reject": "rejected",
    "approval_expired": "expired",
    "approval_cancelled": "cancelled",
}
"""The status that a decision, or an event without one, gives to an approval."""


def apply(_key: str, row: Row | None, event: Event) -> Row | None:
    """The approval; ``status`` is ``pending``, then for good ``approved``, ``rejected``, ``expired`` or ``cancelled``.

    ``position`` stays that of the request, whose content is the preview; ``digest`` is that of the edits, if any.
    ``payload_type`` is the class of the payload that is previewed; None where a handler asks and shows what it likes.
    ``why`` says why a tainted run's call needs a person; None where a person is always asked.
    """
    data = event.data
    if event.type == "approval_requested":
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
    if row is not None and row["status"] == "pending":
        row["status"] = ENDS[data.get("decision", event.type)]
        if "digest" in data:
            row["digest"] = data["digest"]
    return row


_KEYS: Final[Mapping[str, Keys]] = dict.fromkeys(
    ("approval_requested", "approval_resolved", "approval_expired", "approval_cancelled"),
    lambda event: (event.data["approval"],),
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

    def requested(self, event: Event) -> None:
        thread = event.thread or ""
        kept = {token: each for token, each in self.by_token.items() if event.at < each.expires + KEPT_US}
        open_here = [token for token, each in kept.items() if each.thread == thread and each.is_open(event.at)]
        for token in open_here[: max(0, len(open_here) + 1 - MOST_OPEN)]:
            kept[token] = kept[token]._replace(expires=event.at)
        kept[event.data["token"]] = Confirmation(thread, event.data["digest"], event.data["expires_at"])
        self.by_token = kept

    def redeemed(self, event: Event) -> None:
        token = event.data["token"]
        if token in self.by_token:
            self.by_token[token] = self.by_token[token]._replace(used_by=event.data["message"])
