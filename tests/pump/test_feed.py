"""The feed during a read of the log: each piece comes in order, once, and without a gap before it."""

from __future__ import annotations

from typing import TypeVar

from organism.events.record import Record
from organism.events.vocabulary import RunDone, RunEvent, RunMessageDelta, RunMessageEnd, RunMessageStart
from organism.pump.run.feed import Delta, Feed, LiveText

E = TypeVar("E", bound=RunEvent)


def read(event: E, position: int) -> Record[E]:
    """An event of a run, as it was read."""
    return Record(event, thread="t", position=position)


def start(position: int) -> Record[RunMessageStart]:
    """A message begins."""
    return read(RunMessageStart("msg-1", "a", "m1"), position)


def delta(position: int, offset: int, length: int, block: str = "m1") -> Record[RunMessageDelta]:
    """A piece of a message."""
    return read(RunMessageDelta("msg-1", "a", block, offset=offset, length=length), position)


def piece(text: str, offset: int, start: int = 5, block: str = "m1") -> Delta:
    """A piece that was published."""
    return Delta("t", "msg-1", "a", "message", block, start, offset, text)


def reading(position: int = 4) -> LiveText:
    """A reading of the log that has come so far."""
    return LiveText(position)


def test_a_piece_waits_until_its_blocks_start_was_read() -> None:
    live = reading()
    assert live.take(piece("ab", 0)) is None
    assert live.take(piece("c", 2)) is None
    assert live.read(start(5)) == [piece("ab", 0), piece("c", 2)]
    assert live.take(piece("d", 3)) == piece("d", 3)


def test_a_piece_of_a_block_that_began_before_is_heard_at_once() -> None:
    live = reading(9)
    assert live.take(piece("abc", 7)) == piece("abc", 7)
    assert live.unread() == [piece("abc", 7)]


def test_what_is_read_is_not_unread_any_more() -> None:
    live = reading()
    live.read(start(5))
    live.take(piece("abcdef", 0))
    live.read(delta(6, 0, 4))
    assert live.unread() == [piece("ef", 4)]
    live.read(delta(7, 4, 2))
    assert live.unread() == []
    live.take(piece("g", 6))
    live.read(read(RunMessageEnd("msg-1", "a", "m1"), 8))
    assert (live.unread(), bool(live)) == ([], False)


def test_of_a_piece_that_was_partly_read_only_what_is_new_is_given() -> None:
    live = reading()
    live.read(start(5))
    assert live.take(piece("abc", 0)) == piece("abc", 0)
    assert live.take(piece("bcde", 1)) == piece("de", 3)
    assert live.take(piece("abcde", 0)) is None


def test_a_piece_that_leaves_a_gap_is_left_out_until_the_log_has_closed_it() -> None:
    live = reading()
    live.read(start(5))
    assert live.take(piece("c", 2)) is None
    live.read(delta(6, 0, 3))
    assert live.take(piece("d", 3)) == piece("d", 3)


def test_a_piece_of_a_block_that_has_begun_again_is_left_out() -> None:
    live = reading()
    live.take(piece("old", 0, start=5))
    live.take(piece("new", 0, start=6))
    assert live.read(start(5)) == [piece("old", 0, start=5)]
    assert live.read(start(6)) == [piece("new", 0, start=6)]
    assert live.take(piece("er", 3, start=5)) is None


def test_done_ends_all_blocks_of_its_run_and_no_other() -> None:
    live = reading(9)
    live.take(piece("a", 0))
    live.take(piece("b", 0)._replace(message="msg-2"))
    live.read(read(RunDone("msg-1", "a", stop_reason="stop"), 10))
    assert [delta.message for delta in live.unread()] == ["msg-2"]


def test_the_characters_known_of_a_block_are_those_heard_and_read() -> None:
    live = reading()
    live.read(start(5))
    live.take(piece("abc", 0))
    assert live.received(delta(6, 0, 9)) == 3
    assert live.received(delta(6, 0, 9, block="m2")) == 0


def test_who_has_left_hears_no_more() -> None:
    feed, heard = Feed(), list[Delta]()
    feed.subscribe(heard.append)
    feed.publish(piece("a", 0))
    feed.unsubscribe(heard.append)
    feed.publish(piece("b", 1))
    assert heard == [piece("a", 0)]
