"""Records → frames → bytes. Pure: the same records give the same frames, live or read again years later.

An event makes at most one frame with a position; text that is not in the log yet makes one without.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta, Raw
from msgspec.structs import replace

from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter
from organism.model.times import iso
from organism.model.words import one_of
from organism.pump.run.feed import Delta
from organism.views import approvals, dead_letters, threads
from organism.views.run import data_of, kind_of
from organism.views.threads import Thread
from organism.views.views import ERASED, with_payload

MAX_THREADS: Final = 4096
UNLOGGED: Final = -1
"""The position of a frame that does not come from the log."""
WITH_CONTENT: Final = EventFilter(content=True)


class Frame(NamedTuple):
    """One event for viewers: its JSON; the rest is what filters look at."""

    position: int
    event: str
    thread_id: str | None
    agents: frozenset[str]
    json: bytes


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
        parts += (b',"', name.encode(), b'":', value if isinstance(value, bytes) else msgspec.json.encode(value))
    parts.append(b"}")
    return b"".join(parts)


def make_frame(event: str, fields: Mapping[str, Any], thread: str | None = None, *agents: str) -> Frame:
    """A frame of these fields; its position is one of them if it comes from the log."""
    return Frame(fields.get("position", UNLOGGED), event, thread, frozenset(agents), encode(event, fields))


# -- what a viewer is sent


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

    def passing(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """The frames that pass."""
        if self.threads is None and self.agents is None and self.events is None:
            return frames
        return [frame for frame in frames if self.passes(frame)]


class Chunk(NamedTuple):
    """The frames of one commit or page: everything after ``after`` and up to ``last``, or what is not logged."""

    after: int
    last: int
    frames: Sequence[Frame]

    @property
    def is_logged(self) -> bool:
        return self.last > self.after

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        return CHUNK_BYTES + sum(FRAME_BYTES + len(frame.json) for frame in self.frames)


CHUNK_BYTES: Final = 300
FRAME_BYTES: Final = 400
"""What a chunk and a frame take in memory besides their bytes."""


# -- records → frames


class Context(NamedTuple):
    """What a frame may show besides its event: the thread after it, the record after it, whether all is paused."""

    thread: Thread | None
    following: Record[events.Event] | None
    is_paused: bool


Make = Callable[[Record[Any], Context], Mapping[str, Any] | None]
"""Makes a frame's fields of a record; None if it shows nothing."""


class Folded:
    """The threads that were touched last, at ``position``; ``is_paused`` is of the organism, None while unknown."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.is_paused: bool | None = None
        self.threads: OrderedDict[str, Thread] = OrderedDict()

    def unknown(self, records: Sequence[Record[events.Event]]) -> list[str]:
        """The threads of which ``records`` make frames, and whose rows must be put into ``threads`` first."""
        first: dict[str, events.Event] = {}
        for record in records:
            if type(record.event) in THREAD and record.thread is not None and record.thread not in self.threads:
                first.setdefault(record.thread, record.event)
        return [thread for thread, event in first.items() if not isinstance(event, events.ThreadCreated)]

    def frames(self, records: Sequence[Record[Any]]) -> list[Frame]:
        """The frames of the next records, whose threads are known; ``types_of`` says which may be missing."""
        made: list[Frame] = []
        for at, record in enumerate(records, 1):
            kind = type(record.event)
            row = self._fold(record) if kind in FOLDED else None
            if kind is events.MessageSent:
                made.append(_message(record))
            elif kind in MAKERS:
                name, make = MAKERS[kind]
                following = records[at] if at < len(records) else None
                fields = make(record, Context(row, following, bool(self.is_paused)))
                if fields is not None:
                    positioned = {"position": record.position, **fields}
                    made.append(make_frame(name, positioned, record.thread, *_named(fields, row)))
        self.position = records[-1].position if records else self.position
        while len(self.threads) > MAX_THREADS:
            self.threads.popitem(last=False)
        return made

    def _fold(self, record: Record[events.Event]) -> Thread | None:
        self.is_paused = PAUSES.get(type(record.event), self.is_paused)
        thread = record.thread
        if thread is None:
            return None
        row = threads.apply(thread, self.threads.get(thread), record)
        if row is not None:
            self.threads[thread] = row
            self.threads.move_to_end(thread)
        return row


PAUSES: Final[Mapping[type[events.Event], bool]] = {events.OrganismPaused: True, events.OrganismResumed: False}

_UPDATES: Final = (
    events.ThreadReopened,
    events.ThreadCompleted,
    events.ThreadFailed,
    events.ThreadKilled,
    events.ThreadPaused,
    events.ThreadResumed,
)
THREAD: Final[frozenset[type[events.Event]]] = frozenset({events.ThreadCreated, *_UPDATES})
FOLDED: Final[frozenset[type[events.Event]]] = THREAD | {events.MessageSent, *PAUSES}
"""The events that change what a frame shows of a thread; any other only moves its position, which no frame shows."""


def _named(fields: Mapping[str, Any], thread: Thread | None) -> Sequence[str]:
    """The agents that a frame names: its own, or those that take part in the thread that it shows."""
    if "agent" in fields:
        return (fields["agent"],)
    shown: Thread | None = fields.get("thread", thread)
    return () if shown is None else shown.participants


def message_json(record: Record[events.MessageSent]) -> bytes:
    """The API's Message, of a record with its content."""
    content = record.content
    payload = None if content is None or content.erased else content.json
    return with_payload(msgspec.json.encode(threads.sent(record)), payload)


