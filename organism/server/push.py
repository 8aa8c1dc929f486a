"""Push: one tail of the log for all viewers of a tenant, a cursor for each, no queue for any.

The naive way gives each viewer a queue and a task; a quarter of the time then goes into waking tasks, and a viewer
that stops reading fills memory. Here the tail makes a commit's frames once and writes them to every viewer whose
socket has room. A viewer that is behind keeps nothing but its position (see ``viewer``). What the tail keeps is
bounded in bytes.

Text of a run under way is heard from the feed, ahead of the log: it goes to the viewers that are live, behind what it
follows in the log. Any other viewer gets it from the log, and when it has come up to date, what is not there yet.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from organism.log.log import EventFilter, Log
from organism.model.events import RUN, Event
from organism.projections.agents import KEYS as AGENT_KEYS
from organism.pump.feed import Delta, Feed, Live
from organism.server.frames import Folded, Frame, frame_of
from organism.server.learn import learn
from organism.server.standing import Standing
from organism.server.states import States
from organism.server.wire import frame as framed
from organism.server.wire import unframed

WINDOW_BYTES: Final = 4 << 20
CHUNK_BYTES: Final = 300
FRAME_BYTES: Final = 400
"""What a chunk and a frame weigh besides their bytes."""
CHECKPOINT_SECONDS: Final = 5.0
WITH_CONTENT: Final = EventFilter(content=True)

_log = structlog.get_logger("organism.server")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a viewer wants, and whether it wants a commit's frames as one: a JSON array of its events.

    A frame passes if for each given list it names nothing of that kind, or something in the list.
    """

    threads: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    events: frozenset[str] | None = None
    as_arrays: bool = False

    def passes(self, frame: Frame) -> bool:
        """Whether the viewer gets this frame."""
        if self.events is not None and frame.event not in self.events:
            return False
        if self.threads is not None and frame.thread_id is not None and frame.thread_id not in self.threads:
            return False
        return self.agents is None or not frame.agents or not self.agents.isdisjoint(frame.agents)

    def wire(self, frames: Sequence[Frame]) -> bytes:
        """The frames that pass, as they are sent; nothing if none does."""
        if self.threads is not None or self.agents is not None or self.events is not None:
            frames = [frame for frame in frames if self.passes(frame)]
        if self.as_arrays and frames:
            return framed(b"[%b]" % b",".join([unframed(frame.wire) for frame in frames]))
        return b"".join([frame.wire for frame in frames])


ALL: Final = Filter()


class Chunk:
    """The frames of one commit: everything after ``after`` and up to ``last``."""

    __slots__ = ("_joined", "after", "frames", "last", "size")

    def __init__(self, after: int, last: int, frames: Sequence[Frame]) -> None:
        self.after = after
        self.last = last
        self.frames = frames
        self.size = CHUNK_BYTES + sum(FRAME_BYTES + len(frame.wire) for frame in frames)
        self._joined: dict[Filter, bytes] | None = None

    def wire(self, wanted: Filter, position: int) -> bytes:
        """What a viewer at ``position`` is sent of it."""
        if position > self.after:
            return wanted.wire([frame for frame in self.frames if frame.position > position])
        if self._joined is None:
            return wanted.wire(self.frames)
        joined = self._joined.get(wanted)
        if joined is None:
            joined = self._joined[wanted] = wanted.wire(self.frames)
        return joined

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While it lasts, what is joined once is there for all that want the same; the window shall not keep it."""
        self._joined = {}
        yield
        self._joined = None

    def pieces(self, size: int) -> Iterator[Chunk]:
        """The same in parts of about so many bytes, for a socket that may have room for no more."""
        after, part, held = self.after, [], 0
        for frame in self.frames:
            part.append(frame)
            held += len(frame.wire)
            if held >= size and frame is not self.frames[-1]:
                yield Chunk(after, frame.position, part)
                after, part, held = frame.position, [], 0
        yield Chunk(after, self.last, part)


class Audience(Protocol):
    """One who watches, as the tail sees it."""

    def offer(self, chunk: Chunk) -> None:
        """A commit is on disk."""

    def offer_now(self, frames: Sequence[Frame], version: int = 0) -> None:
        """What is no event of the log: agents' states of that version, or text that is not there yet."""

    def checkpoint(self) -> None:
        """Say how far the log has come, if nothing else said so."""

    def close(self) -> None:
        """The log is closed: nothing more will come."""


