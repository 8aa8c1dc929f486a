"""What is due when: folded from the log alone, so that another process finds it again."""

from __future__ import annotations

from itertools import count
from typing import Any

from organism.events.record import Record
from organism.events.vocabulary import (
    AgentPaused,
    AgentResumed,
    Event,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    StepRecorded,
    StepStarted,
    ThreadCreated,
)
from organism.pump.recover import dump, load
from organism.pump.state import DUE_KEPT, Due, FoldedState, Retry, StepDue

THREAD = "thr-1"


class Events:
    """A state and the events that make it, each at its time."""

    def __init__(self) -> None:
        self.folded = FoldedState()
        self._positions = count(1)
        self.take(0, ThreadCreated())

    def take(self, at: int, event: Event) -> None:
        """One more event."""
        record: Record[Any] = Record(event, None, THREAD, at, None, None, None, next(self._positions))
        self.folded.apply(record)

    def started(self, message: str) -> None:
        """A message whose handler runs."""
        self.take(0, MessageSent(message, "console", "ada", "Ask", depth=1, token=""))
        self.take(0, MessageStarted(message, "ada", attempt=1, deadline=0, version=""))

    def asks(self, message: str, step: int, expires: int) -> None:
        """Its handler asks somebody."""
        self.take(0, StepStarted(message, "ada", step, "ask", "digest", expires=expires))

    def due(self, now: int) -> list[Due]:
        """All that is due by now, in its order; it is due once."""
        return list(iter(lambda: self.folded.next_due(now), None))


def test_what_is_due_comes_once_in_the_order_of_its_times() -> None:
    events = Events()
    for message, expires in (("msg-1", 300), ("msg-2", 100)):
        events.started(message)
        events.asks(message, 1, expires)
    events.started("msg-3")
    events.take(0, MessageRetried("msg-3", "ada", 1, "ValueError", next_at=200))
    assert events.due(99) == []
    assert events.due(250) == [StepDue(100, "msg-2", 1), Retry(200, "msg-3")]
    assert events.due(1000) == [StepDue(300, "msg-1", 1)]
    assert events.due(1000) == []


def test_what_was_answered_started_again_or_ended_is_not_due() -> None:
    events = Events()
    for message in ("msg-1", "msg-2", "msg-3"):
        events.started(message)
        events.asks(message, 1, 100)
    events.take(0, StepRecorded("msg-1", "ada", 1, "ask", "digest"))
    events.take(0, MessageHandled("msg-2", "ada", "done", duration=0))
    events.take(0, MessageRetried("msg-3", "ada", 1, "ValueError", next_at=100))
    events.take(0, MessageStarted("msg-3", "ada", attempt=2, deadline=0, version=""))
    assert events.due(1000) == []


def test_a_pause_moves_the_end_of_an_ask_on_by_its_length() -> None:
    events = Events()
    events.started("msg-1")
    events.asks("msg-1", 1, 100)
    events.take(50, AgentPaused("ada", "operator"))
    assert events.due(1000) == []
    events.take(1050, AgentResumed("ada", "operator"))
    assert events.due(1099) == []
    assert events.due(1100) == [StepDue(1100, "msg-1", 1)]


def test_a_snapshot_gives_again_all_that_is_due() -> None:
    events = Events()
    events.started("msg-1")
    events.asks("msg-1", 1, 200)
    events.started("msg-2")
    events.take(0, MessageRetried("msg-2", "ada", 1, "ValueError", next_at=100))
    events.folded = load(dump(events.folded))
    assert events.due(1000) == [Retry(100, "msg-2"), StepDue(200, "msg-1", 1)]


def test_what_is_due_at_the_same_time_comes_message_by_message() -> None:
    events = Events()
    for message in ("msg-3", "msg-1", "msg-2"):
        events.started(message)
    events.asks("msg-3", 1, 100)
    events.asks("msg-1", 1, 100)
    events.take(0, MessageRetried("msg-2", "ada", 1, "ValueError", next_at=100))
    assert events.due(100) == [StepDue(100, "msg-1", 1), Retry(100, "msg-2"), StepDue(100, "msg-3", 1)]


def test_what_is_over_is_dropped_when_there_is_much_of_it() -> None:
    events = Events()
    events.started("msg-1")
    for step in range(1, 10 * DUE_KEPT):
        events.asks("msg-1", step, 100)
        events.take(0, StepRecorded("msg-1", "ada", step, "ask", "digest"))
    events.asks("msg-1", 0, 100)
    assert len(events.folded.due) <= DUE_KEPT
    assert events.due(100) == [StepDue(100, "msg-1", 0)]
