"""Push: one tail of the log for all viewers of a tenant, and a cursor for each viewer; no queue for any.

The tail makes a commit's frames once and keeps the newest in a window. Each viewer reads on from its position, from the
window or, once that has moved on, from the log, as fast as its connection takes what it reads. Text of a run under way
comes from the feed, ahead of the log; it and agents' states are for viewers that have read to the window's end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import structlog

from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventLog
from organism.model.times import milliseconds
from organism.pump.run.feed import Delta, Feed, LiveText
from organism.rag.library import Library
from organism.server.push.filter import UNLOGGED, Chunk, Filter, Frame, as_array, singly
from organism.server.push.frames import (
    WITH_CONTENT,
    CaughtUp,
    Checkpoint,
    Details,
    FellBehind,
    Folded,
    FrameOf,
    frame_of,
    frame_of_delta,
)
from organism.server.push.past import PAGE_BYTES, Past, load_unknown
from organism.server.push.progress import LibraryProgress
from organism.server.push.rates import Counts, Rates
from organism.server.push.snapshot import AgentStates, SnapshotReader, Start
from organism.views.organism import KEYS as AGENT_KEYS
from organism.views.views import ViewStore

WINDOW_BYTES: Final = 4 << 20
TICK_SECONDS: Final = 5.0
QUIET_EVENTS: Final = 1000
LAG_EVERY_US: Final = 1_000_000
"""Who has fallen behind hears how far, again after so long."""

_log = structlog.get_logger("organism.server")


class Reading(NamedTuple):
    """What a viewer reads from the window: its bytes, the next chunk's number, the position that it has reached.

    ``announced`` is the position that the frames show, 0 if none of them has one.
    """

    wire: bytes
    next: int
    position: int
    announced: int


class Tail:
    """Follows one tenant's log while anyone watches. Everything up to ``position`` is or was in the window.

    The window's chunks are numbered. ``news`` is set when there is more to read, or when ``ticks`` has risen; ``ended``
    when the log was closed or cannot be read.
    """

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        log: EventLog,
        views: ViewStore,
        now: Callable[[], int],
        window_bytes: int = WINDOW_BYTES,
        feed: Feed | None = None,
        *,
        library: Library | None = None,
    ) -> None:
        self.log, self.views = log, views
        self.now = now  # the log's time in µs
        self.position = log.head
        self.states = AgentStates(log, views, self._offer_unlogged)
        self.snapshots = SnapshotReader(log, views, self.states)
        self.rates = Rates(now, self._offer_counts)
        self.news, self.ended = asyncio.Event(), asyncio.Event()
        self.ticks = 0
        self._progress = LibraryProgress(library, now, self._offer_unlogged) if library is not None else None
        self._feed = feed or Feed()
        self._live = LiveText(self.position)
        self._window_bytes = window_bytes
        self._window: deque[Chunk] = deque()
        self._first = 0
        self._size_bytes = 0
        self._readings: dict[tuple[int, int, bool, Filter], Reading] = {}
        self._watchers = 0
        self._following: asyncio.Task[None] | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Follow the log while anyone is inside."""
        self._watchers += 1
        if self._following is None:
            self._begin()
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                if self._following is not None:
                    self._following.cancel()
                    self._rest()
                self._clear()

    def _begin(self) -> None:
        self._clear()
        self.position = self.log.head
        self.ended = asyncio.Event()
        self._live = LiveText(self.position)
        self._feed.subscribe(self._on_delta)
        for delta in self._feed.unlogged():
            self._on_delta(delta)
        self.states.begin()
        self._following = asyncio.ensure_future(self._work())
        self._following.add_done_callback(self._done)

    def _rest(self) -> None:
        self._following = None
        self._feed.unsubscribe(self._on_delta)

    def _clear(self) -> None:
        self._first += len(self._window)
        self._window.clear()
        self._readings.clear()
        self._size_bytes = 0

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            works = [self.states.follow(), self.rates.follow(), self._tick()]
            if self._progress is not None:
                works.append(self._progress.follow())
            others = [group.create_task(work) for work in works]
            await self._follow()
            for other in others:
                other.cancel()

    def _done(self, following: asyncio.Task[None]) -> None:
        """Unless it was cancelled, the log was closed or cannot be read: every viewer reconnects."""
        if following.cancelled():
            return
        if (error := following.exception()) is not None:
            _log.error("push_ended", exc_info=error, position=self.position)
        self._rest()
        self.ended.set()
        self.wake()

    async def _follow(self) -> None:
        folded = Folded(self.position)
        async for records in self.log.follow(self.position, WITH_CONTENT):
            await load_unknown(self.log, self.views, folded, records)
            frames, details = folded.frames(records), Details.of(records)
            self._offer(Chunk(self.position, records[-1].position, frames, details))
            self._offer_waiting_text(records)
            self.rates.count(records)
            if any(type(record.event) in AGENT_KEYS for record in records):
                self.states.is_due.set()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.tick()

    def tick(self) -> None:
        """Wake every viewer: one that was sent nothing for a while may be sent a checkpoint or a heartbeat."""
        self.ticks += 1
        self.wake()

    def wake(self) -> None:
        """Let every viewer look again."""
        news, self.news = self.news, asyncio.Event()
        news.set()

    def _offer(self, chunk: Chunk) -> None:
        self.position = chunk.last
        self._window.append(chunk)
        self._size_bytes += chunk.size_bytes
        while self._size_bytes > self._window_bytes and len(self._window) > 1:
            self._size_bytes -= self._window.popleft().size_bytes
            self._first += 1
        self._readings.clear()
        self.wake()

    def _offer_unlogged(self, frames: Sequence[Frame]) -> None:
        self._offer(Chunk(self.position, self.position, frames))

    def _offer_counts(self, counts: Counts) -> None:
        self._offer(Chunk(self.position, self.position, (), counts))

    def _on_delta(self, delta: Delta) -> None:
        new = self._live.take(delta)
        if new is not None:
            self._offer_unlogged((frame_of_delta(new),))

    def _offer_waiting_text(self, records: Sequence[Record[Any]]) -> None:
        """Offer text that came ahead of these events and waited for them."""
        if self._live:
            for record in records:
                for delta in self._live.read(record) if isinstance(record.event, events.RunEvent) else ():
                    self._offer_unlogged((frame_of_delta(delta),))
        self._live.position = self.position

    # -- what viewers call

    @property
    def end(self) -> int:
        """The number of the chunk that comes next."""
        return self._first + len(self._window)

    def number_after(self, position: int) -> int | None:
        """The number of the chunk that goes on after a position, or None if the window has moved on."""
        if position < (self._window[0].after if self._window else self.position):
            return None
        number = self.end
        while number > self._first and self._window[number - self._first - 1].last > position:
            number -= 1
        return number

    def holds(self, number: int) -> bool:
        """Whether the chunk of this number, and what follows it, is in the window."""
        return number >= self._first

    def read(self, number: int, position: int, wanted: Filter, *, is_live: bool) -> Reading:
        """What the filter passes of the chunks from ``number`` on, for one that has ``position``.

        That is about a page, encoded once for all who ask for the same. Who is not live gets what is in the log alone.
        """
        key = (number, position, is_live, wanted)
        if (known := self._readings.get(key)) is not None:
            return known
        parts: list[bytes] = []
        announced = size_bytes = 0
        while number < self.end and size_bytes < PAGE_BYTES:
            chunk = self._window[number - self._first]
            number += 1
            if chunk.is_logged:
                frames: Sequence[Frame] = [frame for frame in chunk.passing(wanted) if frame.position > position]
                position = max(position, chunk.last)
                announced = position if frames else announced
            else:
                frames = chunk.passing(wanted) if is_live else ()
            if frames:
                parts.append(wanted.form(frames))
                size_bytes += len(parts[-1])
        reading = self._readings[key] = Reading(b"".join(parts), number, position, announced)
        return reading

    def unlogged(self, states: Mapping[str, Frame]) -> list[Frame]:
        """Agents' states that are not as in these, and text of open blocks that is not in the log."""
        return [*self.states.since(states), *(frame_of_delta(delta) for delta in self._live.unread())]


