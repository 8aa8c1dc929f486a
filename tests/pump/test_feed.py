"""The feed beside a reading of the log: each piece in its place, none twice, none with a gap before it."""

from __future__ import annotations

from organism.model.events import Event
from organism.pump.feed import Delta, Feed, Live


def event(kind: str, position: int, block: str = "m1", **data: int) -> Event:
    """An event of a run, as it was read."""
    made = Event(f"run_{kind}", {"message": "msg-1", "agent": "a", "id": block, **data}, thread="t")
    made.position = position
    return made


def piece(text: str, offset: int, start: int = 5, block: str = "m1") -> Delta:
    """A piece that was told."""
    return Delta("t", "msg-1", "a", "message", block, start, offset, text)


def reading(position: int = 4) -> Live:
    """A reading of the log that has come so far."""
    return Live(position)


def test_a_piece_waits_until_its_blocks_start_was_read() -> None:
    live = reading()
    assert live.hear(piece("ab", 0)) is None
    assert live.hear(piece("c", 2)) is None
    assert live.read(event("message_start", 5)) == [piece("ab", 0), piece("c", 2)]
    assert live.hear(piece("d", 3)) == piece("d", 3)


def test_a_piece_of_a_block_that_began_before_is_heard_at_once() -> None:
    live = reading(9)
    assert live.hear(piece("abc", 7)) == piece("abc", 7)
    assert live.unread() == [piece("abc", 7)]


def test_what_is_read_is_not_unread_any_more() -> None:
    live = reading()
    live.read(event("message_start", 5))
    live.hear(piece("abcdef", 0))
    live.read(event("message_delta", 6, offset=0, length=4))
    assert live.unread() == [piece("ef", 4)]
    live.read(event("message_delta", 7, offset=4, length=2))
    assert live.unread() == []
    live.hear(piece("g", 6))
    live.read(event("message_end", 8))
    assert (live.unread(), bool(live)) == ([], False)


def test_of_a_piece_that_was_partly_read_only_what_is_new_is_given() -> None:
    live = reading()
    live.read(event("message_start", 5))
    assert live.hear(piece("abc", 0)) == piece("abc", 0)
    assert live.hear(piece("bcde", 1)) == piece("de", 3)
    assert live.hear(piece("abcde", 0)) is None


def test_a_piece_that_leaves_a_gap_is_left_out_until_the_log_has_closed_it() -> None:
    live = reading()
    live.read(event("message_start", 5))
    assert live.hear(piece("c", 2)) is None
    live.read(event("message_delta", 6, offset=0, length=3))
    assert live.hear(piece("d", 3)) == piece("d", 3)


def test_a_piece_of_a_block_that_has_begun_anew_is_left_out() -> None:
    live = reading()
    live.hear(piece("old", 0, start=5))
    live.hear(piece("new", 0, start=6))
    assert live.read(event("message_start", 5)) == [piece("old", 0, start=5)]
    assert live.read(event("message_start", 6)) == [piece("new", 0, start=6)]
    assert live.hear(piece("er", 3, start=5)) is None


def test_done_ends_all_blocks_of_its_run_and_no_other() -> None:
    live = reading(9)
    live.hear(piece("a", 0))
    live.hear(piece("b", 0)._replace(message="msg-2"))
    live.read(event("done", 10))
    assert [delta.message for delta in live.unread()] == ["msg-2"]


def test_the_characters_known_of_a_block_are_those_heard_and_read() -> None:
    live = reading()
    live.read(event("message_start", 5))
    live.hear(piece("abc", 0))
    assert live.held(event("message_delta", 6, offset=0, length=9)) == 3
    assert live.held(event("message_delta", 6, block="m2", offset=0, length=9)) == 0


def test_who_has_left_hears_no_more() -> None:
    feed, heard = Feed(), list[Delta]()
    feed.join(heard.append)
    feed.tell(piece("a", 0))
    feed.leave(heard.append)
    feed.tell(piece("b", 1))
    assert heard == [piece("a", 0)]
