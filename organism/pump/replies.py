"""The replies to injections that are waited for, collected in memory from the units that the log has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson
from msgspec import field

from organism.log.log import Row
from organism.log.pages import with_payload
from organism.events.entity import Entity
from organism.model.events import Event
from organism.model.ids import CONSOLE
from organism.projections import threads

ENDS: Final = ("thread_completed", "thread_failed", "thread_killed")


class ReplyCollector(Entity):
    """Collects the messages to ``console`` that one injection causes, up to the first end of its thread after it."""

    thread_id: str = ""
    message_id: str = ""
    replies: list[bytes] = field(default_factory=list)
    end: int = 0  # its position, once it is on disk
    thread: bytes | None = None  # the thread's row then, as JSON; None if the thread is older than the injection
    _is_sent: bool = False
    _rows: dict[str, Row | None] = field(default_factory=dict)

    def begin(self, thread_id: str, message_id: str) -> None:
        """The injection is about to be written."""
        self.thread_id, self.message_id = thread_id, message_id
        self._rows = {thread_id: None}

    def take(self, events: Sequence[Event]) -> None:
        """The thread's next events, which are on disk. The end of a thread is the last of its events in a unit."""
        if self.end:
            return
        threads.fold(self._rows, events)
        for event in events:
            if event.type == "message_sent":
                self._is_sent = self._is_sent or event.data["message"] == self.message_id
                if event.data["to"] == CONSOLE and event.correlation == self.message_id:
                    payload = None if event.content is None else event.content.json
                    self.replies.append(with_payload(orjson.dumps(threads.message_head(event)), payload))
            elif event.type in ENDS and self._is_sent:  # an end before it may still have been on its way to the disk
                row = self._rows[self.thread_id]
                self.thread = None if row is None else orjson.dumps(row)
                self.end = event.position


class Collectors:
    """The collectors of one pump, by their threads."""

    def __init__(self) -> None:
        self._by_thread: dict[str | None, list[ReplyCollector]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_thread)

    def begin(self, collector: ReplyCollector, thread_id: str, message_id: str) -> None:
        """Collect from now on; called before the injection is written."""
        collector.begin(thread_id, message_id)
        self._by_thread.setdefault(thread_id, []).append(collector)

    def forget(self, collector: ReplyCollector) -> None:
        """Nobody waits any more."""
        waiting = self._by_thread.get(collector.thread_id, [])
        if collector in waiting:
            waiting.remove(collector)
            if not waiting:
                del self._by_thread[collector.thread_id]

    def take(self, events: Sequence[Event]) -> None:
        """A unit is on disk."""
        for thread_id in {event.thread for event in events} & self._by_thread.keys():
            own = [event for event in events if event.thread == thread_id]
            for collector in self._by_thread[thread_id]:
                collector.take(own)
