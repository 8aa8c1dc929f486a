"""Events → frames. Pure: the same events give the same frames, live or read again years later.

One event makes at most one frame with a position; text that is not in the log yet makes one without. What a frame says
of a thread comes from the fold that the REST rows come from, as the thread stood right after the event. ``agent_state``
is not made here (see ``snapshot``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from organism.log.log import Row
from organism.log.pages import ERASED, with_payload
from organism.model.events import RUN, THREAD, Event
from organism.model.times import iso
from organism.projections import approvals, dead_letters, messages, threads
from organism.projections.run import data_of, kind_of
from organism.pump.feed import Delta
from organism.server.wire import frame, splice

THREADS_KEPT: Final = 4096
NOBODY: Final[frozenset[str]] = frozenset()


class Frame(NamedTuple):
    """One event for viewers: ``wire`` is the finished WebSocket frame; the rest is what filters look at."""

    position: int
    event: str
    thread_id: str | None
    agents: frozenset[str]
    wire: bytes


class Said(NamedTuple):
    """A frame's fields (``bytes`` are finished JSON) and the agents that it names."""

    fields: Mapping[str, Any]
    agents: frozenset[str] = NOBODY


class Folded:
    """The threads that frames speak of, as they stand at ``position``: the newest few thousand that were touched.

    ``is_paused`` says whether the whole organism is; None that nobody knows yet.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.is_paused: bool | None = None
        self._threads: OrderedDict[str, Row] = OrderedDict()

    def unknown(self, events: Sequence[Event]) -> list[str]:
        """The threads of which ``events`` make frames, and which must be learned first."""
        seen: dict[str, bool] = {}
        for event in events:
            thread = event.thread
            if event.type in THREAD and thread is not None and thread not in self._threads:
                seen.setdefault(thread, event.type != "thread_created")
        return [thread for thread, is_older in seen.items() if is_older]

    def learn(self, thread: str, row: Row) -> None:
        """Take a thread as it stood at ``position``."""
        self._threads[thread] = row

    def frames(self, events: Sequence[Event]) -> list[Frame]:
        """The frames of events that follow ``position``, whose threads are known.

        Between them only such events may be missing as neither make a frame nor change one (see ``types_of``).
        """
        made: list[Frame] = []
        for at, event in enumerate(events, 1):
            row = self._fold(event) if event.type in FOLDED else None
            if event.type == "message_sent":
                made.append(_message(event))
            elif (maker := MAKERS.get(event.type)) is not None:
                following = events[at] if at < len(events) else None
                said = maker.make(event, Context(row, following, bool(self.is_paused)))
                made += () if said is None else (_framed(maker.event, event, said),)
        self.position = events[-1].position if events else self.position
        while len(self._threads) > THREADS_KEPT:
            self._threads.popitem(last=False)
        return made

    def _fold(self, event: Event) -> Row | None:
        if event.type in PAUSES:
            self.is_paused = PAUSES[event.type]
        thread = event.thread
        if thread is None:
            return None
        row = threads.apply(thread, self._threads.get(thread), event)
        if row is not None:
            self._threads[thread] = row
            self._threads.move_to_end(thread)
        return row


class Context(NamedTuple):
    """What a frame may show besides its event: the thread after it, the event after it, whether all is paused."""

    thread: Row | None
    following: Event | None
    is_paused: bool


PAUSES: Final[Mapping[str, bool]] = {"organism_paused": True, "organism_resumed": False}

FOLDED: Final = THREAD | {"message_sent", *PAUSES}
"""The events that change what a frame says of a thread; any other only moves its position, which no frame shows."""


class Maker(NamedTuple):
    """A line of the frame table: the frame's event, and the function that makes its fields."""

    event: str
    make: Callable[[Event, Context], Said | None]


def _framed(name: str, event: Event, said: Said) -> Frame:
    payload = encode(name, {"position": event.position, **said.fields})
    return Frame(event.position, name, event.thread, said.agents, frame(payload))


