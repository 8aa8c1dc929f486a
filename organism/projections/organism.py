"""The organism and its listeners: what each is, what it does now, what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import EVENT_TYPES, Event
from organism.model.ids import CONSOLE
from organism.model.times import iso

COUNTED: Final[Mapping[str, tuple[str, int]]] = {
    "message_sent": ("total_messages", 1),
    "thread_created": ("active_threads", 1),
    "thread_reopened": ("active_threads", 1),
    "thread_completed": ("active_threads", -1),
    "thread_failed": ("active_threads", -1),
    "thread_killed": ("active_threads", -1),
}
STATUS: Final[Mapping[str, str]] = {"organism_paused": "paused", "organism_resumed": "running"}


def fold(rows: dict[str, Row | None], events: Sequence[Event]) -> None:
    """The organism's one row after the events; there is none before its first start.

    ``position`` is that of the log's last event. ``status`` is ``running`` or ``paused``: that it is starting or
    stopping only the process itself knows. ``started_at`` is in µs, for the server to count ``uptime_seconds`` from.
    """
    row = rows["organism"]
    for event in events:
        kind = event.type
        if kind == "organism_started":
            before = row or {}  # counts and a pause outlive the process
            row = {
                "name": event.data["name"],
                "status": before.get("status", "running"),
                "agent_count": len(event.data["listeners"]),
                "active_threads": before.get("active_threads", 0),
                "total_messages": before.get("total_messages", 0),
                "version": event.data["version"],
                "position": event.position,
                "started_at": event.at,
            }
        elif row is None:
            continue
        elif kind in COUNTED:
            field, step = COUNTED[kind]
            if "ended" not in event.data:  # a killed thread that was active no more was counted already
                row[field] += step
        elif kind in STATUS:
            row["status"] = STATUS[kind]
        elif kind == "organism_reloaded":
            row["agent_count"] = len(event.data["listeners"])
    if row is not None:
        row["position"] = events[-1].position
    rows["organism"] = row


ORGANISM = ReadModel(name="organism", version=1, types=EVENT_TYPES, fold=fold, is_live=True)

# The listeners. Private fields of a row, all of messages that are not ended yet:
#
# * ``_running``: message → thread of each handling under way, in the order of their starts;
# * ``_waits``: of those, message → step → kind of the steps they wait in (an ``effect``: for an operator);
# * ``_parked``: the same for messages that wait for a start, since a restart takes up the open steps again;
# * ``_failed``: the last handling failed for good;
# * ``_gone``: a reload or a start took the listener away; its row stays until nothing of it is open.

WAITING_KINDS: Final = frozenset({"ask", "approve", "complete"})
"""The steps in which a handler runs no code of its own."""
LISTED: Final = ("description", "is_agent", "peers", "payload_class", "model", "version")


def _named(field: str) -> Keys:
    """The listener that this field names; the outside is none."""
    return lambda event: (name,) if (name := event.data[field]) != CONSOLE else ()


def _listeners(event: Event) -> Sequence[str]:
    """Every listener that there is from now on, and those that there were until now."""
    return (*(listener["name"] for listener in event.data["listeners"]), *event.data.get("removed", ()))


def apply(key: str, row: Row | None, event: Event) -> Row | None:
    """The listener after the event; None if it is not configured and nothing of it is open."""
    kind = event.type
    if kind in LISTING:
        return _listed(key, row, event)
    if row is None:
        return None
    FOLDS[kind](row, event)
    return _unless_gone(row) if "_gone" in row and kind not in OPENING else row


def _unless_gone(row: Row) -> Row | None:
    return row if row["queue_depth"] or row["_running"] else None


def _listed(key: str, row: Row | None, event: Event) -> Row | None:
    """With a start a new life begins: what ran when the last one ended waits for a start again."""
    if row is not None and event.type == "organism_started":
        row["queue_depth"] += len(row["_running"])
        row["_parked"].update(row["_waits"])
        row["_running"], row["_waits"] = {}, {}
    for ordinal, listener in enumerate(event.data["listeners"]):
        if listener["name"] == key:
            row = row or _new(key)
            row.update((field, listener[field]) for field in LISTED)
            row["_ordinal"] = ordinal
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


def _message_sent(row: Row, event: Event) -> None:
    """A reply that answers an ask goes to the handling that waits for it, so it never waits for a start."""
    row["message_count"] += 1
    if "answers" not in event.data:
        row["queue_depth"] += 1


def _message_started(row: Row, event: Event) -> None:
    message, running = event.data["message"], row["_running"]
    if message in running:
        del running[message]
    elif row["queue_depth"]:  # what was sent to a tool of the shelf, before a reload named it, was not counted
        row["queue_depth"] -= 1
    running[message] = row["current_thread"] = event.thread
    if row["_parked"] and message in row["_parked"]:
        row["_waits"][message] = row["_parked"].pop(message)
    row["state"] = "processing" if len(running) > len(row["_waits"]) else "waiting"
    row["last_activity"] = iso(event.at)


def _message_handled(row: Row, event: Event) -> None:
    """``answered`` ended no handling, and ``unread`` ran none: neither says how the last one went."""
    data, running = event.data, row["_running"]
    outcome = data["outcome"]
    if outcome == "answered":
        return
    _end(row, data["message"])
    if outcome != "unread":
        row["_failed"] = False
    row["last_activity"] = iso(event.at)
    if not running or row["current_thread"] == event.thread or row["_waits"]:
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


def _message_lost(row: Row, event: Event) -> None:
    """It died, or was dropped with its thread, which is no failure of the handler's."""
    _end(row, event.data["message"])
    if event.type == "message_dead":
        row["_failed"] = True
        row["last_activity"] = iso(event.at)
    _settle(row)