def _message(record: Record[events.MessageSent]) -> Frame:
    """The frame of a message: the most frequent one, so it has a path of its own."""
    event = record.event
    json = b'{"event":"message","position":%d,"message":%b}' % (record.position, message_json(record))
    return Frame(record.position, "message", record.thread, frozenset((event.sender, event.to)), json)


def _thread_created(record: Record[events.ThreadCreated], context: Context) -> Mapping[str, Any] | None:
    """The thread's first message is in the same unit: it says who takes part."""
    if context.thread is None:
        return None
    thread, first = context.thread, context.following
    if first is not None and isinstance(first.event, events.MessageSent) and first.thread == record.thread:
        thread = replace(thread, participants=[first.event.sender, first.event.to])
    return {"thread": thread}


def _thread_updated(record: Record[events.Event], context: Context) -> Mapping[str, Any] | None:
    shown = ("status", "message_count", "paused", "error", "last_activity")
    row = context.thread
    return None if row is None else {"thread_id": record.thread, **{name: getattr(row, name) for name in shown}}


def _error(record: Record[events.MessageRetried | events.MessageFailed], _context: Context) -> Mapping[str, Any]:
    event = record.event
    return {
        "thread_id": record.thread,
        "agent": event.agent,
        "error": event.error,
        "timestamp": iso(record.at),
        "message_id": event.message,
        "attempt": event.attempt,
        "next_at": iso(event.next_at) if isinstance(event, events.MessageRetried) else None,
    }


def _dead_letter(record: Record[events.MessageDead | events.MessageRefused], _context: Context) -> Mapping[str, Any]:
    letter = dead_letters.died(record)
    return {"thread_id": record.thread, "agent": letter.agent, "status": "open", "dead_letter": letter}


def _replayed(record: Record[events.MessageReplayed], _context: Context) -> Mapping[str, Any]:
    return {"thread_id": record.thread, "status": "replayed", "dead_letter": {"id": record.event.dead}}


def _discarded(record: Record[events.MessageDiscarded], _context: Context) -> Mapping[str, Any]:
    return {"thread_id": record.thread, "status": "discarded", "dead_letter": {"id": record.event.message}}


def _approval(record: Record[events.ApprovalRequested], _context: Context) -> Mapping[str, Any]:
    approval, content = approvals.requested(record), record.content
    approval.preview = Raw(ERASED if content is None or content.erased else content.json)
    return {"thread_id": record.thread, "agent": approval.agent, "approval": approval}


def _approval_closed(record: Record[approvals.Closing], _context: Context) -> Mapping[str, Any]:
    closed = {"id": record.event.approval, "status": approvals.status_after(record.event)}
    return {"thread_id": record.thread, "approval": closed}


def _in_doubt(record: Record[events.StepStarted], _context: Context) -> Mapping[str, Any] | None:
    """A step that was found begun and not ended."""
    return _question(record, "open") if record.event.unknown else None


def _resolved(record: Record[events.StepResolved], _context: Context) -> Mapping[str, Any]:
    """How an operator resolved it."""
    return _question(record, record.event.outcome)


