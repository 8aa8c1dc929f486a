"""The organism and its listeners: what each is, what it does now, what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from organism.events.record import Record
from organism.events.vocabulary import (
    EVENTS,
    AgentPaused,
    AgentResumed,
    Event,
    MessageDead,
    MessageDropped,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    OrganismReloaded,
    OrganismResumed,
    OrganismStarted,
    StepRecorded,
    StepResolved,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadKilled,
    ThreadReopened,
)
from organism.model.ids import CONSOLE
from organism.model.thread import WAITS
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each

COUNTED: Final[Mapping[type[Event], tuple[str, int]]] = {
    MessageSent: ("total_messages", 1),
    ThreadCreated: ("active_threads", 1),
    ThreadReopened: ("active_threads", 1),
    ThreadCompleted: ("active_threads", -1),
    ThreadFailed: ("active_threads", -1),
    ThreadKilled: ("active_threads", -1),
}
STATUS: Final[Mapping[type[Event], str]] = {OrganismPaused: "paused", OrganismResumed: "running"}


def fold(rows: dict[str, Row | None], records: Sequence[Record[Event]]) -> None:
    """The organism's one row after the events; there is none before its first start.

    ``position`` is that of the log's last event. ``status`` is ``running`` or ``paused``: that it is starting or
    stopping only the process itself knows. ``started_at`` is in µs, for the server to count ``uptime_seconds`` from.
    """
    row = rows["organism"]
    for record in records:
        event = record.event
        kind = type(event)
        if isinstance(event, OrganismStarted):
            before = row or {}  # counts and a pause outlive the process
            row = {
                "name": event.name,
                "status": before.get("status", "running"),
                "agent_count": len(event.listeners),
                "active_threads": before.get("active_threads", 0),
                "total_messages": before.get("total_messages", 0),
                "version": event.version,
                "position": record.position,
                "started_at": record.at,
            }
        elif row is None:
            continue
        elif kind in COUNTED:
            field, step = COUNTED[kind]
            if not (isinstance(event, ThreadKilled) and event.ended):  # a thread that had ended was counted then
                row[field] += step
        elif kind in STATUS:
            row["status"] = STATUS[kind]
        elif isinstance(event, OrganismReloaded):
            row["agent_count"] = len(event.listeners)
    if row is not None:
        row["position"] = records[-1].position
    rows["organism"] = row


ORGANISM: ReadModel[Row] = ReadModel(
    name="organism", version=1, types=frozenset(EVENTS.values()), fold=fold, is_live=True
)

# The listeners. Private fields of a row, all of messages that are not ended yet:
#
# * ``_running``: message → thread of each handling under way, in the order of their starts;
# * ``_waits``: of those, message → step → kind of the steps they wait in (an ``effect``: for an operator);
# * ``_parked``: the same for messages that wait for a start, since a restart takes up the open steps again;
# * ``_failed``: the last handling failed for good;
# * ``_gone``: a reload or a start took the listener away; its row stays until nothing of it is open.


def _agent(record: Record[Any]) -> Sequence[str]:
    """The listener that it is about; the outside is none."""
    return (record.event.agent,) if record.event.agent != CONSOLE else ()


def _receiver(record: Record[MessageSent]) -> Sequence[str]:
    return (record.event.to,) if record.event.to != CONSOLE else ()


def _listeners(record: Record[OrganismStarted | OrganismReloaded]) -> Sequence[str]:
    """Every listener that there is from now on, and those that there were until now."""
    return (*(listener.name for listener in record.event.listeners), *record.event.removed)


def apply(key: str, row: Row | None, record: Record[Any]) -> Row | None:
    """The listener after the event; None if it is not configured and nothing of it is open."""
    kind = type(record.event)
    if kind in LISTING:
        return _listed(key, row, record)
    if row is None:
        return None
    FOLDS[kind](row, record)
    return _unless_gone(row) if "_gone" in row and kind not in OPENING else row


def _unless_gone(row: Row) -> Row | None:
    return row if row["queue_depth"] or row["_running"] else None


def _listed(key: str, row: Row | None, record: Record[OrganismStarted | OrganismReloaded]) -> Row | None:
    """With a start a new life begins: what ran when the last one ended waits for a start again."""
    if row is not None and isinstance(record.event, OrganismStarted):
        row["queue_depth"] += len(row["_running"])
        row["_parked"].update(row["_waits"])
        row["_running"], row["_waits"] = {}, {}
    for ordinal, listener in enumerate(record.event.listeners):
        if listener.name == key:
            row = row or _new(key)
            row.update(asdict(listener), peers=list(listener.peers), _ordinal=ordinal)
            row.pop("_gone", None)
            _settle(row)
            return row
    if row is None:
        return None
    row["_gone"] = True
    _settle(row)
    return _unless_gone(row)


def _new(key: str) -> Row:
    return {
        "name": key,
        "description": "",
        "is_agent": False,
        "peers": [],
        "payload_class": "",
        "state": "idle",
        "current_thread": None,
        "queue_depth": 0,
        "last_activity": None,
        "paused": False,
        "message_count": 0,
        "model": None,
        "version": None,
        "_ordinal": 0,
        "_running": {},
        "_waits": {},
        "_parked": {},
        "_failed": False,
    }


def _settle(row: Row) -> None:
    """What follows from the rest: ``state`` and ``current_thread`` (that of the latest start still open)."""
    running = row["_running"]
    if running:
        row["current_thread"] = running[next(reversed(running))]
        row["state"] = "processing" if len(running) > len(row["_waits"]) else "waiting"
    else:
        row["current_thread"] = None
        row["state"] = "paused" if row["paused"] else "error" if row["_failed"] else "idle"


def _message_sent(row: Row, record: Record[MessageSent]) -> None:
    """A reply that answers an ask goes to the handling that waits for it, so it never waits for a start."""
    row["message_count"] += 1
    if record.event.answers is None:
        row["queue_depth"] += 1


def _message_started(row: Row, record: Record[MessageStarted]) -> None:
    message, running = record.event.message, row["_running"]
    if message in running:
        del running[message]
    elif row["queue_depth"]:  # what was sent to an unlisted tool, before a reload named it, was not counted
        row["queue_depth"] -= 1
    running[message] = row["current_thread"] = record.thread
    if row["_parked"] and message in row["_parked"]:
        row["_waits"][message] = row["_parked"].pop(message)
    row["state"] = "processing" if len(running) > len(row["_waits"]) else "waiting"
    row["last_activity"] = iso(record.at)


def _message_handled(row: Row, record: Record[MessageHandled]) -> None:
    """``answered`` ended no handling, and ``unread`` ran none: neither says how the last one went."""
    outcome = record.event.outcome
    if outcome == "answered":
        return
    _end(row, record.event.message)
    if outcome != "unread":
        row["_failed"] = False
    row["last_activity"] = iso(record.at)
    if not row["_running"] or row["current_thread"] == record.thread or row["_waits"]:
        _settle(row)


def _end(row: Row, message: str) -> None:
    running = row["_running"]
    if message in running:
        del running[message]
    elif row["queue_depth"]:
        row["queue_depth"] -= 1
    if row["_waits"]:
        row["_waits"].pop(message, None)
    if row["_parked"]:
        row["_parked"].pop(message, None)


def _message_lost(row: Row, record: Record[MessageDropped | MessageDead]) -> None:
    """It died, or was dropped with its thread, which is no failure of the handler's."""
    _end(row, record.event.message)
    if isinstance(record.event, MessageDead):
        row["_failed"] = True
        row["last_activity"] = iso(record.at)
    _settle(row)


