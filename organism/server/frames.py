"""Events → frames → bytes. Pure: the same events give the same frames, live or read again years later.

An event makes at most one frame with a position; text that is not in the log yet makes one without.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from organism.log.log import EventFilter, Row
from organism.log.pages import ERASED, with_payload
from organism.model.events import RUN, THREAD, Event
from organism.model.times import iso
from organism.projections import approvals, dead_letters, threads
from organism.projections.run import data_of, kind_of
from organism.pump.feed import Delta
from organism.server.wire import splice

MAX_THREADS: Final = 4096
UNLOGGED: Final = -1
"""The position of a frame that does not come from the log."""
WITH_CONTENT: Final = EventFilter(content=True)


class Frame(NamedTuple):
    """One event for viewers: ``wire`` is the finished WebSocket frame; the rest is what filters look at."""

    position: int
    event: str
    thread_id: str | None
    agents: frozenset[str]
    wire: bytes

    @property
    def payload(self) -> bytes:
        """The frame's JSON."""
        return self.wire[_HEADS.get(self.wire[1], 2) :]


_HEADS: Final = {126: 4, 127: 10}
"""The length of a WebSocket frame's head, by the second byte; 2 for any other."""


def websocket_frame(payload: bytes) -> bytes:
    """A whole WebSocket text frame from the server (RFC 6455, 5.2): unmasked, so the same bytes serve every viewer."""
    size = len(payload)
    if size < 126:  # noqa: PLR2004 - the three forms of a length in RFC 6455
        return bytes((0x81, size)) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", 0x81, 126, size) + payload
    return struct.pack("!BBQ", 0x81, 127, size) + payload


def encode(event: str, fields: Mapping[str, Any]) -> bytes:
    """A frame's JSON; values that are ``bytes`` are finished JSON."""
    parts = [b'{"event":"', event.encode(), b'"']
    for name, value in fields.items():
        parts += (b',"', name.encode(), b'":', value if isinstance(value, bytes) else orjson.dumps(value))
    parts.append(b"}")
    return b"".join(parts)


def make_frame(event: str, fields: Mapping[str, Any], thread: str | None = None, *agents: str) -> Frame:
    """A frame of these fields; its position is one of them if it comes from the log."""
    wire = websocket_frame(encode(event, fields))
    return Frame(fields.get("position", UNLOGGED), event, thread, frozenset(agents), wire)


# -- what a viewer is sent


Form = Callable[[Sequence[Frame]], bytes]
"""How frames are sent."""


def singly(frames: Sequence[Frame]) -> bytes:
    """A WebSocket frame each."""
    return b"".join([frame.wire for frame in frames])


def as_array(frames: Sequence[Frame]) -> bytes:
    """One WebSocket frame, a JSON array."""
    return websocket_frame(b"[%b]" % b",".join([frame.payload for frame in frames])) if frames else b""


def as_events(frames: Sequence[Frame]) -> bytes:
    """Server-Sent Events; the id is the position, if there is one."""
    return b"".join(
        [
            b"data: %b\n\n" % frame.payload
            if frame.position == UNLOGGED
            else b"id: %d\ndata: %b\n\n" % (frame.position, frame.payload)
            for frame in frames
        ]
    )


@dataclass(frozen=True, slots=True)
class Filter:
    """What a viewer wants. A frame passes if for each given list it names nothing of that kind or something in it."""

    threads: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    events: frozenset[str] | None = None
    form: Form = singly

    def passes(self, frame: Frame) -> bool:
        if self.events is not None and frame.event not in self.events:
            return False
        if self.threads is not None and frame.thread_id is not None and frame.thread_id not in self.threads:
            return False
        return self.agents is None or not frame.agents or not self.agents.isdisjoint(frame.agents)

    def wire(self, frames: Sequence[Frame]) -> bytes:
        """The frames that pass, as they are sent; nothing if none does."""
        if self.threads is not None or self.agents is not None or self.events is not None:
            frames = [frame for frame in frames if self.passes(frame)]
        return self.form(frames)


class Chunk(NamedTuple):
    """The frames of one commit: everything after ``after`` and up to ``last``."""

    after: int
    last: int
    frames: Sequence[Frame]

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        return CHUNK_BYTES + sum(FRAME_BYTES + len(frame.wire) for frame in self.frames)

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


CHUNK_BYTES: Final = 300
FRAME_BYTES: Final = 400
"""What a chunk and a frame take in memory besides their bytes."""


# -- events → frames


class Context(NamedTuple):
    """What a frame may show besides its event: the thread after it, the event after it, whether all is paused."""

    thread: Row | None
    following: Event | None
    is_paused: bool


