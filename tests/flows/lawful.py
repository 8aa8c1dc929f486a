"""What must hold of any log, however its life went: laws that are read off the events alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from organism.model.events import Event

ENDS = frozenset({"message_handled", "message_dead", "message_dropped"})
WAITS = frozenset({"ask", "approve"})


def check(events: list[Event]) -> None:
    """Every law, of a log in which nothing is open."""
    check_open(events)
    every_message_ends_once(events)


def check_open(events: list[Event]) -> None:
    """The laws that hold at any moment."""
    positions_are_dense(events)
    nothing_starts_in_a_pause(events)
    a_killed_thread_is_silent(events)
    lines_run_one_at_a_time_and_in_order(events)


def positions_are_dense(events: list[Event]) -> None:
    """L1."""
    assert [event.position for event in events] == list(range(1, len(events) + 1))


def every_message_ends_once(events: list[Event]) -> None:
    """G2, G8: nothing is lost, nothing is done twice."""
    sent = Counter(event.data["message"] for event in events if event.type == "message_sent")
    ended = Counter(event.data["message"] for event in events if event.type in ENDS)
    assert not [message for message, count in sent.items() if count != 1]
    assert ended == sent


def nothing_starts_in_a_pause(events: list[Event]) -> None:
    """A pause is provable by the log."""
    paused: set[str] = set()
    for event in events:
        kind, _, what = event.type.partition("_")
        name = {"agent": event.data.get("agent", ""), "thread": event.thread or "", "organism": "organism"}.get(
            kind, ""
        )
        if what == "paused":
            paused.add(f"{kind} {name}")
        elif what in {"resumed", "killed"}:
            paused.discard(f"{kind} {name}")
        elif event.type == "message_started":
            owners = {f"agent {event.data['agent']}", f"thread {event.thread}", "organism organism"}
            assert not owners & paused, (event, owners & paused)


def a_killed_thread_is_silent(events: list[Event]) -> None:
    """Nothing comes after ``thread_killed``."""
    killed: set[str] = set()
    for event in events:
        assert event.thread not in killed, event
        if event.type == "thread_killed" and event.thread is not None:
            killed.add(event.thread)


def lines_run_one_at_a_time_and_in_order(events: Iterable[Event]) -> None:
    """G4: for each (agent, thread), by position; a handler that waits in a step leaves the line open."""
    running: dict[tuple[str, str], str] = {}
    waiting: dict[str, set[int]] = defaultdict(set)
    sent_at: dict[str, int] = {}
    last_first_start: dict[tuple[str, str], int] = {}
    for event in events:
        data = event.data
        line = (data.get("agent", ""), event.thread or "")
        if event.type == "organism_started":
            running.clear()
        elif event.type == "message_sent":
            sent_at[data["message"]] = event.position
        elif event.type == "message_started":
            assert line not in running, event
            if not waiting[data["message"]]:  # started anew, it may come to an ask that is still open, and wait there
                running[line] = data["message"]
            if data["attempt"] == 1:
                assert sent_at[data["message"]] > last_first_start.get(line, 0), event
                last_first_start[line] = sent_at[data["message"]]
        elif event.type == "step_started" and data["kind"] in WAITS:
            waiting[data["message"]].add(data["step"])
            _leave(running, line, data["message"])
        elif event.type == "step_recorded" and data["step"] in waiting[data["message"]]:
            waiting[data["message"]].discard(data["step"])
        elif event.type in ENDS or event.type == "message_retried":
            _leave(running, line, data["message"])


def _leave(running: dict[tuple[str, str], str], line: tuple[str, str], message: str) -> None:
    if running.get(line) == message:
        del running[line]
