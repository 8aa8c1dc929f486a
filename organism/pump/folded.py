"""What decisions rest on: open messages, what they have shown, what was spent, what is confirmed; folds, as one.

Only what costs money or is confirmed passes through here on its way; all else goes to its fold at once, as if this were
not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from organism.model.events import Event
from organism.projections import routing, shown
from organism.projections.confirms import Confirms
from organism.projections.routing import Routing
from organism.projections.spend import Spend


class Folded(Routing):
    """The routing, and beside it spending and confirmations. Only ``apply`` and the pump's decisions change it."""

    __slots__ = ("confirms", "spend")

    def __init__(self) -> None:
        super().__init__()
        self.spend = Spend()
        self.confirms = Confirms()

    def apply(self, event: Event) -> None:
        """Take one event."""
        fold = FOLDS.get(event.type)
        if fold is not None:
            fold(self, event)
        self.position = event.position
        self.last_at = event.at


def _reserved(state: Folded, event: Event) -> None:
    if state.spend.is_full():
        state.spend.forget(state.messages, state.threads)
    state.spend.reserved(event)


def _settled(state: Folded, event: Event) -> None:
    state.spend.settled(event)


def _confirm_requested(state: Folded, event: Event) -> None:
    state.confirms.requested(event)


def _confirm_redeemed(state: Folded, event: Event) -> None:
    state.confirms.redeemed(event)


def _thread_reopened(state: Folded, event: Event) -> None:
    routing.FOLDS["thread_reopened"](state, event)
    state.spend.thread_reopened(event)


FOLDS: Final[dict[str, Callable[[Any, Event], None]]] = {
    **routing.FOLDS,
    **shown.FOLDS,
    "budget_reserved": _reserved,
    "budget_settled": _settled,
    "confirm_requested": _confirm_requested,
    "confirm_redeemed": _confirm_redeemed,
    "thread_reopened": _thread_reopened,
}
"""The fold of each type that changes the state, as ``Decision.add`` applies it to a ``Folded``."""
