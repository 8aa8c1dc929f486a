"""Confirmations: tokens that confirm a call. A token is known by its hash alone.

One that has ended is kept for a while, so that a late use hears why.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import field

from organism.events.entity import Entity
from organism.events.record import Record
from organism.events.vocabulary import ConfirmRedeemed, ConfirmRequested

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