def encode(event: str, fields: Mapping[str, Any]) -> bytes:
    """A frame's JSON; values that are ``bytes`` are finished JSON."""
    parts = [b'{"event":"', event.encode(), b'"']
    for name, value in fields.items():
        parts += (b',"', name.encode(), b'":', value if isinstance(value, bytes) else orjson.dumps(value))
    parts.append(b"}")
    return b"".join(parts)


def public(row: Row) -> Row:
    """The row without the fold's own fields."""
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _message(event: Event) -> Frame:
    """The frame of a message: the most frequent one, so it has a path of its own."""
    content = event.content
    payload = None if content is None or content.erased else content.json
    message = with_payload(orjson.dumps(messages.head(event)), payload)
    wire = frame(b'{"event":"message","position":%d,"message":%b}' % (event.position, message))
    agents = frozenset((event.data["from"], event.data["to"]))
    return Frame(event.position, "message", event.thread, agents, wire)


def _thread_created(event: Event, context: Context) -> Said | None:
    """The thread's first message is in the same unit: it says who takes part."""
    if context.thread is None:
        return None
    thread = public(context.thread)
    first = context.following
    if first is not None and first.type == "message_sent" and first.thread == event.thread:
        thread["participants"] = [first.data["from"], first.data["to"]]
    return Said({"thread": thread}, frozenset(thread["participants"]))


def _thread_updated(event: Event, context: Context) -> Said | None:
    row = context.thread
    if row is None:
        return None
    fields = {
        "thread_id": event.thread,
        "status": row["status"],
        "message_count": row["message_count"],
        "paused": row["paused"],
        "error": row["error"],
        "last_activity": row["last_activity"],
    }
    return Said(fields, frozenset(row["participants"]))


def _error(event: Event, _context: Context) -> Said:
    data = event.data
    fields = {
        "thread_id": event.thread,
        "agent": data["agent"],
        "error": data["error"],
        "timestamp": iso(event.at),
        "message_id": data["message"],
        "attempt": data["attempt"],
        "next_at": iso(data["next_at"]) if "next_at" in data else None,
    }
    return Said(fields, frozenset((data["agent"],)))


def _dead_letter(event: Event, _context: Context) -> Said | None:
    row = dead_letters.apply("", None, event)
    if row is None:
        return None
    fields = {"thread_id": event.thread, "agent": row["agent"], "status": "open", "dead_letter": public(row)}
    return Said(fields, frozenset((row["agent"],)))


def _dead_letter_closed(event: Event, _context: Context) -> Said:
    replayed = event.type == "message_replayed"
    closed = {"id": event.data["dead"] if replayed else event.data["message"]}
    status = "replayed" if replayed else "discarded"
    return Said({"thread_id": event.thread, "status": status, "dead_letter": closed})


def _approval(event: Event, _context: Context) -> Said | None:
    row = approvals.apply("", None, event)
    if row is None:
        return None
    content = event.content
    preview = ERASED if content is None or content.erased else content.json
    shown = splice(orjson.dumps(public(row)), {"preview": preview})
    return Said({"thread_id": event.thread, "agent": row["agent"], "approval": shown}, frozenset((row["agent"],)))


def _approval_closed(event: Event, _context: Context) -> Said:
    closed = approvals.apply("", {"status": "pending"}, event)
    status = closed and closed["status"]
    return Said({"thread_id": event.thread, "approval": {"id": event.data["approval"], "status": status}})


def _unknown_effect(event: Event, _context: Context) -> Said | None:
    """A frame only for a step that was found begun and not ended."""
    return _question(event, "open") if "unknown" in event.data else None


def _effect_resolved(event: Event, _context: Context) -> Said:
    return _question(event, event.data["outcome"])


def _question(event: Event, status: str) -> Said:
    message, step, agent = (event.data[name] for name in ("message", "step", "agent"))
    question = {"id": f"{message}:{step}", "message_id": message, "step": step, "status": status}
    return Said({"thread_id": event.thread, "agent": agent, "indeterminate": question}, frozenset((agent,)))


def _organism_state(event: Event, context: Context) -> Said:
    if event.type == "organism_stopped":
        return Said({"status": "stopping"})
    return Said({"status": "paused" if context.is_paused else "running"})


