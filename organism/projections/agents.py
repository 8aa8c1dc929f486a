"""The listeners: what each is, what it does now, what waits for it.

Private fields of a row, all of messages that are not ended yet:

* ``_running``: message → thread of each handling under way, in the order of their starts;
* ``_waits``: of those, message → step → kind of the steps they wait in (an ``effect``: for an operator);
* ``_parked``: the same for messages that wait for a start, since a restart takes up the open steps again;
* ``_failed``: the last handling failed for good;
* ``_gone``: a reload or a start took the listener away; its row stays until nothing of it is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event
from organism.model.ids import CONSOLE
from organism.model.times import iso

WAITING_KINDS: Final = frozenset({"ask", "approve", "complete"})
"""The steps in which a handler runs no code of its own."""
_NOBODY: Final = ()


def receiver(event: Event) -> Sequence[str]:
    """Whom a message was sent to, unless it is the outside."""
    name = event.data["to"]
    return (name,) if name != CONSOLE else _NOBODY


def handling_agent(event: Event) -> Sequence[str]:
    """Whose handling it is, unless the outside took the message."""
    name = event.data["agent"]
    return (name,) if name != CONSOLE else _NOBODY


def listeners(event: Event) -> Sequence[str]:
    """Every listener that there is from now on, and those that there were until now."""
    return (*(listener["name"] for listener in event.data["listeners"]), *event.data.get("removed", ()))


def apply(key: str, row: Row | None, event: Event) -> Row | None:
    """The listener after the event; None if it is not configured and nothing of it is open."""
    kind = event.type
    if row is None:
        return ENROL[kind](key, None, event) if kind in ENROL else None
    if kind in ENROL:
        return ENROL[kind](key, row, event)
    FOLDS[kind](row, event)
    return _unless_gone(row) if "_gone" in row and kind not in OPENING else row


def _unless_gone(row: Row) -> Row | None:
    return row if row["queue_depth"] or row["_running"] else None


def _started(key: str, row: Row | None, event: Event) -> Row | None:
    """A new life: what ran when the last one ended waits for a start again."""
    if row is not None:
        row["queue_depth"] += len(row["_running"])
        row["_parked"].update(row["_waits"])
        row["_running"], row["_waits"] = {}, {}
    return _reloaded(key, row, event)


def _reloaded(key: str, row: Row | None, event: Event) -> Row | None:
    for ordinal, listener in enumerate(event.data["listeners"]):
        if listener["name"] == key:
            return _enrolled(row or _new(key), listener, ordinal)
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


def _enrolled(row: Row, listener: dict[str, Any], ordinal: int) -> Row:
    for field in ("description", "is_agent", "peers", "payload_class", "model", "version"):
        row[field] = listener[field]
    row["_ordinal"] = ordinal
    row.pop("_gone", None)
    _settle(row)
    return row


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


def _message_dropped(row: Row, event: Event) -> None:
    _end(row, event.data["message"])
    _settle(row)


def _message_dead(row: Row, event: Event) -> None:
    _end(row, event.data["message"])
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


def _paused(row: Row, _event: Event) -> None:
    row["paused"] = True
    _settle(row)


def _resumed(row: Row, _event: Event) -> None:
    row["paused"] = False
    _settle(row)


ENROL: Final[Mapping[str, Callable[[str, Row | None, Event], Row | None]]] = {
    "organism_started": _started,
    "organism_reloaded": _reloaded,
}
FOLDS: Final[Mapping[str, Callable[[Row, Event], None]]] = {
    "message_sent": _message_sent,
    "message_started": _message_started,
    "message_handled": _message_handled,
    "message_dropped": _message_dropped,
    "message_dead": _message_dead,
    "message_retried": _message_retried,
    "step_started": _step_started,
    "step_recorded": _step_ended,
    "step_resolved": _step_ended,
    "agent_paused": _paused,
    "agent_resumed": _resumed,
}

KEYS: Final[Mapping[str, Keys]] = {
    **dict.fromkeys(ENROL, listeners),
    **dict.fromkeys(FOLDS, handling_agent),
    "message_sent": receiver,
}
OPENING: Final = frozenset({"message_sent", "message_started"})
"""With these something of the listener is open, so its row stays."""

MODEL = ReadModel(
    name="agents",
    version=1,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"ordinal": "INTEGER", "name": "TEXT", "state": "TEXT", "last_activity": "TEXT"},
    is_live=True,
)