def _message_retried(row: Row, record: Record[MessageRetried]) -> None:
    """It waits for its next attempt, which asks again; only what became of an unsafe effect stays an open question."""
    message = record.event.message
    del row["_running"][message]
    row["queue_depth"] += 1
    open_steps = row["_waits"].pop(message, {})
    effects = {step: kind for step, kind in open_steps.items() if kind == "effect"}
    if effects:
        row["_parked"][message] = effects
    row["last_activity"] = iso(record.at)
    _settle(row)


def _step_started(row: Row, record: Record[StepStarted]) -> None:
    """An effect is the handling's own work until it is found ``unknown``; then an operator is waited for."""
    event = record.event
    if event.kind in WAITS or event.unknown:
        steps = row["_waits"] if event.message in row["_running"] else row["_parked"]
        steps.setdefault(event.message, {})[str(event.step)] = event.kind
    row["last_activity"] = iso(record.at)
    _settle(row)


def _step_ended(row: Row, record: Record[StepRecorded | StepResolved]) -> None:
    message, step = record.event.message, str(record.event.step)
    for steps in (row["_waits"], row["_parked"]):
        if message in steps:
            steps[message].pop(step, None)
            if not steps[message]:
                del steps[message]
    row["last_activity"] = iso(record.at)
    _settle(row)


def _paused_or_resumed(row: Row, record: Record[AgentPaused | AgentResumed]) -> None:
    row["paused"] = isinstance(record.event, AgentPaused)
    _settle(row)


LISTING: Final = (OrganismStarted, OrganismReloaded)
FOLDS: Final[Mapping[type[Event], Callable[[Row, Record[Any]], None]]] = {
    MessageSent: _message_sent,
    MessageStarted: _message_started,
    MessageHandled: _message_handled,
    MessageDropped: _message_lost,
    MessageDead: _message_lost,
    MessageRetried: _message_retried,
    StepStarted: _step_started,
    StepRecorded: _step_ended,
    StepResolved: _step_ended,
    AgentPaused: _paused_or_resumed,
    AgentResumed: _paused_or_resumed,
}

KEYS: Final[Mapping[type[Event], Keys]] = {
    **dict.fromkeys(LISTING, _listeners),
    **dict.fromkeys(FOLDS, _agent),
    MessageSent: _receiver,
}
OPENING: Final = frozenset({MessageSent, MessageStarted})
"""With these something of the listener is open, so its row stays."""

AGENTS: ReadModel[Row] = ReadModel(
    name="agents",
    version=1,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"ordinal": "INTEGER", "name": "TEXT", "state": "TEXT", "last_activity": "TEXT"},
    is_live=True,
)
