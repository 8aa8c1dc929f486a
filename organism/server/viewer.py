"""A viewer: one socket's place in the log. Live, it costs a write a commit; behind, it reads the log at its own pace.

catching up ──────▶ live ──(its socket has no room)──▶ catching up
    │  from the tail's window if that still reaches back, else from the log
    └─ a client that takes nothing is cut off (``FrameProtocol.drained``)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import structlog

from organism.server.frames import Frame, encode
from organism.server.past import PAGE_BYTES, Past
from organism.server.push import ALL, Chunk, Filter, Tail
from organism.server.wire import frame

QUIET_EVENTS: Final = 1000

_log = structlog.get_logger("organism.server")


class Socket(Protocol):
    """Where frames go; see ``FrameProtocol``."""

    @property
    def is_blocked(self) -> bool:
        """Whether there is no room now."""

    def write_frames(self, frames: bytes) -> None:
        """Write finished frames."""

    async def drained(self) -> bool:
        """Wait for room; False if the connection is over."""


class Viewer:
    """Watches one tenant. Everything up to ``position`` was sent or did not pass the filter."""

    def __init__(self, tail: Tail, socket: Socket, hang_up: Callable[[], None]) -> None:
        self.position = 0
        self.filter = ALL
        self._tail = tail
        self._socket = socket
        self._hang_up = hang_up
        self._told = 0
        self._states_at = 0
        self._is_live = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, position: int, *, states_at: int = 0, announce: bool) -> None:
        """Go on from ``position``: what follows is sent, then ``caught_up`` if that shall be announced.

        ``states_at`` is the version of the agents' states that the client has.
        """
        self._told = self.position = position
        self._states_at = states_at
        self._tail.join(self)
        self._fall_back(announce=announce)

    def want(self, wanted: Filter) -> None:
        """Replace the filter, from ``position`` on.

        What it newly shows of the agents' states, and of texts that are not in the log yet, is sent at once.
        """
        before, self.filter = self.filter, wanted
        if self._is_live:
            now = (*self._tail.states.since(0), *self._tail.heard())
            self._socket.write_frames(wanted.wire([frame for frame in now if not before.passes(frame)]))

    def end(self) -> None:
        """Watch no more."""
        self._is_live = False
        self._tail.leave(self)
        if self._task is not None:
            self._task.cancel()

    def say(self, event: str, **fields: Any) -> None:
        """Send a frame of this viewer's own."""
        self._socket.write_frames(frame(encode(event, fields)))

    # -- what the tail calls

    def offer(self, chunk: Chunk) -> None:
        """A commit is on disk."""
        if self._is_live:
            self._take(chunk)
            if self._socket.is_blocked:
                self._fall_back(announce=False)

    def offer_now(self, frames: Sequence[Frame], version: int = 0) -> None:
        """Agents' states of that version, or text that is not in the log yet. Who has no room gets both later."""
        if self._is_live:
            self._socket.write_frames(self.filter.wire(frames))
            self._states_at = version or self._states_at
            if self._socket.is_blocked:
                self._fall_back(announce=False)

    def checkpoint(self) -> None:
        """Say how far the log has come, if nothing else said so."""
        if self._is_live and self.position > self._told:
            self._told = self.position
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
        """Whoever cannot be told what follows shall come again: with its position it misses nothing."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("viewer cut off", exc_info=error, position=self.position)
            self._hang_up()

    async def _catch_up(self, *, announce: bool) -> None:
        past: Past | None = None
        while await self._socket.drained():
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
                past = Past(self._tail.log, self.filter, self.position)
            page = await past.read()
            if past.wanted is self.filter:
                self._take_slowly(page)
            if self.position - self._told >= QUIET_EVENTS:
                self._told = self.position
                self.say("checkpoint", position=self.position)

    def _take_slowly(self, chunk: Chunk) -> bool:
        """Take it piece by piece; False if there was no room for all of it. What is left is read again."""
        for piece in chunk.pieces(PAGE_BYTES):
            self._take(piece)
            if self._socket.is_blocked:
                return False
        return True

    def _take(self, chunk: Chunk) -> None:
        if chunk.last <= self.position:
            return
        frames = chunk.wire(self.filter, self.position)
        self.position = chunk.last
        if frames:
            self._told = chunk.last
            self._socket.write_frames(frames)

    def _go_live(self, *, announce: bool) -> None:
        self._is_live = True
        now = (*self._tail.states.since(self._states_at), *self._tail.heard())
        self._socket.write_frames(self.filter.wire(now))
        self._states_at = self._tail.states.version
        if announce:
            self._told = self.position
            self.say("caught_up", position=self.position)
