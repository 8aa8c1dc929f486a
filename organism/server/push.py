"""What is pushed: the frames of a commit, encoded once, and the filter through which a viewer sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from organism.log.log import EventFilter
from organism.server.frames import Frame
from organism.server.wire import frame as framed
from organism.server.wire import unframed

CHUNK_BYTES: Final = 300
FRAME_BYTES: Final = 400
"""What a chunk and a frame take in memory besides their bytes."""
WITH_CONTENT: Final = EventFilter(content=True)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a viewer wants. A frame passes if for each given list it names nothing of that kind or something in it.

    ``as_arrays``: the frames of a commit come as one, a JSON array of its events.
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
        """While it lasts, frames are joined once for all viewers with the same filter."""
        self._joined = {}
        yield
        self._joined = None

    def pieces(self, size: int) -> Iterator[Chunk]:
        """The same in parts of about ``size`` bytes, for a connection that may have no room for more."""
        after, part, part_bytes = self.after, [], 0
        for frame in self.frames:
            part.append(frame)
            part_bytes += len(frame.wire)
            if part_bytes >= size and frame is not self.frames[-1]:
                yield Chunk(after, frame.position, part)
                after, part, part_bytes = frame.position, [], 0
        yield Chunk(after, self.last, part)
