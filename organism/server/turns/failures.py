"""Why a handling failed for good, as far as its caller may know: the error of its model, else no more than that."""

from __future__ import annotations

from typing import Any, Final

from organism.errors import HandlingFailed
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter, EventLog
from organism.model.commands import Injected
from organism.model.run import RunEntry

DEAD: Final = "The handling failed; the operator finds it among the dead letters."
MOST_READ: Final = 500
"""Events at the end of a thread, among which the failure is looked for."""


async def failure_of(log: EventLog, sent: Injected) -> RunEntry:
    """The ``error`` entry of what was sent and failed. What an ask failed with is looked for where it began."""
    wanted = EventFilter((sent.thread_id,), (events.StepRecorded, events.MessageDead))
    records: list[Record[Any]] = await log.read(sent.position, wanted=wanted, limit=MOST_READ, reverse=True)
    deaths = {record.event.message: record.event for record in records if isinstance(record.event, events.MessageDead)}
    death = deaths.get(sent.message_id) or next(iter(deaths.values()), None)
    while death is not None and death.root in deaths:
        death = deaths[death.root]
    for record in records:
        event = record.event
        if death is None or not isinstance(event, events.StepRecorded) or event.message != death.message:
            continue
        if event.kind == "complete" and event.error is not None and event.error.message in death.reason:
            return {"type": "error", "data": _described(event.error)}
    return {"type": "error", "data": {"code": HandlingFailed.code, "message": DEAD}}


def _described(error: events.StepError) -> dict[str, Any]:
    final = {"isFinal": True} if error.is_final else {}
    wait = {} if error.retry_after_s is None else {"retryAfterSeconds": error.retry_after_s}
    return {"code": error.code, "message": error.message, **final, **wait}
