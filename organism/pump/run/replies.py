"""The replies to injections that are waited for, collected in memory from the units that the log has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

import orjson
from msgspec import field

from organism.events.entity import Entity
from organism.events.record import Record
from organism.events.vocabulary import Event, MessageSent, ThreadCompleted, ThreadFailed, ThreadKilled
from organism.model.ids import CONSOLE
from organism.views import threads
from organism.views.views import Row, with_payload

ENDS: Final = (ThreadCompleted, ThreadFailed, ThreadKilled)


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

    def take(self, records: Sequence[Record[Event]]) -> None:
        """The thread's next events, which are on disk. The end of a thread is the last of its events in a unit."""
        if self.end:
            return
        threads.fold(self._rows, records)
        for record in records:
            event = record.event
            if isinstance(event, MessageSent):
                self._is_sent = self._is_sent or event.message == self.message_id
                if self._is_reply(record):
                    content = record.content
                    payload = None if content is None or content.erased else content.json
                    self.replies.append(with_payload(orjson.dumps(threads.message_head(record)), payload))
            elif isinstance(event, ENDS) and self._is_sent:  # one before it may have been on its way to the disk
                row = self._rows[self.thread_id]
                self.thread = None if row is None else orjson.dumps(row)
                self.end = record.position

    def _is_reply(self, record: Record[Event]) -> TypeGuard[Record[MessageSent]]:
        event = record.event
        return isinstance(event, MessageSent) and event.to == CONSOLE and record.correlation == self.message_id


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

    def take(self, records: Sequence[Record[Event]]) -> None:
        """A unit is on disk."""
        for thread_id in {record.thread for record in records} & self._by_thread.keys():
            own = [record for record in records if record.thread == thread_id]
            for collector in self._by_thread[thread_id]:
                collector.take(own)