def _message_retried(row: Row, event: Event) -> None:
    """It waits for its next attempt, which asks again; only what became of an unsafe effect stays an open question."""
    message = event.data["message"]
    del row["_running"][message]
    row["queue_depth"] += 1
    open_steps = row["_waits"].pop(message, {})
    effects = {step: kind for step, kind in open_steps.items() if kind == "effect"}
    if effects:
        row["_parked"][message] = effects
    row["last_activity"] = iso(event.at)
    _settle(row)


def _step_started(row: Row, event: Event) -> None:
    """An effect is the handling's own work until it is found ``unknown``; then an operator is waited for."""
    data = event.data
    if data["kind"] in WAITING_KINDS or "unknown" in data:
        message = data["message"]
        steps = row["_waits"] if message in row["_running"] else row["_parked"]
        steps.setdefault(message, {})[str(data["step"])] = data["kind"]
    row["last_activity"] = iso(event.at)
    _settle(row)


def _step_ended(row: Row, event: Event) -> None:
    message, step = event.data["message"], str(event.data["step"])
    for steps in (row["_waits"], row["_parked"]):
        if message in steps:
            steps[message].pop(step, None)
            if not steps[message]:
                del steps[message]
    row["last_activity"] = iso(event.at)
    _settle(row)


def _paused_or_resumed(row: Row, event: Event) -> None:
    row["paused"] = event.type == "agent_paused"
    _settle(row)


LISTING: Final = ("organism_started", "organism_reloaded")
FOLDS: Final[Mapping[str, Callable[[Row, Event], None]]] = {
    "message_sent": _message_sent,
    "message_started": _message_started,
    "message_handled": _message_handled,
    "message_dropped": _message_lost,
    "message_dead": _message_lost,
    "message_retried": _message_retried,
    "step_started": _step_started,
    "step_recorded": _step_ended,
    "step_resolved": _step_ended,
    "agent_paused": _paused_or_resumed,
    "agent_resumed": _paused_or_resumed,
}

KEYS: Final[Mapping[str, Keys]] = {
    **dict.fromkeys(LISTING, _listeners),
    **dict.fromkeys(FOLDS, _named("agent")),
    "message_sent": _named("to"),
}
OPENING: Final = frozenset({"message_sent", "message_started"})
"""With these something of the listener is open, so its row stays."""

AGENTS = ReadModel(
    name="agents",
    version=1,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"ordinal": "INTEGER", "name": "TEXT", "state": "TEXT", "last_activity": "TEXT"},
    is_live=True,
)
