"""An invoked run as it comes: its entries, and how a stream writes them.

A handler that shows no run has entries made of its replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Final

import orjson

from organism.errors import HandlingFailed, OrganismError, ThreadKilled
from organism.events import vocabulary as events
from organism.events.record import Content, Record
from organism.log.log import EventFilter, EventLog
from organism.model.agent import Answer
from organism.model.commands import Injected
from organism.model.ids import CONSOLE, session_of
from organism.model.run import RunEntry
from organism.pump.run.feed import Delta, LiveText
from organism.server.http import problems
from organism.server.http.streaming import SSE
from organism.tenants import Tenant
from organism.views.run import entry_of
from organism.views.threads import ENDS

_SHOWN: Final[tuple[type[events.Event], ...]] = (
    *events.RUN_ENTRIES.values(),
    events.MessageHandled,
    events.MessageDropped,
    events.MessageDead,
)
"""What is read of a handling: its run, and its end."""
_KILLED: Final = "The thread was killed."
_DEAD: Final = "The handling failed; the operator finds it among the dead letters."
MAX_WAITING_PIECES: Final = 1000
"""Pieces of text that may wait for a slow client; what comes beyond reaches it from the log, gathered."""


async def entries_of(tenant: Tenant, sent: Injected) -> AsyncGenerator[RunEntry, None]:
    """The entries, from the first to ``done``. They end without it if the log closes before.

    A run that ends with an error tells one before, also where its handler has raised and told none.
    A handler that shows no run answers by what it sends: each reply to ``console`` is a message.
    """
    run = _RunFollower(tenant, sent)
    async with aclosing(run.entries()) as entries:
        async for entry in entries:
            yield entry
    if run.outcome in {"killed", "dead"}:
        for entry in _failed(is_killed=run.outcome == "killed"):
            yield entry
    elif run.outcome == "appended":
        async with aclosing(entries_of(tenant, await _taken_in(tenant.log, sent))) as entries:
            async for entry in entries:
                yield entry
    elif run.outcome:
        async for entry in _replies(tenant.log, sent):
            yield entry


async def _taken_in(log: EventLog, sent: Injected) -> Injected:
    """The running turn that has taken in a message which steers it, from there on."""
    wanted = EventFilter((session_of(sent.thread_id) or "",), (events.TurnAppended,))
    taken: list[Record[Any]] = await log.read(sent.position, wanted=wanted)
    (record,) = (each for each in taken if each.event.message == sent.message_id)
    first: list[Record[Any]] = await log.read(wanted=EventFilter((record.event.turn,), (events.MessageSent,)), limit=1)
    return Injected(record.event.turn, first[0].event.message, record.position)


class _RunFollower:
    """Follows one run: its events, and between them pieces of text that are not in the log yet.

    Nothing comes twice and nothing is left out, however late and slowly it is read: a piece that finds no room is
    skipped, and its text comes from the log. ``outcome`` is that of a handling that showed no run.
    """

    def __init__(self, tenant: Tenant, sent: Injected) -> None:
        self._tenant = tenant
        self._sent = sent
        self._live = LiveText(sent.position)
        self._entries: asyncio.Queue[RunEntry | None] = asyncio.Queue()
        self._is_over = self._has_reason = False
        self.outcome = ""

    async def entries(self) -> AsyncGenerator[RunEntry, None]:
        """The entries up to ``done``; none if the handling shows no run."""
        reading = asyncio.ensure_future(self._read())
        reading.add_done_callback(lambda _: self._entries.put_nowait(None))
        self._tenant.feed.subscribe(self._on_delta)
        for delta in self._tenant.feed.unlogged():
            self._on_delta(delta)
        try:
            while (entry := await self._entries.get()) is not None:
                yield entry
                self._entries.task_done()
            reading.result()
        finally:
            self._tenant.feed.unsubscribe(self._on_delta)
            reading.cancel()

    def _on_delta(self, delta: Delta) -> None:
        if delta.message == self._sent.message_id and self._entries.qsize() < MAX_WAITING_PIECES:
            self._add_pieces([self._live.take(delta)])

    def _add_pieces(self, pieces: Iterable[Delta | None]) -> None:
        for piece in pieces:
            if piece is not None and piece.text:
                self._entries.put_nowait(piece.entry)

    async def _read(self) -> None:
        wanted = EventFilter((self._sent.thread_id,), _SHOWN, content=True)
        async for records in self._tenant.log.follow(self._sent.position, wanted):
            for record in records:
                self._take(record)
                if self._is_over:
                    return
            if self._entries.qsize() > MAX_WAITING_PIECES:
                await self._entries.join()

    def _take(self, record: Record[Any]) -> None:
        """Add the part of an event that was not live before, then live text that came early and waited for it."""
        event: events.RunEvent | events.MessageHandled | events.MessageDropped | events.MessageDead = record.event
        if event.message != self._sent.message_id:
            return
        if isinstance(event, events.RunEvent):
            held = self._live.received(record) if isinstance(event, events.RunDelta) else 0
            waited = self._live.read(record)
            entry = entry_of(record)
            self._has_reason = self._has_reason or entry["type"] == "error"
            if not self._has_reason and entry["data"].get("stopReason") == "error":
                self._entries.put_nowait(_entry("error", code=HandlingFailed.code, message=_DEAD))
            if (new := beyond(entry, held)) is not None:
                self._entries.put_nowait(new)
            self._add_pieces(waited)
            self._is_over = isinstance(event, events.RunDone)
            return
        self._is_over = True
        if isinstance(event, events.MessageHandled):
            self.outcome = event.outcome
        else:
            self.outcome = "killed" if isinstance(event, events.MessageDropped) else "dead"


def beyond(entry: RunEntry, held: int) -> RunEntry | None:
    """The part of a delta after ``held`` characters of its block, None if there is none; any other entry as it is."""
    data = entry["data"]
    if "delta" not in data:
        return entry
    new = data["delta"][max(0, held - data["offset"]) :]
    if not new:
        return None
    return {"type": entry["type"], "data": {**data, "delta": new, "offset": max(held, data["offset"])}}


async def _replies(log: EventLog, sent: Injected) -> AsyncIterator[RunEntry]:
    """A message for each reply to ``console``, then the thread's end."""
    wanted = EventFilter((sent.thread_id,), (events.MessageSent, *ENDS), content=True)
    async for records in log.follow(sent.position, wanted):
        for record in records:
            event = record.event
            if isinstance(event, events.MessageSent):
                if event.to == CONSOLE and record.correlation == sent.message_id:
                    yield _entry("message", text=_text(event, record.content))
                continue
            ended = _failed(is_killed=isinstance(event, events.ThreadKilled))
            for entry in [_entry("done", stopReason="stop")] if isinstance(event, events.ThreadCompleted) else ended:
                yield entry
            return


