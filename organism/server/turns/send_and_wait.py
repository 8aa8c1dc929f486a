"""Sending a message and waiting for what comes of it: the end of its thread, and the replies to ``console``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import field

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
from organism.server.turns.costs import set_cost_headers
from organism.server.turns.run_result import FoldedRun
from organism.views.run import entry_of
from organism.views.threads import ENDS

_PAGE_EVENTS: Final = 500


class Ending(NamedTuple):
    """Where a thread first ended after an injection, the injection's replies, and the thread then, all as JSON."""

    position: int
    replies: list[bytes]
    thread: bytes


class Replies(Entity):
    """The messages to ``console`` that one injection causes, as JSON, up to the first end of its thread after it."""

    message_id: str
    shown: list[bytes] = field(default_factory=list)
    end: int = 0  # its position, once it has come

    def take(self, records: Sequence[Record[Any]]) -> None:
        """Take the thread's next messages and ends after the injection."""
        for record in records:
            if isinstance(record.event, ENDS):
                self.end = record.position
                return
            if record.event.to == CONSOLE and record.correlation == self.message_id:
                self.shown.append(message_json(record))


async def send_and_wait(
    call: Call, command: Inject, seconds: float | None, place: str = "/payload", places: Places = IN_PATH
) -> tuple[Injected, Ending | None]:
    """Send, and wait for the end of the thread if ``seconds`` are given; None if it does not end in time.

    A stop of the server ends the wait, and the client when it leaves.
    """
    sent = await call.send(command, place, places)
    if seconds is None:
        return sent, None
    waiting = asyncio.ensure_future(_replies(call.tenant.log, sent))
    try:
        await call.until_any((waiting, call.process.stopping), seconds)
        replies = waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()
    if replies is None or not replies.end:
        return sent, None
    return sent, Ending(replies.end, replies.shown, await call.row("threads", sent.thread_id, replies.end))


async def _replies(log: EventLog, sent: Injected) -> Replies:
    """All of them; without an end if the log closes before."""
    replies = Replies(sent.message_id)
    wanted = EventFilter((sent.thread_id,), (events.MessageSent, *ENDS), content=True)
    async for records in log.follow(sent.position, wanted):
        replies.take(records)
        if replies.end:
            break
    return replies


async def call_tool(
    call: Call, command: Inject, place: str, places: Places = IN_PATH
) -> tuple[Injected, Ending | None]:
    """Call a tool and wait for its end, for at most ``tool_seconds``; its cost goes into the headers of the answer."""
    sent, ending = await send_and_wait(call, command, call.process.timeouts.tool_seconds, place, places)
    if ending is not None:
        await set_cost_headers(call, sent)
    return sent, ending


async def refuse_if_budget_spent(log: EventLog, sent: Injected, until: int) -> None:
    """Raise ``BudgetExhausted`` if a budget kept the turn of what was injected from calling a model at all."""
    wanted = EventFilter((sent.thread_id,), tuple(events.RUN_ENTRIES.values()), content=True)
    records: list[Record[Any]] = await log.read(sent.position, until, wanted, _PAGE_EVENTS)
    entries, run = [entry_of(record) for record in records if record.event.message == sent.message_id], FoldedRun()
    for entry in entries:
        run.add(entry)
    if isinstance(run.failure, BudgetExhausted) and not any(entry["type"] == "usage" for entry in entries):
        raise run.failure
