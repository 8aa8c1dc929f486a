"""What must hold of any log, however its life went: laws that are read off the records alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Final

from organism.events.record import ORGANISM_STREAM, Record
from organism.events.vocabulary import (
    AgentPaused,
    AgentResumed,
    MessageDead,
    MessageDropped,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    OrganismResumed,
    OrganismStarted,
    SessionDeleted,
    StepRecorded,
    StepStarted,
    ThreadCompleted,
    ThreadFailed,
    ThreadKilled,
    ThreadPaused,
    ThreadResumed,
    TurnAppended,
    TurnEnded,
    TurnStarted,
)
from organism.model.ids import session_of, turn_number

ENDS: Final = (MessageHandled, MessageDropped, MessageDead)
"""The ends of a message."""
WAITS = frozenset({"ask", "approve"})


def check(records: list[Record[Any]]) -> None:
    """Every law, of a log in which nothing is open."""
    check_open(records)
    every_message_ends_once(records)


def check_open(records: list[Record[Any]]) -> None:
    """The laws that hold at any moment."""
    positions_are_dense(records)
    nothing_starts_in_a_pause(records)
    a_killed_thread_is_silent(records)
    lines_run_one_at_a_time_and_in_order(records)
    turns_run_one_at_a_time_and_in_order(records)


def positions_are_dense(records: list[Record[Any]]) -> None:
    """L1."""
    assert [record.position for record in records] == list(range(1, len(records) + 1))


def every_message_ends_once(records: list[Record[Any]]) -> None:
    """G2, G8: nothing is lost, nothing is done twice."""
    sent = Counter(record.event.message for record in records if isinstance(record.event, MessageSent))
    ended = Counter(record.event.message for record in records if isinstance(record.event, ENDS))
    assert not [message for message, count in sent.items() if count != 1]
    assert ended == sent


def nothing_starts_in_a_pause(records: list[Record[Any]]) -> None:
    """A pause is provable by the log."""
    paused: set[str] = set()
    for record in records:
        event = record.event
        what = f"agent {event.agent}" if isinstance(event, AgentPaused | AgentResumed) else record.stream
        if isinstance(event, OrganismPaused | AgentPaused | ThreadPaused):
            paused.add(what)
        elif isinstance(event, OrganismResumed | AgentResumed | ThreadResumed | ThreadKilled):
            paused.discard(what)
        elif isinstance(event, MessageStarted):
            assert not paused & {f"agent {event.agent}", record.stream, ORGANISM_STREAM}, (record.position, paused)


def a_killed_thread_is_silent(records: list[Record[Any]]) -> None:
    """Nothing comes after ``thread_killed``."""
    killed: set[str | None] = set()
    for record in records:
        assert record.thread not in killed, (record.position, record.type)
        if isinstance(record.event, ThreadKilled):
            killed.add(record.thread)


def lines_run_one_at_a_time_and_in_order(records: list[Record[Any]]) -> None:
    """G4: for each (agent, thread), by position; a handler that waits in a step leaves the line open."""
    running: dict[tuple[str, str], str] = {}
    waiting: dict[str, set[int]] = defaultdict(set)
    sent_at: dict[str, int] = {}
    last_first_start: dict[tuple[str, str], int] = {}
    for record in records:
        event = record.event
        if isinstance(event, OrganismStarted):
            running.clear()
        elif isinstance(event, MessageSent):
            sent_at[event.message] = record.position
        elif isinstance(event, MessageStarted):
            line = (event.agent, record.stream)
            assert line not in running, record.position
            if not waiting[event.message]:  # started again, it may come to an ask that is still open, and wait there
                running[line] = event.message
            if event.attempt == 1:
                assert sent_at[event.message] > last_first_start.get(line, 0), record.position
                last_first_start[line] = sent_at[event.message]
        elif isinstance(event, StepRecorded):
            waiting[event.message].discard(event.step)
        elif isinstance(event, StepStarted) and event.kind in WAITS:
            waiting[event.message].add(event.step)
            _leave(running, (event.agent, record.stream), event.message)
        elif isinstance(event, (*ENDS, MessageRetried)):
            _leave(running, (event.agent, record.stream), event.message)


def turns_run_one_at_a_time_and_in_order(records: list[Record[Any]]) -> None:
    """A session's turns begin in their order, each after the end of those before, and end with their thread."""
    open_turns: dict[str, list[str]] = defaultdict(list)
    ended: dict[str, int] = {}
    for record in records:
        event, session = record.event, record.stream
        if isinstance(event, TurnStarted):
            open_turns[session].append(event.turn)
        elif isinstance(event, TurnAppended):
            assert event.turn == open_turns[session][0], record.position
        elif isinstance(event, TurnEnded):
            open_turns[session].remove(event.turn)
            assert ended.pop(event.turn) == record.at, record.position
        elif isinstance(event, SessionDeleted):
            assert not open_turns[session], record.position
        elif (of := session_of(session)) is not None and turn_number(session):
            if isinstance(event, MessageStarted):
                assert open_turns[of][0] == session, record.position
            elif isinstance(event, ThreadCompleted | ThreadFailed) or (
                isinstance(event, ThreadKilled) and not event.ended
            ):
                ended[session] = record.at
    assert not ended


def _leave(running: dict[tuple[str, str], str], line: tuple[str, str], message: str) -> None:
    if running.get(line) == message:
        del running[line]
