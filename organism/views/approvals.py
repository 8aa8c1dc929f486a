"""Approvals: what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.times import iso
from organism.views.views import Cut, Keys, PrivateFields, ReadModel, Stored, fold_each
from organism.views.who import Resolved, by

Closed = Literal["approved", "rejected", "expired", "cancelled"]
DECIDED: Final[Mapping[events.Verdict, Closed]] = {"approve": "approved", "reject": "rejected"}
"""The status that a decision gives to an approval."""

Closing = events.ApprovalResolved | events.ApprovalExpired | events.ApprovalCancelled


def status_after(event: Closing) -> Closed:
    """What an approval is for good."""
    if isinstance(event, events.ApprovalResolved):
        return DECIDED[event.decision]
    return "expired" if isinstance(event, events.ApprovalExpired) else "cancelled"


class Resolution(Resolved, kw_only=True):
    """How an approval was closed."""

    decision: Literal["approve", "reject", "expired", "cancelled"]
    comment: Annotated[str, Meta(description="Why, in the words of who decided.", examples=["fine"])]
    digest: Annotated[words.Digest | None, Meta(description="To what the decision is bound; null if nobody decided.")]


def resolution(record: Record[Closing]) -> Resolution:
    """How the event closes an approval. The digest of what was not edited is missing in older logs."""
    event, who, at = record.event, by(record), iso(record.at)
    if isinstance(event, events.ApprovalResolved):
        digest = event.digest or None
        return Resolution(by=who, at=at, decision=event.decision, comment=event.comment, digest=digest)
    closed: Literal["expired", "cancelled"] = "expired" if isinstance(event, events.ApprovalExpired) else "cancelled"
    return Resolution(by=who, at=at, decision=closed, comment="", digest=None)


class Approval(Entity, kw_only=True):
    """What waits, or waited, for a human's word."""

    id: words.ApprovalId
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    payload_type: Annotated[
        words.PayloadType | None, Meta(description="Of a call that waits for consent: its payload is the preview.")
    ]
    why: Annotated[str | None, Meta(description="Of a tainted run's call that cannot be undone: why a person decides.")]
    preview: words.Content = UNSET
    payload_cut: Cut = UNSET
    form_schema: Annotated[
        words.Object | UnsetType,
        Meta(description="While it is pending, what `edits` may be: of a payload its schema, else as the preview is."),
    ] = UNSET
    digest: Annotated[words.Digest, Meta(description="Of the preview's canonical bytes, to which a decision is bound.")]
    status: words.ApprovalStatus
    requested_at: words.Time
    expires_at: words.Time
    position: words.Position
    resolved: Annotated[Resolution | None, Meta(description="How it was closed; null while it is pending.")] = None


class _Asked(PrivateFields):
    asked_at: int


Row = Stored[Approval, _Asked]


def requested(record: Record[events.ApprovalRequested]) -> Approval:
    """A new approval. Its content is the preview."""
    event = record.event
    return Approval(
        id=event.approval,
        thread_id=record.stream,
        message_id=event.message,
        agent=event.agent,
        payload_type=event.type or None,
        why=event.why or None,
        digest=event.digest,
        status="pending",
        requested_at=iso(record.at),
        expires_at=iso(event.expires_at),
        position=record.position,
    )


def _after(_key: str, row: Row | None, record: Record[Any]) -> Row | None:
    """The approval: once it was closed it stays as it is; a decision with edits is bound to their digest."""
    event = record.event
    if isinstance(event, events.ApprovalRequested):
        return Stored(requested(record), _Asked(record.at))
    if row is not None and row.public.status == "pending":
        row.public.status = status_after(event)
        row.public.resolved = decided = resolution(record)
        if isinstance(event, events.ApprovalResolved):
            decided.digest = row.public.digest = event.digest or row.public.digest
    return row


_KEYS: Final[Mapping[type[events.Event], Keys]] = dict.fromkeys(
    (events.ApprovalRequested, events.ApprovalResolved, events.ApprovalExpired, events.ApprovalCancelled),
    lambda record: (record.event.approval,),
)

APPROVALS: ReadModel[Row] = ReadModel(
    name="approvals",
    version=5,
    types=_KEYS,
    fold=fold_each(_KEYS, _after),
    row=Approval,
    private=_Asked,
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
