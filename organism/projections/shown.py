"""The fold of what a handling has shown: which entries of its run the log holds. The next attempt shows the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from organism.model.events import RUN, Event
from organism.model.thread import Message

PREFIX: Final = "run_"


class Open(Protocol):
    """What the fold changes: the open messages."""

    messages: dict[str, Message]


def shown(state: Open, event: Event) -> None:
    """An entry of an open message's run."""
    message = state.messages.get(event.data["message"])
    if message is not None:
        message.shows().take(event.type.removeprefix(PREFIX), event.data.get("id", ""))


FOLDS: Final[dict[str, Callable[[Open, Event], None]]] = dict.fromkeys(RUN, shown)
