"""Sending a message and waiting for what comes of it: the end of its thread, and the replies to ``console``.

The replies are collected from the units as they reach the log, which is asked only for a repetition under an
idempotency key, after a failed commit, and for the row of an older thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from organism.errors import BudgetExhausted
from organism.events.record import Record
from organism.events.vocabulary import RUN_ENTRIES, MessageSent
from organism.log.log import EventFilter, EventLog
from organism.model.commands import Inject, Injected
from organism.model.ids import CONSOLE
from organism.pump.run.replies import ENDS, ReplyCollector
from organism.server.http.bodies import Places
from organism.server.http.call import IN_PATH, Answer, Call
from organism.server.surfaces.run import refusal
from organism.views.run import entry_of
from organism.views.views import ViewStore

_PAGE_EVENTS: Final = 500
LEFT: Final = Answer(b"", 499)
"""Never sent; the status is for the server's own log."""


class Ending(NamedTuple):
    """Where a thread first ended after an injection, the injection's replies, and the thread then, all as JSON."""

    position: int
    replies: list[bytes]
    thread: bytes


async def send_and_wait(
    call: Call, command: Inject, seconds: float | None, place: str = "/payload", places: Places = IN_PATH
) -> tuple[Injected, Ending | None]:
    """Send, and wait for the end of the thread if ``seconds`` are given; None if it does not end in time."""
    if seconds is None:
        return await call.send(command, place, places), None
    collectors, collector = call.tenant.pump.collectors, ReplyCollector()
    command = replace(command, on_sent=partial(collectors.begin, collector))
    try:
        sent = await call.send(command, place, places)
        return sent, await _ending(call, sent, collector, seconds)
    finally:
        collectors.forget(collector)


async def _ending(call: Call, sent: Injected, collector: ReplyCollector, seconds: float) -> Ending | None:
    log, views = call.tenant.log, call.tenant.views
    end = 0 if collector.message_id else await _end_in_log(log, sent)
    if not end and await _ended(call, sent.thread_id, seconds):
        end = collector.end or await _end_in_log(log, sent)
    if not end:
        return None
    replies = collector.replies if collector.end else await _replies_in_log(log, views, sent, end)
    return Ending(end, replies, collector.thread or await call.row("threads", sent.thread_id, end))


async def _ended(call: Call, thread_id: str, seconds: float) -> bool:
    """Whether the thread ends in time. A stop of the server ends the wait, and the client when it leaves."""
    left = asyncio.ensure_future(call.until_left())
    try:
        return await call.tenant.ended(thread_id, seconds, left, call.process.stopping)
    finally:
        left.cancel()


async def _end_in_log(log: EventLog, sent: Injected) -> int:
    found = await log.read(sent.position, wanted=EventFilter((sent.thread_id,), ENDS), limit=1)
    return found[0].position if found else 0


async def _replies_in_log(log: EventLog, views: ViewStore, sent: Injected, until: int) -> list[bytes]:
    wanted = EventFilter((sent.thread_id,), (MessageSent,))
    found: list[str] = []
    position = sent.position
    while records := await log.read(position, until, wanted, _PAGE_EVENTS):
        for record in records:
            event = record.event
            if isinstance(event, MessageSent) and event.to == CONSOLE and record.correlation == sent.message_id:
                found.append(event.message)
        position = records[-1].position
    rows = [await views.row("messages", message) for message in found]
    return [row for row in rows if row is not None]


async def hold_budget(log: EventLog, sent: Injected, until: int) -> None:
    """Raise ``BudgetExhausted`` if a budget kept the turn of what was injected from calling a model at all."""
    wanted = EventFilter((sent.thread_id,), tuple(RUN_ENTRIES.values()), content=True)
    records: list[Record[Any]] = await log.read(sent.position, until, wanted, _PAGE_EVENTS)
    entries = [entry_of(record) for record in records if record.event.message == sent.message_id]
    if isinstance(error := refusal(entries), BudgetExhausted) and not any(e["type"] == "usage" for e in entries):
        raise error


async def unless_left(call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer, unless the client leaves first."""
    doing = asyncio.ensure_future(answering)
    leaving = asyncio.ensure_future(call.until_left())
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else LEFT
    finally:
        leaving.cancel()
        if not doing.done():
            doing.cancel()
            with suppress(asyncio.CancelledError):
                await doing