def _question(record: Record[events.StepStarted] | Record[events.StepResolved], status: str) -> Mapping[str, Any]:
    message, step = record.event.message, record.event.step
    question = {"id": f"{message}:{step}", "message_id": message, "step": step, "status": status}
    return {"thread_id": record.thread, "agent": record.event.agent, "indeterminate": question}


def _organism_state(_record: Record[events.Event], context: Context) -> Mapping[str, Any]:
    return {"status": "paused" if context.is_paused else "running"}


def _organism_stopped(_record: Record[events.OrganismStopped], _context: Context) -> Mapping[str, Any]:
    return {"status": "stopping"}


def _run(record: Record[events.RunEvent], _context: Context) -> Mapping[str, Any]:
    event = record.event
    shown = {"message_id": event.message, "agent": event.agent, "type": kind_of(record), "data": data_of(record)}
    return {"thread_id": record.thread or "", **shown}


def frame_of(delta: Delta) -> Frame:
    """The frame of a piece of text that is not in the log yet."""
    shown = {"thread_id": delta.thread, "message_id": delta.message, "agent": delta.agent, **delta.entry}
    return make_frame("run", shown, delta.thread, delta.agent)


def _reload(record: Record[events.OrganismReloaded], _context: Context) -> Mapping[str, Any]:
    event = record.event
    return {"added": event.added, "removed": event.removed, "updated": event.updated}


def _usage(record: Record[events.ModelCalled], _context: Context) -> Mapping[str, Any]:
    """A call of a model is over; ``error`` says why it gave no answer."""
    event = record.event
    return {
        "thread_id": record.thread,
        "agent": event.agent,
        "message_id": event.message,
        "step": event.step,
        "model": event.model,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cost_usd": event.cost_usd,
        "cost_source": event.cost_source,
        "attempts": event.attempts,
        "served_by": event.provider,
        "error": None if event.error is None else event.error.code,
    }


MAKERS: Final[Mapping[type[events.Event], tuple[str, Make]]] = {
    events.ThreadCreated: ("thread_created", _thread_created),
    **dict.fromkeys(_UPDATES, ("thread_updated", _thread_updated)),
    events.MessageRetried: ("error", _error),
    events.MessageFailed: ("error", _error),
    events.MessageDead: ("dead_letter", _dead_letter),
    events.MessageRefused: ("dead_letter", _dead_letter),
    events.MessageReplayed: ("dead_letter", _replayed),
    events.MessageDiscarded: ("dead_letter", _discarded),
    events.ApprovalRequested: ("approval", _approval),
    events.ApprovalResolved: ("approval", _approval_closed),
    events.ApprovalExpired: ("approval", _approval_closed),
    events.ApprovalCancelled: ("approval", _approval_closed),
    events.StepStarted: ("indeterminate", _in_doubt),
    events.StepResolved: ("indeterminate", _resolved),
    **dict.fromkeys(
        (events.OrganismStarted, events.OrganismPaused, events.OrganismResumed), ("organism_state", _organism_state)
    ),
    events.OrganismStopped: ("organism_state", _organism_stopped),
    events.OrganismReloaded: ("reload", _reload),
    events.ModelCalled: ("usage", _usage),
    **dict.fromkeys(events.RUN_ENTRIES.values(), ("run", _run)),
}
"""Which events make a frame of which name, and how. ``MessageSent`` makes a ``message`` (see ``Folded.frames``)."""

FRAMES: Final = frozenset({"agent_state", "message", *(name for name, _ in MAKERS.values())})
"""The names that a filter's ``events`` may list."""
FrameName = Annotated[str, one_of(FRAMES, "FrameName", "The name of a frame.", "message")]
FrameNames = Annotated[list[FrameName], Meta(min_length=1, description="Only frames of these, parted by commas.")]


def types_of(wanted: frozenset[str] | None) -> tuple[type[events.Event], ...]:
    """All events that make frames of these names, or change what such a frame shows; None: of all."""
    names = FRAMES if wanted is None else wanted
    types = {kind for kind, (name, _) in MAKERS.items() if name in names}
    if "message" in names:
        types.add(events.MessageSent)
    if names & {"thread_created", "thread_updated"}:
        types |= FOLDED
    if "organism_state" in names:
        types |= PAUSES.keys()
    return tuple(kind for kind in events.EVENTS.values() if kind in types)