class Tail:
    """Follows one tenant's log while somebody watches. Everything up to ``position`` has been offered."""

    def __init__(self, log: Log, window_bytes: int = WINDOW_BYTES, feed: Feed | None = None) -> None:
        self.log = log
        self.position = log.head
        self._feed = feed or Feed()
        self._live = Live(self.position)
        self.states = States(log, self._tell_states)
        self.standing = Standing(log, self.states)
        self._window_bytes = window_bytes
        self._window: deque[Chunk] = deque()
        self._size = 0
        self._audience: set[Audience] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def join(self, one: Audience) -> None:
        """Offer to this one from now on."""
        self._audience.add(one)
        if not self._tasks:
            self.position = self.log.head
            self.states.stir()
            self._listen()
            following = asyncio.ensure_future(self._follow())
            following.add_done_callback(self._ended)
            self._tasks = [following, asyncio.ensure_future(self._checkpoints())]

    def leave(self, one: Audience) -> None:
        """Offer to this one no more; with nobody left, the tail rests."""
        self._audience.discard(one)
        if not self._audience:
            self._rest()

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._feed.leave(self._hear)
        self.states.rest()
        self._window.clear()
        self._size = 0

    def after(self, position: int) -> list[Chunk] | None:
        """The chunks after ``position``, or None if the window has moved on."""
        oldest = self._window[0].after if self._window else self.position
        if position < oldest:
            return None
        return [chunk for chunk in self._window if chunk.last > position]

    async def _follow(self) -> None:
        folded = Folded(self.position)
        async for events in self.log.follow(self.position, WITH_CONTENT):
            await learn(self.log, folded, events)
            self._offer(Chunk(self.position, events[-1].position, folded.frames(events)))
            self._place(events)
            if any(event.type in AGENT_KEYS for event in events):
                self.states.stir()

    def _offer(self, chunk: Chunk) -> None:
        self.position = chunk.last
        self._window.append(chunk)
        self._size += chunk.size
        while self._size > self._window_bytes and len(self._window) > 1:
            self._size -= self._window.popleft().size
        with chunk.shared():
            for one in tuple(self._audience):
                one.offer(chunk)

    def _listen(self) -> None:
        self._live = Live(self.position)
        self._feed.join(self._hear)
        for delta in self._feed.said():
            self._hear(delta)

    def _hear(self, delta: Delta) -> None:
        new = self._live.hear(delta)
        if new is not None:
            self._offer_heard(new)

    def _place(self, events: Sequence[Event]) -> None:
        """What was heard ahead of these events and waited for them."""
        if self._live:
            for event in events:
                for delta in self._live.read(event) if event.type in RUN else ():
                    self._offer_heard(delta)
        self._live.position = self.position

    def _offer_heard(self, delta: Delta) -> None:
        frames = (frame_of(delta),)
        for one in tuple(self._audience):
            one.offer_now(frames)

    def heard(self) -> list[Frame]:
        """What was heard of open blocks and is not in the log up to ``position``."""
        return [frame_of(delta) for delta in self._live.unread()]

    def _tell_states(self, frames: Sequence[Frame], version: int) -> None:
        for one in tuple(self._audience):
            one.offer_now(frames, version)

    async def _checkpoints(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            for one in tuple(self._audience):
                one.checkpoint()

    def _ended(self, following: asyncio.Task[None]) -> None:
        """The log closed, or cannot be read: let everyone come again when it can. A tail that rests was cancelled."""
        if following.cancelled():
            return
        if (error := following.exception()) is not None:
            _log.error("push_ended", exc_info=error, position=self.position)
        audience = tuple(self._audience)
        self._rest()
        for one in audience:
            one.close()
