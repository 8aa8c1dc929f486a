"""The fold of confirmations: which tokens are given, for what, until when, and which message used one (S22).

A token is known by its hash alone. One that has ended is kept for a while, so that a late use hears why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from organism.model.events import Event

MOST_OPEN: Final = 16
"""So many may be open in a thread; one more makes the oldest worth nothing."""
KEPT_US: Final = 600_000_000
"""So long after its end it is told what became of it."""


class Confirmation(NamedTuple):
    """What a token confirms. ``used_by`` is the message that it was used in, if it was."""

    thread: str
    digest: str
    expires: int
    used_by: str = ""

    def is_open(self, at: int) -> bool:
        return not self.used_by and at < self.expires


class Confirms:
    """All of a tenant, by the hash of the token, oldest first."""

    __slots__ = ("by_token",)

    def __init__(self, known: Mapping[str, Confirmation] | None = None) -> None:
        self.by_token: dict[str, Confirmation] = dict(known or {})

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


def dump(confirms: Confirms) -> dict[str, Any]:
    return {token: list(each) for token, each in confirms.by_token.items()}


def load(dumped: Mapping[str, Any]) -> Confirms:
    return Confirms({token: Confirmation(*each) for token, each in dumped.items()})
