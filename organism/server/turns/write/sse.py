"""A turn as Server-Sent Events, an entry of its run each; ``spass.cost`` is the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from organism.model.run import RunEntry
from organism.server.http.streaming import SSE
from organism.server.turns.run_result import FoldedRun, waiting_entry

DONE: Final = b"data: [DONE]\n\n"
"""The last line of the forms of OpenAI and of the AI SDK."""


def event(data: Any, name: str = "", event_id: str = "") -> bytes:
    """One event."""
    head = (f"id: {event_id}\n" if event_id else "") + (f"event: {name}\n" if name else "")
    return b"%bdata: %b\n\n" % (head.encode(), orjson.dumps(data))


class EventWriter:
    """Writes events. ``event_id`` gives the id of the entry that is written, by which a client goes on after it."""

    def __init__(self, event_id: Callable[[], str] | None = None) -> None:
        self.media_type = SSE
        self.headers: Mapping[str, str] = {}
        self._event_id = event_id

    def waiting(self, reason: str) -> bytes:
        return self.lines(waiting_entry(reason))

    def lines(self, entry: RunEntry) -> bytes:
        return event(entry, event_id="" if self._event_id is None else self._event_id())

    def end(self, cost: Mapping[str, str]) -> bytes:
        return event(cost, "spass.cost")

    def whole(self, folded: FoldedRun) -> dict[str, Any]:
        return folded.outputs()
