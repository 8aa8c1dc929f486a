"""The entries of a turn's run, as they come and after a break.

A handler that shows no run has entries made of its replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any, Final, Self

import orjson
from msgspec import field

from organism.errors import ThreadKilled
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import ORGANISM_STREAM, Content, Record
from organism.log.log import EventFilter, EventLog
from organism.model.agent import Answer
from organism.model.commands import Injected
from organism.model.ids import CONSOLE, session_of
from organism.model.run import PASSAGES, RunEntry
from organism.model.unseen import Unseen
from organism.pump.run.feed import Delta, LiveText
from organism.server.turns.failures import failure_of
from organism.server.turns.run_result import KILLED, WAITING, FoldedRun, waiting_entry
from organism.tenants import PAUSES, Tenant
from organism.views.run import entry_of
from organism.views.threads import ENDS

_SHOWN: Final[tuple[type[events.Event], ...]] = (
    *events.RUN_ENTRIES.values(),
    events.MessageRetried,
    events.MessageHandled,
    events.MessageDropped,
    events.MessageDead,
)
"""What is read of a handling: its run, and the ends of its attempts."""
MAX_WAITING_PIECES: Final = 1000
"""Pieces of text that may wait for a slow client; what comes beyond reaches it from the log, gathered."""


async def entries_of(tenant: Tenant, sent: Injected, *, tells_pauses: bool = False) -> AsyncGenerator[RunEntry, None]:
    """The entries, from the first to ``done``. They end without it if the log closes before.

    With ``tells_pauses`` a ``waiting`` comes between them whenever a pause begins that keeps the run.
    A run that ends with an error tells one before, also where its handler has raised and told none. It is that of the
    last attempt; those of earlier ones come before it.
    A handler that shows no run answers by what it sends: each reply to ``console`` is a message.
    """
    run = _RunFollower(tenant, sent, tells_pauses=tells_pauses)
    async with aclosing(run.entries()) as entries:
        async for entry in entries:
            yield entry
    if run.outcome in {"killed", "dead"}:
        for entry in await _failed(tenant.log, sent, is_killed=run.outcome == "killed"):
            yield entry
    elif run.outcome == "appended":
        running = await _taken_in(tenant.log, sent)
        async with aclosing(entries_of(tenant, running, tells_pauses=tells_pauses)) as entries:
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

    def __init__(self, tenant: Tenant, sent: Injected, *, tells_pauses: bool) -> None:
        self._tenant = tenant
        self._sent = sent
        self._tells_pauses = tells_pauses
        self._pause = ""
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
        if self._tells_pauses:
            wanted = EventFilter((*self._line(), ORGANISM_STREAM), (*_SHOWN, *PAUSES), content=True)
            self._note_pause()
        async for records in self._tenant.log.follow(self._sent.position, wanted):
            for record in records:
                if isinstance(record.event, PAUSES):
                    self._note_pause()
                    continue
                if self._lacks_reason(record):
                    self._entries.put_nowait(await failure_of(self._tenant.log, self._sent))
                self._take(record)
                if self._is_over:
                    return
            if self._entries.qsize() > MAX_WAITING_PIECES:
                await self._entries.join()

    def _line(self) -> list[str]:
        """The thread, after the turns of its session for which it waits."""
        thread_id = self._sent.thread_id
        session = self._tenant.pump.state.folded.sessions.get(session_of(thread_id) or "")
        turns = session.turns if session is not None else []
        return turns[: turns.index(thread_id) + 1] if thread_id in turns else [thread_id]

    def _note_pause(self) -> None:
        """A pause has begun or ended: add why the run waits, unless that was said already."""
        message = self._tenant.pump.state.folded.messages.get(self._sent.message_id)
        pause = None if message is None else self._tenant.pause_of(message.to, self._line())
        before, self._pause = self._pause, "" if pause is None else pause.message
        if self._pause not in {"", before}:
            self._entries.put_nowait(waiting_entry(self._pause))

    def _lacks_reason(self, record: Record[Any]) -> bool:
        """Whether the run ends with an error, and its last attempt has told none."""
        event = record.event
        is_end = isinstance(event, events.RunDone) and event.message == self._sent.message_id
        return is_end and event.stop_reason == "error" and not self._has_reason

    def _take(self, record: Record[Any]) -> None:
        """Add the part of an event that was not live before, then live text that came early and waited for it."""
        event = record.event
        if event.message != self._sent.message_id:
            return
        if isinstance(event, events.MessageRetried):
            self._has_reason = False
            return
        if isinstance(event, events.RunEvent):
            heard = Unseen(self._live.received(record)) if isinstance(event, events.RunDelta) else None
            waited = self._live.read(record)
            entry = entry_of(record)
            self._has_reason = self._has_reason or entry["type"] == "error"
            new = heard.take_delta(entry) if heard is not None and "delta" in entry["data"] else entry
            if new is not None:
                self._entries.put_nowait(new)
            self._add_pieces(waited)
            self._is_over = isinstance(event, events.RunDone)
            return
        self._is_over = True
        if isinstance(event, events.MessageHandled):
            self.outcome = event.outcome
        else:
            self.outcome = "killed" if isinstance(event, events.MessageDropped) else "dead"


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
            if isinstance(event, events.ThreadCompleted):
                yield _entry("done", stopReason="stop")
                return
            for entry in await _failed(log, sent, is_killed=isinstance(event, events.ThreadKilled)):
                yield entry
            return


def _text(sent: events.MessageSent, content: Content | None) -> str:
    payload = {"erased": True} if content is None or content.erased else orjson.loads(content.json)
    is_answer = sent.type == Answer.__name__ and "text" in payload
    return str(payload["text"]) if is_answer else orjson.dumps(payload).decode()


async def _failed(log: EventLog, sent: Injected, *, is_killed: bool) -> list[RunEntry]:
    if is_killed:
        return [_entry("error", code=ThreadKilled.code, message=KILLED), _entry("done", stopReason="killed")]
    return [await failure_of(log, sent), _entry("done", stopReason="error")]


def _entry(kind: str, **data: Any) -> RunEntry:
    return {"type": kind, "data": data}


_ENOUGH: Final = frozenset({"message_delta", "thought_delta", "message", "thought", "data", "file", "done"}) | {
    *("tool_call", "tool_result", "interaction_request", WAITING)
}
"""Entries that show something of the run: an error before the first of them is answered with its own status. What was
looked up for the prompt is not one of them."""


async def begun(entries: AsyncGenerator[RunEntry, None]) -> AsyncGenerator[RunEntry, None]:
    """All the entries, once one has come that shows something. Raises the error of a run that ended without one.

    After an error the next attempt may still succeed.
    """
    first, run = list[RunEntry](), FoldedRun()
    async for entry in entries:
        first.append(entry)
        run.add(entry)
        if entry["type"] in _ENOUGH and entry["data"].get("name") != PASSAGES:
            break
    if run.failure is not None:
        raise run.failure
    return _chained(first, entries)


async def _chained(first: Iterable[RunEntry], rest: AsyncGenerator[RunEntry, None]) -> AsyncGenerator[RunEntry, None]:
    async with aclosing(rest):
        for entry in first:
            yield entry
        async for entry in rest:
            yield entry


class Seen(Entity):
    """What a client has of a turn's entries: ``count`` of those that are no deltas, and so much of each open block.

    All but deltas come in the same order each time.
    """

    sent: Injected
    count: int = 0
    blocks: dict[str, Unseen] = field(default_factory=dict)
    _passed: int = 0  # of the counted entries, those that came again

    @classmethod
    def at(cls, place: list[Any]) -> Self:
        """What a client has that was sent this ``place``."""
        thread_id, message_id, position, count, offsets = place
        blocks = {block: Unseen(offset) for block, offset in offsets.items()}
        return cls(Injected(thread_id, message_id, position), count, blocks)

    @property
    def place(self) -> list[Any]:
        """It as JSON."""
        sent, offsets = self.sent, {block: unseen.offset for block, unseen in self.blocks.items()}
        return [sent.thread_id, sent.message_id, sent.position, self.count, offsets]

    def take(self, entry: RunEntry) -> RunEntry | None:
        """The part of the next entry that the client does not have; None if it has all of it. Now it has it."""
        kind, data = entry["type"], entry["data"]
        block = f"{kind.partition('_')[0]} {data.get('id')}"
        if kind.endswith("_delta") and self._passed == self.count:  # one that was erased has no text
            return self.blocks.setdefault(block, Unseen()).take_delta(entry) if "delta" in data else entry
        if kind.endswith("_delta"):
            return None
        if self._passed < self.count:
            self._passed += 1
            return None
        self._passed = self.count = self.count + 1
        if kind.endswith(("_start", "_end")):
            self.blocks.pop(block, None)
        return entry
