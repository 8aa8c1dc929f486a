"""The entries of what was invoked: a run's own, or those that a plain handler's replies amount to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

import orjson

from organism.errors import HandlingFailed, OrganismError, ThreadKilled
from organism.log.log import EventFilter, Log
from organism.model.agent import Answer
from organism.model.commands import Injected
from organism.model.events import Event
from organism.model.ids import CONSOLE
from organism.model.run import RunEntry
from organism.server import problems
from organism.tenants import Tenant

FAILED: Final = HandlingFailed.code
KILLED: Final = ThreadKilled.code
_TOLD: Final = ("message_sent", "thread_completed", "thread_failed", "thread_killed")


def entries_of(tenant: Tenant, sent: Injected) -> AsyncIterator[RunEntry]:
    """The entries, from the first to ``done``. They end without it if the log closes before."""
    return replies(tenant.log, sent)


async def replies(log: Log, sent: Injected) -> AsyncIterator[RunEntry]:
    """What a handler that makes no run answers: a message for each reply to ``console``, then the thread's end."""
    async for events in log.follow(sent.position, EventFilter((sent.thread_id,), _TOLD)):
        for event in events:
            if event.type != "message_sent":
                for entry in _end(event):
                    yield entry
                return
            if event.data["to"] == CONSOLE and event.correlation == sent.message_id:
                yield _entry("message", text=await _text(log, event))


async def _text(log: Log, event: Event) -> str:
    kept = await log.content(event.position)
    payload = orjson.loads(kept[0]) if kept is not None else {"erased": True}
    return str(payload["text"]) if event.data["type"] == Answer.__name__ and "text" in payload else _json(payload)


def _json(payload: Any) -> str:
    return orjson.dumps(payload).decode()


def _end(event: Event) -> Iterator[RunEntry]:
    if event.type == "thread_completed":
        yield _entry("done", stopReason="stop")
    elif event.type == "thread_killed":
        yield _entry("error", code=KILLED, message="The thread was killed.")
        yield _entry("done", stopReason="killed")
    else:
        yield _entry("error", code=FAILED, message="The handling failed; the operator finds it among the dead letters.")
        yield _entry("done", stopReason="error")


def _entry(kind: str, **data: Any) -> RunEntry:
    return {"type": kind, "data": data}


def refusal(first: list[RunEntry]) -> OrganismError | None:
    """The error that the run came to before anything of it was seen, with its true status; else None."""
    last = first[-1] if first else None
    if last is None or last["type"] != "error":
        return None
    return error_of(last["data"])


def error_of(data: Mapping[str, Any]) -> OrganismError:
    """An ``error`` entry as the error of that code; one of an unknown code is the handling's failure."""
    return problems.kinds().get(str(data.get("code")), HandlingFailed)(str(data.get("message", "")))