def _run(event: Event, _context: Context) -> Said:
    data = event.data
    return _entry(event.thread or "", data["message"], data["agent"], kind_of(event), data_of(event))


def _entry(thread: str, message: str, agent: str, kind: str, data: bytes) -> Said:
    fields = {"thread_id": thread, "message_id": message, "agent": agent, "type": kind, "data": data}
    return Said(fields, frozenset((agent,)))


def frame_of(delta: Delta) -> Frame:
    """The frame of a piece of text that is not in the log yet."""
    entry = delta.entry
    said = _entry(delta.thread, delta.message, delta.agent, entry["type"], orjson.dumps(entry["data"]))
    return Frame(0, "run", delta.thread, said.agents, frame(encode("run", said.fields)))


def _reload(event: Event, _context: Context) -> Said:
    data = event.data
    return Said({"added": data["added"], "removed": data["removed"], "updated": data["updated"]})


def _usage(event: Event, _context: Context) -> Said:
    """A call of a model is over; ``error`` says why it gave no answer."""
    data = event.data
    shown = ("step", "model", "input_tokens", "output_tokens", "cost_usd", "cost_source", "attempts")
    error = data.get("error")
    fields = {
        "thread_id": event.thread,
        "agent": data["agent"],
        "message_id": data["message"],
        **{name: data[name] for name in shown},
        "served_by": data["provider"],
        "error": None if error is None else error["code"],
    }
    return Said(fields, frozenset((data["agent"],)))


MAKERS: Final[Mapping[str, Maker]] = {
    "thread_created": Maker("thread_created", _thread_created),
    "thread_reopened": Maker("thread_updated", _thread_updated),
    "thread_completed": Maker("thread_updated", _thread_updated),
    "thread_failed": Maker("thread_updated", _thread_updated),
    "thread_killed": Maker("thread_updated", _thread_updated),
    "thread_paused": Maker("thread_updated", _thread_updated),
    "thread_resumed": Maker("thread_updated", _thread_updated),
    "message_retried": Maker("error", _error),
    "message_failed": Maker("error", _error),
    "message_dead": Maker("dead_letter", _dead_letter),
    "message_refused": Maker("dead_letter", _dead_letter),
    "message_replayed": Maker("dead_letter", _dead_letter_closed),
    "message_discarded": Maker("dead_letter", _dead_letter_closed),
    "approval_requested": Maker("approval", _approval),
    "approval_resolved": Maker("approval", _approval_closed),
    "approval_expired": Maker("approval", _approval_closed),
    "approval_cancelled": Maker("approval", _approval_closed),
    "step_started": Maker("indeterminate", _unknown_effect),
    "step_resolved": Maker("indeterminate", _effect_resolved),
    "organism_started": Maker("organism_state", _organism_state),
    "organism_stopped": Maker("organism_state", _organism_state),
    "organism_paused": Maker("organism_state", _organism_state),
    "organism_resumed": Maker("organism_state", _organism_state),
    "organism_reloaded": Maker("reload", _reload),
    "model_called": Maker("usage", _usage),
    **dict.fromkeys(sorted(RUN), Maker("run", _run)),
}
"""Which events make a frame, and how: the frame table. ``message_sent`` makes a ``message`` (see ``Folded.frames``)."""

FRAMES: Final = frozenset({"agent_state", "message", *(maker.event for maker in MAKERS.values())})
"""The names that a filter's ``events`` may list."""

NAMELESS: Final = frozenset(
    {"message_replayed", "message_discarded", "approval_resolved", "approval_expired", "approval_cancelled"}
)
"""The events of threads whose frames name no agent: a filter by agents lets each of them through."""


def types_of(wanted: frozenset[str] | None) -> tuple[str, ...]:
    """The types of all events that make frames of these names, or change what such a frame says; None: of all."""
    names = FRAMES if wanted is None else wanted
    types = {kind for kind, maker in MAKERS.items() if maker.event in names}
    if "message" in names:
        types.add("message_sent")
    if names & {"thread_created", "thread_updated"}:
        types |= FOLDED
    if "organism_state" in names:
        types |= PAUSES.keys()
    return tuple(sorted(types))
