"""Push: one tail of the log for all viewers of a tenant, and a cursor for each viewer; no queue for any.

The tail makes a commit's frames once and writes them to every live viewer. One whose connection has no room falls back
to its position, catches up from the tail's window or from the log, and is live again; one that takes nothing is cut off
(``FrameProtocol.drained``). Text of a run under way comes from the feed, ahead of the log, and goes to live viewers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import structlog

from organism.events.record import Record
from organism.events.vocabulary import RunEvent
from organism.log.log import EventLog
from organism.pump.run.feed import Delta, Feed, LiveText
from organism.server.push.frames import (
    WITH_CONTENT,
    Chunk,
    Filter,
    Folded,
    Frame,
    as_array,
    frame_of,
    make_frame,
    singly,
)
from organism.server.push.past import PAGE_BYTES, Past, load_threads
from organism.server.push.snapshot import AgentStates, SnapshotReader, Start
from organism.views.organism import KEYS as AGENT_KEYS
from organism.views.views import ViewStore

WINDOW_BYTES: Final = 4 << 20
CHECKPOINT_SECONDS: Final = 5.0
QUIET_EVENTS: Final = 1000
EVERYTHING: Final = Filter()

_log = structlog.get_logger("organism.server")


class Tail:
    """Follows one tenant's log while anyone watches. Everything up to ``position`` has been offered."""

    def __init__(
        self, log: EventLog, views: ViewStore, window_bytes: int = WINDOW_BYTES, feed: Feed | None = None
    ) -> None:
        self.log, self.views = log, views
        self.position = log.head
        self.states = AgentStates(views, self._offer_now)
        self.snapshots = SnapshotReader(log, views, self.states)
        self._feed = feed or Feed()
        self._live = LiveText(self.position)
        self._window_bytes = window_bytes
        self._window: deque[Chunk] = deque()
        self._size_bytes = 0
        self._viewers: set[Viewer] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def join(self, viewer: Viewer) -> None:
        """Offer to this viewer from now on."""
        self._viewers.add(viewer)
        if not self._tasks:
            self.position = self.log.head
            self._live = LiveText(self.position)
            self._feed.subscribe(self._on_delta)
            for delta in self._feed.unlogged():
                self._on_delta(delta)
            self.states.is_due.set()
            work = (self._follow(), self.states.follow(), self._checkpoints())
            self._tasks = [asyncio.ensure_future(each) for each in work]
            for task in self._tasks:
                task.add_done_callback(self._ended)

    def leave(self, viewer: Viewer) -> None:
        """Offer to this viewer no more; with none left, the tail rests."""
        self._viewers.discard(viewer)
        if not self._viewers:
            self._rest()

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._feed.unsubscribe(self._on_delta)
        self._window.clear()
        self._size_bytes = 0

    def _ended(self, task: asyncio.Task[None]) -> None:
        """The log was closed or cannot be read: every viewer reconnects. A tail that rests was cancelled."""
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            _log.error("push_ended", exc_info=error, position=self.position)
        viewers = tuple(self._viewers)
        self._rest()
        for viewer in viewers:
            viewer.close()

    def after(self, position: int) -> list[Chunk] | None:
        """The chunks after ``position``, or None if the window has moved on."""
        oldest = self._window[0].after if self._window else self.position
        return None if position < oldest else [chunk for chunk in self._window if chunk.last > position]

    def unlogged_text(self) -> list[Frame]:
        """Text of open blocks that is not in the log up to ``position``."""
        return [frame_of(delta) for delta in self._live.unread()]

    async def _follow(self) -> None:
        folded = Folded(self.position)
        async for records in self.log.follow(self.position, WITH_CONTENT):
            await load_threads(self.log, self.views, folded, records)
            self._offer(Chunk(self.position, records[-1].position, folded.frames(records)))
            self._offer_waiting_text(records)
            if any(type(record.event) in AGENT_KEYS for record in records):
                self.states.is_due.set()

    def _offer(self, chunk: Chunk) -> None:
        self.position = chunk.last
        self._window.append(chunk)
        self._size_bytes += chunk.size_bytes
        while self._size_bytes > self._window_bytes and len(self._window) > 1:
            self._size_bytes -= self._window.popleft().size_bytes
        encoded: dict[Filter, bytes] = {}
        for viewer in tuple(self._viewers):
            viewer.offer(chunk, encoded)

    def _on_delta(self, delta: Delta) -> None:
        new = self._live.take(delta)
        if new is not None:
            self._offer_now((frame_of(new),))

    def _offer_waiting_text(self, records: Sequence[Record[Any]]) -> None:
        """Offer text that was heard ahead of these events and waited for them."""
        if self._live:
            for record in records:
                for delta in self._live.read(record) if isinstance(record.event, RunEvent) else ():
                    self._offer_now((frame_of(delta),))
        self._live.position = self.position

    def _offer_now(self, frames: Sequence[Frame], version: int = 0) -> None:
        for viewer in tuple(self._viewers):
            viewer.offer_now(frames, version)

    async def _checkpoints(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            for viewer in tuple(self._viewers):
                viewer.checkpoint()


class FrameSink(Protocol):
    """Where frames go: a WebSocket (``FrameProtocol``) or an event stream (``Stream``)."""

    @property
    def is_blocked(self) -> bool:
        """Whether there is no room now."""

    def write_frames(self, frames: bytes) -> None:
        """Write finished frames."""

    async def drained(self) -> bool:
        """Wait for room; False if the connection is over."""


class Viewer:
    """Watches one tenant. Everything up to ``position`` was sent or did not pass the filter."""

    def __init__(self, tail: Tail, sink: FrameSink, hang_up: Callable[[], None]) -> None:
        self.position = 0
        self.filter = EVERYTHING
        self._tail = tail
        self._sink = sink
        self._hang_up = hang_up
        self._announced = 0
        self._states_at = 0
        self._is_live = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, start: Start) -> None:
        """Go on from ``start``: send what follows it, then ``caught_up`` if it is to be announced."""
        self._announced = self.position = start.position
        self._states_at = start.states_at
        self._tail.join(self)
        self._fall_back(announce=start.announce)

    def want(self, wanted: Filter) -> None:
        """Replace the filter from ``position`` on; unlogged frames that only the new one shows are sent at once."""
        before, self.filter = self.filter, wanted
        if self._is_live:
            now = (*self._tail.states.since(0), *self._tail.unlogged_text())
            self._sink.write_frames(wanted.wire([frame for frame in now if not before.passes(frame)]))

    def end(self) -> None:
        """Watch no more."""
        self._is_live = False
        self._tail.leave(self)
        if self._task is not None:
            self._task.cancel()

    def say(self, event: str, **fields: Any) -> None:
        """Send a frame of this viewer's own; it never comes in an array."""
        form = singly if self.filter.form is as_array else self.filter.form
        self._sink.write_frames(form([make_frame(event, fields)]))

    # -- what the tail calls

    def offer(self, chunk: Chunk, encoded: dict[Filter, bytes]) -> None:
        """A commit is on disk; ``encoded`` are its frames as other viewers got them."""
        if self._is_live:
            self._take(chunk, encoded)
            if self._sink.is_blocked:
                self._fall_back(announce=False)

    def offer_now(self, frames: Sequence[Frame], version: int = 0) -> None:
        """Agents' states of that version, or text that is not in the log yet. A viewer without room gets them later."""
        if self._is_live:
            self._sink.write_frames(self.filter.wire(frames))
            self._states_at = version or self._states_at
            if self._sink.is_blocked:
                self._fall_back(announce=False)

    def checkpoint(self) -> None:
        """Say how far the log has come, if no frame did."""
        if self._is_live and self.position > self._announced:
            self._announced = self.position
            self.say("checkpoint", position=self.position)

    def close(self) -> None:
        """The log is closed."""
        self._is_live = False
        self._hang_up()

    # -- catching up

    def _fall_back(self, *, announce: bool) -> None:
        self._is_live = False
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.ensure_future(self._catch_up(announce=announce))
        self._task.add_done_callback(self._caught_up)

    def _caught_up(self, task: asyncio.Task[None]) -> None:
        """A viewer that cannot be served is cut off; it may come back with its position."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("viewer cut off", exc_info=error, position=self.position)
            self._hang_up()

    async def _catch_up(self, *, announce: bool) -> None:
        past: Past | None = None
        while await self._sink.drained():
            chunks = self._tail.after(self.position)
            if chunks is not None:
                if all(self._take_slowly(chunk) for chunk in chunks):
                    self._go_live(announce=announce)
                    return
                continue
            if not announce:
                announce = True
                self.say("fell_behind", position=self.position)
            if past is None or past.wanted is not self.filter or past.position != self.position:
                past = Past(self._tail.log, self._tail.views, self.filter, self.position)
            page = await past.read()
            if past.wanted is self.filter:
                self._take_slowly(page)
            if self.position - self._announced >= QUIET_EVENTS:
                self._announced = self.position
                self.say("checkpoint", position=self.position)

    def _take_slowly(self, chunk: Chunk) -> bool:
        """Take it in pieces; False if there was no room for all of it. The rest is read again."""
        for piece in chunk.pieces(PAGE_BYTES):
            self._take(piece, {})
            if self._sink.is_blocked:
                return False
        return True

    def _take(self, chunk: Chunk, encoded: dict[Filter, bytes]) -> None:
        if chunk.last <= self.position:
            return
        if self.position > chunk.after:
            frames = self.filter.wire([frame for frame in chunk.frames if frame.position > self.position])
        else:
            if self.filter not in encoded:
                encoded[self.filter] = self.filter.wire(chunk.frames)
            frames = encoded[self.filter]
        self.position = chunk.last
        if frames:
            self._announced = chunk.last
            self._sink.write_frames(frames)

    def _go_live(self, *, announce: bool) -> None:
        self._is_live = True
        now = (*self._tail.states.since(self._states_at), *self._tail.unlogged_text())
        self._sink.write_frames(self.filter.wire(now))
        self._states_at = self._tail.states.version
        if announce:
            self._announced = self.position
            self.say("caught_up", position=self.position)
