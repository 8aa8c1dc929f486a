"""Frames as bytes: which of them a viewer wants, and in what form they are sent. What they say is in ``frames``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import Raw

from organism.views.views import cut_payload

UNLOGGED: Final = -1
"""The position of a frame that does not come from the log."""
ON_REQUEST: Final = frozenset({"handling", "step", "rates"})
"""The names of frames that only those get who name them; nobody else pays for them."""


class Frame(NamedTuple):
    """One event for viewers: its JSON; the rest is what filters look at. It passes by ``event`` and by ``also``."""

    position: int
    event: str
    thread_id: str | None
    agents: frozenset[str]
    json: bytes
    also: str = ""


def websocket_frame(payload: bytes) -> bytes:
    """A whole WebSocket text frame from the server (RFC 6455, 5.2): unmasked, so the same bytes serve every viewer."""
    size = len(payload)
    if size < 126:  # noqa: PLR2004 - the three forms of a length in RFC 6455
        return bytes((0x81, size)) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", 0x81, 126, size) + payload
    return struct.pack("!BBQ", 0x81, 127, size) + payload


Form = Callable[[Sequence[Frame]], bytes]
"""How frames are sent."""


def singly(frames: Sequence[Frame]) -> bytes:
    """A WebSocket frame each."""
    return b"".join([websocket_frame(frame.json) for frame in frames])


def as_array(frames: Sequence[Frame]) -> bytes:
    """One WebSocket frame, a JSON array."""
    return websocket_frame(b"[%b]" % b",".join([frame.json for frame in frames])) if frames else b""


def as_events(frames: Sequence[Frame]) -> bytes:
    """Server-Sent Events; the id is the position, if there is one."""
    return b"".join(
        [
            b"data: %b\n\n" % frame.json
            if frame.position == UNLOGGED
            else b"id: %d\ndata: %b\n\n" % (frame.position, frame.json)
            for frame in frames
        ]
    )


@dataclass(frozen=True, slots=True)
class Filter:
    """What a viewer wants. A frame passes if for each given list it names nothing of that kind or something in it.

    Payloads and previews of more than ``payload_bytes`` are cut.
    """

    threads: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    events: frozenset[str] | None = None
    form: Form = singly
    payload_bytes: int | None = None

    def passes(self, frame: Frame) -> bool:
        if self.events is not None and frame.event not in self.events and frame.also not in self.events:
            return False
        if self.threads is not None and frame.thread_id is not None and frame.thread_id not in self.threads:
            return False
        return self.agents is None or not frame.agents or not self.agents.isdisjoint(frame.agents)

    def passing(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """The frames that pass, as this viewer gets them."""
        if not (self.threads is None and self.agents is None and self.events is None):
            frames = [frame for frame in frames if self.passes(frame)]
        return frames if self.payload_bytes is None else [_cut(frame, self.payload_bytes) for frame in frames]


CUT: Final[Mapping[str, str]] = {"message": "payload", "approval": "preview"}
"""The events whose frames hold a payload, and its field in what is called as they are."""
_SAID: Final = msgspec.json.Decoder(dict[str, Raw])


def _cut(frame: Frame, most_bytes: int) -> Frame:
    if frame.event not in CUT or len(frame.json) <= most_bytes:
        return frame
    said = _SAID.decode(frame.json)
    said[frame.event] = Raw(cut_payload(bytes(said[frame.event]), most_bytes, CUT[frame.event]))
    return frame._replace(json=msgspec.json.encode(said))


class OnRequest(Protocol):
    """Frames that only those get who name them."""

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""

    def frames(self, wanted: Filter) -> Sequence[Frame]:
        """Make them, in order, for this filter, which is still to be applied."""


class Chunk(NamedTuple):
    """The frames of one commit or page: everything after ``after`` and up to ``last``, or what is not logged."""

    after: int
    last: int
    frames: Sequence[Frame]
    on_request: OnRequest | None = None

    def passing(self, wanted: Filter) -> Sequence[Frame]:
        """The frames that pass, in order."""
        frames = wanted.passing(self.frames)
        if self.on_request is None or wanted.events is None or wanted.events.isdisjoint(ON_REQUEST):
            return frames
        made = wanted.passing(self.on_request.frames(wanted))
        return sorted((*frames, *made), key=attrgetter("position")) if made else frames

    @property
    def is_logged(self) -> bool:
        return self.last > self.after

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        size_bytes = CHUNK_BYTES + sum(FRAME_BYTES + len(frame.json) for frame in self.frames)
        return size_bytes if self.on_request is None else size_bytes + self.on_request.size_bytes


CHUNK_BYTES: Final = 300
FRAME_BYTES: Final = 400
"""What a chunk and a frame take in memory besides their bytes."""
