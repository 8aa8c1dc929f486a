"""Waiting for what an injection comes to: the end of its thread, and the messages to ``console`` that it caused."""

from __future__ import annotations

import asyncio
from typing import Final

from organism.errors import BudgetExhausted
from organism.log.log import EventFilter, Log
from organism.model.commands import Injected
from organism.model.events import RUN
from organism.model.ids import CONSOLE
from organism.projections.entries import entry_of
from organism.server.call import Call
from organism.server.invoking.entries import refusal

_PAGE_EVENTS: Final = 500
_ENDS: Final = ("thread_completed", "thread_failed", "thread_killed")


async def end_of(call: Call, sent: Injected, seconds: float) -> int | None:
    """Where the thread first ended after the injection, if it has or does in time.

    What is answered is as it was there: so a repetition is answered alike, though the thread has gone on since.
    """
    if (end := await _end_after(call.tenant.log, sent)) is None and await _ended(call, sent.thread_id, seconds):
        return await _end_after(call.tenant.log, sent)
    return end


async def _end_after(log: Log, sent: Injected) -> int | None:
    found = await log.read(sent.position, wanted=EventFilter((sent.thread_id,), _ENDS), limit=1)
    return found[0].position if found else None


async def _ended(call: Call, thread_id: str, seconds: float) -> bool:
    """Whether the thread ends in time. A stop of the server ends the wait, and the client when it leaves."""
    ended = asyncio.ensure_future(call.tenant.ended(thread_id, seconds))
    others = [asyncio.ensure_future(each) for each in (call.process.until_stopping(), call.until_left())]
    try:
        await asyncio.wait({ended, *others}, return_when=asyncio.FIRST_COMPLETED)
        return ended.done() and ended.result()
    finally:
        ended.cancel()
        for each in others:
            each.cancel()


async def hold_budget(log: Log, sent: Injected, until: int) -> None:
    """Raise ``BudgetExhausted`` if a budget kept the turn of what was injected from calling a model at all."""
    wanted = EventFilter((sent.thread_id,), tuple(sorted(RUN)), content=True)
    events = await log.read(sent.position, until, wanted, _PAGE_EVENTS)
    entries = [entry_of(event) for event in events if event.data["message"] == sent.message_id]
    if isinstance(error := refusal(entries), BudgetExhausted) and not any(e["type"] == "usage" for e in entries):
        raise error


async def replies_to(log: Log, sent: Injected, until: int) -> list[bytes]:
    """The messages to ``console`` that the injection caused up to a position, oldest first, each as finished JSON."""
    wanted = EventFilter((sent.thread_id,), ("message_sent",))
    found: list[str] = []
    position = sent.position
    while True:
        events = await log.read(position, until, wanted, _PAGE_EVENTS)
        found += [
            event.data["message"]
            for event in events
            if event.data["to"] == CONSOLE and event.correlation == sent.message_id
        ]
        if len(events) < _PAGE_EVENTS:
            break
        position = events[-1].position
    rows = [await log.row("messages", message) for message in found]
    return [row for row in rows if row is not None]
