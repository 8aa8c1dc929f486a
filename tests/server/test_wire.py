"""Strict JSON in, joined bytes out."""

from __future__ import annotations

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side
from websockets.protocol import State as WireState

from organism.errors import InvalidField, InvalidJson
from organism.server.json import MAX_DEPTH, Cursors, microseconds, parse_json
from organism.server.push.filter import websocket_frame


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '[{"x":{"b":[],"b":[]}}]', '{"a:":1,"b\\"":2,"a:":3}']
)
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(InvalidJson, match="stands twice"):
        parse_json(text.encode())


@pytest.mark.parametrize("text", ["", "{", "nul", "NaN", "[1,]", '"\ud800"', "{'a':1}", "\ufeff{}", "1 2"])
def test_what_is_no_strict_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidJson):
        parse_json(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("digits", ["99999999999999999999", "-9223372036854775809", "18446744073709551617", "9" * 5000])
@pytest.mark.parametrize("text", ["N", '{"a": N}', '{"a":{"b":"1","c":\nN }}', "[1,N,2]", "[N]"])
def test_a_whole_number_that_would_lose_digits_is_refused(text: str, digits: str) -> None:
    with pytest.raises(InvalidJson, match=f"The whole number {digits[:200]}"):
        parse_json(text.replace("N", digits).encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[18446744073709551615]", [2**64 - 1]),
        ("[-9223372036854775808]", [-(2**63)]),
        ("[123456789012345670000]", [1.2345678901234567e20]),  # as JavaScript writes it
        ('["99999999999999999999"]', ["99999999999999999999"]),
        ('{"99999999999999999999":1}', {"99999999999999999999": 1}),
        ("[99999999999999999999.5]", [1e20]),
    ],
)
def test_a_number_that_is_kept_is_taken(text: str, value: object) -> None:
    assert parse_json(text.encode()) == value


def test_nesting_ends_at_its_bound() -> None:
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    parse_json(deepest)
    parse_json(b'["' + b"[{" * 500 + b'\\""]')  # brackets in a text are not nesting
    with pytest.raises(InvalidJson, match="at most 64 levels"):
        parse_json(b"[" + deepest + b"]")


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 200_000])
def test_a_frame_is_what_a_client_reads(size: int) -> None:
    client = Protocol(Side.CLIENT, state=WireState.OPEN, max_size=None)
    client.receive_data(websocket_frame(b"x" * size))
    (read,) = client.events_received()
    assert isinstance(read, Frame)
    assert (read.opcode, read.fin, len(read.data)) == (Opcode.TEXT, True, size)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:00.000005+01:00", 5),
        ("1970-01-01T01:00:00 01:00", 0),
    ],
)
def test_times_are_read_with_their_offset(text: str, expected: int) -> None:
    assert microseconds(text, "query.since") == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2024-01-15", "2024-01-15T10:00:00", "99999-01-01T00:00:00Z"])
def test_times_without_an_offset_and_other_texts_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidField) as refused:
        microseconds(text, "query.since")
    assert refused.value.param == "query.since"


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
    with pytest.raises(InvalidField):
        Cursors(b"o" * 32).open(LISTING, cursor)


@pytest.mark.parametrize("key", ["msg-1", "msg-12", "msg-123"])
def test_a_cursor_that_was_changed_is_refused(key: str) -> None:
    cursors = Cursors(KEY)
    cursor = cursors.seal(LISTING, [50, key])
    changed = [cursor[:at] + ("A" if letter != "A" else "B") + cursor[at + 1 :] for at, letter in enumerate(cursor)]
    for wrong in ("", "x", "é", cursor[:-4], *changed):
        with pytest.raises(InvalidField):
            cursors.open(LISTING, wrong)
