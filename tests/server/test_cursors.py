"""Cursors: bound to tenant, path and filter (S6)."""

from __future__ import annotations

import pytest

from organism.errors import InvalidField
from organism.server.wire import Cursors

KEY = b"k" * 32
LISTING = repr(("acme", "/api/v1/messages", [("agent", "greeter")]))


def test_a_cursor_opens_the_listing_that_it_was_made_for_and_no_other() -> None:
    cursors = Cursors(KEY)
    cursor = cursors.seal(LISTING, [50, "msg-1"])
    assert cursors.open(LISTING, cursor) == [50, "msg-1"]
    for other in (
        repr(("globex", "/api/v1/messages", [("agent", "greeter")])),
        repr(("acme", "/api/v1/threads", [("agent", "greeter")])),
        repr(("acme", "/api/v1/messages", [("agent", "shouter")])),
        repr(("acme", "/api/v1/messages", [])),
    ):
        with pytest.raises(InvalidField):
            cursors.open(other, cursor)


def test_a_cursor_of_another_servers_key_is_refused() -> None:
    with pytest.raises(InvalidField):
        Cursors(b"o" * 32).open(LISTING, Cursors(KEY).seal(LISTING, [50, "msg-1"]))


@pytest.mark.parametrize("key", ["msg-1", "msg-12", "msg-123"])
def test_a_cursor_that_was_changed_is_refused(key: str) -> None:
    cursors = Cursors(KEY)
    cursor = cursors.seal(LISTING, [50, key])
    changed = [cursor[:at] + ("A" if letter != "A" else "B") + cursor[at + 1 :] for at, letter in enumerate(cursor)]
    for wrong in ("", "x", "é", cursor[:-4], *changed):
        with pytest.raises(InvalidField):
            cursors.open(LISTING, wrong)