Make = Callable[[Event, Context], Mapping[str, Any] | None]
"""Makes a frame's fields of an event; None if it shows nothing."""


class Folded:
    """The threads that were touched last, at ``position``; ``is_paused`` is of the organism, None while unknown."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.is_paused: bool | None = None
        self.threads: OrderedDict[str, Row] = OrderedDict()

    def unknown(self, events: Sequence[Event]) -> list[str]:
        """The threads of which ``events`` make frames, and whose rows must be put into ``threads`` first."""
        first: dict[str, Event] = {}
        for event in events:
            if event.type in THREAD and event.thread is not None and event.thread not in self.threads:
                first.setdefault(event.thread, event)
        return [thread for thread, event in first.items() if event.type != "thread_created"]

    def frames(self, events: Sequence[Event]) -> list[Frame]:
        """The frames of the next events, whose threads are known; ``types_of`` says which may be missing."""
        made: list[Frame] = []
        for at, event in enumerate(events, 1):
            row = self._fold(event) if event.type in FOLDED else None
            if event.type == "message_sent":
                made.append(_message(event))
            elif event.type in MAKERS:
                name, make = MAKERS[event.type]
                following = events[at] if at < len(events) else None
                fields = make(event, Context(row, following, bool(self.is_paused)))
                if fields is not None:
                    said = {"position": event.position, **fields}
                    made.append(make_frame(name, said, event.thread, *_named(fields, row)))
        self.position = events[-1].position if events else self.position
        while len(self.threads) > MAX_THREADS:
            self.threads.popitem(last=False)
        return made

    def _fold(self, event: Event) -> Row | None:
        self.is_paused = PAUSES.get(event.type, self.is_paused)
        thread = event.thread
        if thread is None:
            return None
        row = threads.apply(thread, self.threads.get(thread), event)
        if row is not None:
            self.threads[thread] = row
            self.threads.move_to_end(thread)
        return row


PAUSES: Final[Mapping[str, bool]] = {"organism_paused": True, "organism_resumed": False}

FOLDED: Final = THREAD | {"message_sent", *PAUSES}
"""The events that change what a frame says of a thread; any other only moves its position, which no frame shows."""


def _named(fields: Mapping[str, Any], row: Row | None) -> Sequence[str]:
    """The agents that a frame names: its own, or those that take part in the thread that it tells of."""
    if "agent" in fields:
        return (fields["agent"],)
    told: Sequence[str] = fields.get("thread", row or {}).get("participants", ())
    return told


def public(row: Row) -> Row:
    """The row without the fold's own fields."""
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _message(event: Event) -> Frame:
    """The frame of a message: the most frequent one, so it has a path of its own."""
    content = event.content
    payload = None if content is None or content.erased else content.json
    message = with_payload(orjson.dumps(threads.message_head(event)), payload)
    wire = websocket_frame(b'{"event":"message","position":%d,"message":%b}' % (event.position, message))
    return Frame(event.position, "message", event.thread, frozenset((event.data["from"], event.data["to"])), wire)


def _thread_created(event: Event, context: Context) -> Mapping[str, Any] | None:
    """The thread's first message is in the same unit: it says who takes part."""
    if context.thread is None:
        return None
    thread = public(context.thread)
    first = context.following
    if first is not None and first.type == "message_sent" and first.thread == event.thread:
        thread["participants"] = [first.data["from"], first.data["to"]]
    return {"thread": thread}


def _thread_updated(event: Event, context: Context) -> Mapping[str, Any] | None:
    shown = ("status", "message_count", "paused", "error", "last_activity")
    row = context.thread
    return None if row is None else {"thread_id": event.thread, **{name: row[name] for name in shown}}


def _error(event: Event, _context: Context) -> Mapping[str, Any]:
    data = event.data
    return {
        "thread_id": event.thread,
        "agent": data["agent"],
        "error": data["error"],
        "timestamp": iso(event.at),
        "message_id": data["message"],
        "attempt": data["attempt"],
        "next_at": iso(data["next_at"]) if "next_at" in data else None,
    }


def _dead_letter(event: Event, _context: Context) -> Mapping[str, Any] | None:
    row = dead_letters.apply("", None, event)
    if row is None:
        return None
    return {"thread_id": event.thread, "agent": row["agent"], "status": "open", "dead_letter": public(row)}


def _dead_letter_closed(event: Event, _context: Context) -> Mapping[str, Any]:
    replayed = event.type == "message_replayed"
    closed = {"id": event.data["dead"] if replayed else event.data["message"]}
    return {"thread_id": event.thread, "status": "replayed" if replayed else "discarded", "dead_letter": closed}