class Viewer:
    """Watches one tenant. Everything up to ``position`` was sent or did not pass the filter.

    It is live once it has read to the window's end and has the agents' states and the text that is not logged yet.
    One that is to end at a position reads the log alone, up to there.
    """

    def __init__(self, tail: Tail, wanted: Filter, start: Start) -> None:
        self.filter = wanted
        self._tail = tail
        self._ticks = tail.ticks
        self._is_over = False
        tail.rates.ask(self, wanted)
        self.begin(start)

    def begin(self, start: Start) -> None:
        """Go on from ``start``: what follows it is sent, then ``caught_up`` if it is to be announced."""
        self.position = self._announced = start.position
        self._until = start.until
        self._announces = start.announce
        self._lag_due_us: int | None = None
        self._states = start.states
        self._had: Filter | None = None
        self._number: int | None = None
        self._is_live = False
        self._tail.wake()

    def want(self, wanted: Filter) -> None:
        """Replace the filter from ``position`` on; of what is not logged, what only the new one shows is sent."""
        is_current = self._is_live and self._number == self._tail.end
        self._had = self.filter if is_current else None
        self.filter = wanted
        self._tail.rates.ask(self, wanted)
        self._is_live = False
        self._tail.wake()

    def end(self) -> None:
        """Watch no more."""
        self._is_over = True
        self._tail.wake()

    def own(self, said: FrameOf) -> bytes:
        """A frame for this viewer alone; it never comes in an array."""
        form = singly if self.filter.form is as_array else self.filter.form
        return form([frame_of(said, None, (), getattr(said, "position", UNLOGGED))])

    async def stream(self) -> AsyncIterator[bytes]:
        """What to send, as it comes, until the position to end at, the log's close or ``end``; ``b""`` at a tick.

        ``position`` and filter are those of what was given last. Raises what a read of the log raises.
        """
        past: Past | None = None
        while not self._is_over:
            news = self._tail.news
            if self.has_reached_end:
                yield self.own(CaughtUp(self.position))
                return
            if self._lag_due_us is not None and self._tail.now() >= self._lag_due_us:
                yield await self._lag()
            if self._until is not None or not self._is_in_window():
                if not self._announces:
                    self._announces, self._lag_due_us = True, 0
                    continue
                if past is None or not past.goes_on(self.position, self.filter):
                    past = Past(self._tail.log, self._tail.views, self.filter, self.position, self._until)
                page = await past.read()
                if (page.after, past.wanted) == (self.position, self.filter):  # neither was changed meanwhile
                    yield self._read_page(page)
            elif (wire := self._read_window()) is not None:
                yield wire
            elif self._tail.ended.is_set():
                return
            else:
                await news.wait()

    @property
    def has_reached_end(self) -> bool:
        """Whether it has the position at which it is to end."""
        return self.position == self._until

    async def _lag(self) -> bytes:
        """Say how old the first event is that was not sent yet."""
        self._lag_due_us = self._tail.now() + LAG_EVERY_US
        position = self.position
        unsent = await self._tail.log.read(position, limit=1)
        if position != self.position or not unsent:
            return b""
        return self.own(FellBehind(position, milliseconds(max(0, self._tail.now() - unsent[0].at))))

    def _is_in_window(self) -> bool:
        """Whether the tail's window has what comes next."""
        if self._number is not None and not self._tail.holds(self._number):
            self._number, self._is_live, self._states, self._had = None, False, {}, None
        if self._number is None:
            self._number = self._tail.number_after(self.position)
        return self._number is not None

    def _read_window(self) -> bytes | None:
        """What comes next in the window, or None if nothing is to be sent now."""
        assert self._number is not None  # noqa: S101 - `_is_in_window` has set it; narrows the type
        if self._number < self._tail.end:
            reading = self._tail.read(self._number, self.position, self.filter, is_live=self._is_live)
            self._number, self.position = reading.next, reading.position
            self._announced = max(self._announced, reading.announced)
            return reading.wire
        if not self._is_live:
            return self._go_live()
        if self._ticks != self._tail.ticks:
            self._ticks = self._tail.ticks
            return self._checkpoint(1)
        return None

    def _read_page(self, page: Chunk) -> bytes:
        """A page of the past, and a checkpoint where the filter passes nothing for long."""
        self.position = page.last
        if frames := page.passing(self.filter):
            self._announced = page.last
            return self.filter.form(frames)
        return self._checkpoint(QUIET_EVENTS)

    def _checkpoint(self, least_events: int) -> bytes:
        """Say how far the log has come, if no frame did for so many events."""
        if self.position < self._announced + least_events:
            return b""
        self._announced = self.position
        return self.own(Checkpoint(self.position))

    def _go_live(self) -> bytes:
        frames = self.filter.passing(self._tail.unlogged(self._states))
        if self._had is not None:
            frames = [frame for frame in frames if not self._had.passes(frame)]
        self._is_live, self._states, self._had = True, {}, None
        wire = self.filter.form(frames)
        if self._announces:
            self._announces, self._announced, self._lag_due_us = False, self.position, None
            wire += self.own(CaughtUp(self.position))
        return wire