def _text(sent: events.MessageSent, content: Content | None) -> str:
    payload = {"erased": True} if content is None or content.erased else orjson.loads(content.json)
    is_answer = sent.type == Answer.__name__ and "text" in payload
    return str(payload["text"]) if is_answer else orjson.dumps(payload).decode()


def _failed(*, is_killed: bool) -> Iterator[RunEntry]:
    if is_killed:
        yield _entry("error", code=ThreadKilled.code, message=_KILLED)
    else:
        yield _entry("error", code=HandlingFailed.code, message=_DEAD)
    yield _entry("done", stopReason="killed" if is_killed else "error")


def _entry(kind: str, **data: Any) -> RunEntry:
    return {"type": kind, "data": data}


def refusal(first: list[RunEntry]) -> OrganismError | None:
    """The error that the run ended with before it showed anything, or None.

    An error after which another attempt succeeded does not count.
    """
    errors = [entry["data"] for entry in first if entry["type"] == "error"]
    if not errors or first[-1]["type"] != "done":
        return None
    reason = first[-1]["data"]["stopReason"]
    if reason == "killed":
        return ThreadKilled(_KILLED)
    if reason != "error" and first[-2]["type"] != "error":
        return None
    return problems.told(errors[-1])


_ENOUGH: Final = frozenset({"message_delta", "thought_delta", "message", "thought", "data", "file", "done"}) | {
    *("tool_call", "tool_result", "interaction_request")
}
"""Entries that show something of the run: an error before the first of them is answered with its own status."""


async def begun(entries: AsyncGenerator[RunEntry, None]) -> AsyncGenerator[RunEntry, None]:
    """All the entries, once one has come that shows something. Raises the error of a run that ended without one.

    After an error the next attempt may still succeed.
    """
    first: list[RunEntry] = []
    async for entry in entries:
        first.append(entry)
        if entry["type"] in _ENOUGH:
            break
    if (refused := refusal(first)) is not None:
        raise refused
    return _chained(first, entries)


async def _chained(first: Iterable[RunEntry], rest: AsyncGenerator[RunEntry, None]) -> AsyncGenerator[RunEntry, None]:
    async with aclosing(rest):
        for entry in first:
            yield entry
        async for entry in rest:
            yield entry


async def written(
    entries: AsyncGenerator[RunEntry, None], kind: str, write: Callable[[RunEntry], bytes] | None = None
) -> AsyncGenerator[bytes, None]:
    """The entries as ``write`` writes them, or as a stream of this media type has them.

    A stream without ``done`` was cut: the run goes on anyway.
    """
    form = b"data: %b\n\n" if kind == SSE else b"%b\n"
    write = write or (lambda entry: form % orjson.dumps(entry))
    async with aclosing(entries):
        async for entry in entries:
            yield write(entry)