def _approval(event: Event, _context: Context) -> Mapping[str, Any] | None:
    row = approvals.apply("", None, event)
    if row is None:
        return None
    content = event.content
    preview = ERASED if content is None or content.erased else content.json
    shown = splice(orjson.dumps(public(row)), {"preview": preview})
    return {"thread_id": event.thread, "agent": row["agent"], "approval": shown}


def _approval_closed(event: Event, _context: Context) -> Mapping[str, Any]:
    closed = approvals.apply("", {"status": "pending"}, event)
    return {
        "thread_id": event.thread,
        "approval": {"id": event.data["approval"], "status": closed and closed["status"]},
    }


def _effect(event: Event, _context: Context) -> Mapping[str, Any] | None:
    """A step that was found begun and not ended, or what a person said of it."""
    if event.type == "step_started" and "unknown" not in event.data:
        return None
    message, step, agent = (event.data[name] for name in ("message", "step", "agent"))
    status = event.data.get("outcome", "open")
    question = {"id": f"{message}:{step}", "message_id": message, "step": step, "status": status}
    return {"thread_id": event.thread, "agent": agent, "indeterminate": question}


def _organism_state(event: Event, context: Context) -> Mapping[str, Any]:
    if event.type == "organism_stopped":
        return {"status": "stopping"}
    return {"status": "paused" if context.is_paused else "running"}


def _run(event: Event, _context: Context) -> Mapping[str, Any]:
    data = event.data
    shown = {"message_id": data["message"], "agent": data["agent"], "type": kind_of(event), "data": data_of(event)}
    return {"thread_id": event.thread or "", **shown}


def frame_of(delta: Delta) -> Frame:
    """The frame of a piece of text that is not in the log yet."""
    shown = {"thread_id": delta.thread, "message_id": delta.message, "agent": delta.agent, **delta.entry}
    return make_frame("run", shown, delta.thread, delta.agent)


def _reload(event: Event, _context: Context) -> Mapping[str, Any]:
    return {name: event.data[name] for name in ("added", "removed", "updated")}


def _usage(event: Event, _context: Context) -> Mapping[str, Any]:
    """A call of a model is over; ``error`` says why it gave no answer."""
    data = event.data
    shown = ("step", "model", "input_tokens", "output_tokens", "cost_usd", "cost_source", "attempts")
    error = data.get("error")
    return {
        "thread_id": event.thread,
        "agent": data["agent"],
        "message_id": data["message"],
        **{name: data[name] for name in shown},
        "served_by": data["provider"],
        "error": None if error is None else error["code"],
    }


_STATES: Final = ("reopened", "completed", "failed", "killed", "paused", "resumed")
MAKERS: Final[Mapping[str, tuple[str, Make]]] = {
    "thread_created": ("thread_created", _thread_created),
    **{f"thread_{state}": ("thread_updated", _thread_updated) for state in _STATES},
    "message_retried": ("error", _error),
    "message_failed": ("error", _error),
    "message_dead": ("dead_letter", _dead_letter),
    "message_refused": ("dead_letter", _dead_letter),
    "message_replayed": ("dead_letter", _dead_letter_closed),
    "message_discarded": ("dead_letter", _dead_letter_closed),
    "approval_requested": ("approval", _approval),
    "approval_resolved": ("approval", _approval_closed),
    "approval_expired": ("approval", _approval_closed),
    "approval_cancelled": ("approval", _approval_closed),
    "step_started": ("indeterminate", _effect),
    "step_resolved": ("indeterminate", _effect),
    **{
        f"organism_{state}": ("organism_state", _organism_state)
        for state in ("started", "stopped", "paused", "resumed")
    },
    "organism_reloaded": ("reload", _reload),
    "model_called": ("usage", _usage),
    **dict.fromkeys(sorted(RUN), ("run", _run)),
}
"""Which events make a frame of which name, and how. ``message_sent`` makes a ``message`` (see ``Folded.frames``)."""

FRAMES: Final = frozenset({"agent_state", "message", *(name for name, _ in MAKERS.values())})
"""The names that a filter's ``events`` may list."""

NAMELESS: Final = frozenset(
    {"message_replayed", "message_discarded", "approval_resolved", "approval_expired", "approval_cancelled"}
)
"""The events of threads whose frames name no agent: a filter by agents lets each of them through."""


def types_of(wanted: frozenset[str] | None) -> tuple[str, ...]:
    """The types of all events that make frames of these names, or change what such a frame says; None: of all."""
    names = FRAMES if wanted is None else wanted
    types = {kind for kind, (name, _) in MAKERS.items() if name in names}
    if "message" in names:
        types.add("message_sent")
    if names & {"thread_created", "thread_updated"}:
        types |= FOLDED
    if "organism_state" in names:
        types |= PAUSES.keys()
    return tuple(sorted(types))
