"""Sending a message and waiting for what comes of it: the end of its thread, and the replies to ``console``.

The replies are collected from the units as they reach the log, which is read only for a repetition under an
idempotency key, after a failed commit, and for the row of an older thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec
from msgspec import field
from msgspec.structs import replace

from organism.errors import BudgetExhausted
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.log.log import EventFilter, EventLog
from organism.model.commands import Inject, Injected
from organism.model.ids import CONSOLE
from organism.server.http.bodies import Places
from organism.server.http.call import IN_PATH, Call
from organism.server.push.frames import message_json
from organism.server.surfaces.run import refusal
from organism.views import threads
from organism.views.run import entry_of
from organism.views.threads import ENDS

_PAGE_EVENTS: Final = 500


class Ending(NamedTuple):
    """Where a thread first ended after an injection, the injection's replies, and the thread then, all as JSON."""

    position: int
    replies: list[bytes]
    thread: bytes


class ReplyCollector(Entity):
    """Collects the messages to ``console`` that one injection causes, up to the first end of its thread after it."""

    thread_id: str = ""
    message_id: str = ""
    replies: list[bytes] = field(default_factory=list)
    end: int = 0  # its position, once it is on disk
    thread: bytes | None = None  # the thread's row then, as JSON; None if the thread is older than the injection
    is_sent: bool = False  # whether what is taken comes after the injection
    _rows: dict[str, threads.Thread | None] = field(default_factory=dict)

    def begin(self, thread_id: str, message_id: str) -> None:
        """The injection is about to be written."""
        self.thread_id, self.message_id = thread_id, message_id
        self.replies, self._rows = [], {thread_id: None}

    def take(self, records: Sequence[Record[events.Event]]) -> None:
        """Take the thread's next events, which are on disk. The end of a thread is the last of its events in a unit."""
        if self.end:
            return
        threads.fold(self._rows, records)
        for record in records:
            event = record.event
            if isinstance(event, events.MessageSent):
                self.is_sent = self.is_sent or event.message == self.message_id
                if self._is_reply(record):
                    self.replies.append(message_json(record))
            elif isinstance(event, ENDS) and self.is_sent:  # one before it may have been on its way to the disk
                row = self._rows[self.thread_id]
                self.thread = None if row is None else msgspec.json.encode(row)
                self.end = record.position
                return

    def _is_reply(self, record: Record[events.Event]) -> TypeGuard[Record[events.MessageSent]]:
        event = record.event
        return isinstance(event, events.MessageSent) and event.to == CONSOLE and record.correlation == self.message_id


async def send_and_wait(
    call: Call, command: Inject, seconds: float | None, place: str = "/payload", places: Places = IN_PATH
) -> tuple[Injected, Ending | None]:
    """Send, and wait for the end of the thread if ``seconds`` are given; None if it does not end in time."""
    if seconds is None:
        return await call.send(command, place, places), None
    pump, collector = call.tenant.pump, ReplyCollector()

    def collect(thread_id: str, message_id: str) -> None:
        collector.begin(thread_id, message_id)
        pump.follow(thread_id, collector.take)

    command = replace(command, on_sent=collect)
    try:
        sent = await call.send(command, place, places)
        return sent, await _ending(call, sent, collector, seconds)
    finally:
        pump.unfollow(collector.thread_id, collector.take)


async def _ending(call: Call, sent: Injected, collector: ReplyCollector, seconds: float) -> Ending | None:
    """The first end after the injection. The log is read for a repetition's, and for one of before a failed commit."""
    if not collector.message_id:
        await _take_from_log(call.tenant.log, sent, collector)
    if not collector.end and await _ended(call, sent.thread_id, seconds) and not collector.end:
        await _take_from_log(call.tenant.log, sent, collector)
    if not collector.end:
        return None
    thread = collector.thread or await call.row("threads", sent.thread_id, collector.end)
    return Ending(collector.end, collector.replies, thread)


async def _take_from_log(log: EventLog, sent: Injected, collector: ReplyCollector) -> None:
    collector.begin(sent.thread_id, sent.message_id)
    collector.is_sent = True
    position, wanted = sent.position, EventFilter((sent.thread_id,), (events.MessageSent, *ENDS), content=True)
    while not collector.end and (records := await log.read(position, wanted=wanted, limit=_PAGE_EVENTS)):
        collector.take(records)
        position = records[-1].position


async def _ended(call: Call, thread_id: str, seconds: float) -> bool:
    """Whether the thread ends in time. A stop of the server ends the wait, and the client when it leaves."""
    left = asyncio.ensure_future(call.until_left())
    try:
        return await call.tenant.ended(thread_id, seconds, left, call.process.stopping)
    finally:
        left.cancel()


async def hold_budget(log: EventLog, sent: Injected, until: int) -> None:
    """Raise ``BudgetExhausted`` if a budget kept the turn of what was injected from calling a model at all."""
    wanted = EventFilter((sent.thread_id,), tuple(events.RUN_ENTRIES.values()), content=True)
    records: list[Record[Any]] = await log.read(sent.position, until, wanted, _PAGE_EVENTS)
    entries = [entry_of(record) for record in records if record.event.message == sent.message_id]
    if isinstance(error := refusal(entries), BudgetExhausted) and not any(e["type"] == "usage" for e in entries):
        raise error
