"""A unit as it is stored: every event comes back as it was, older rows are lifted, newer ones refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from organism.errors import LogDamaged
from organism.events.record import Actor, Record
from organism.events.stored import VERSION, Placed, Seal, StoredUnit, decode_unit, encode_unit, upcast
from organism.events.vocabulary import (
    EVENTS,
    CodeLine,
    Declared,
    Event,
    MessageSent,
    OrganismPaused,
    Root,
    SessionSettings,
    StepError,
    StepRecorded,
    ThreadCreated,
    ThreadKilled,
    Todo,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "vocabulary.json"
PLAIN: Mapping[object, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: st.integers(-(1 << 53), 1 << 53),
    bool: st.booleans(),
    type(None): st.none(),
    Root: st.builds(Root, st.none() | st.text(max_size=5), st.integers(0, 9), st.none() | st.text(max_size=5)),
    Any: st.none() | st.text(max_size=5) | st.lists(st.booleans(), max_size=2),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation of the vocabulary."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint)
        return st.builds(hint, **{field.name: values(hints[field.name]) for field in fields(hint)})
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(parts)
    if origin in {Union, UnionType}:
        return st.one_of(*map(values, parts))
    if origin is Mapping:
        return st.dictionaries(values(parts[0]), values(parts[1]), max_size=2)
    assert origin is tuple, hint
    several = st.lists(values(parts[0]), max_size=2).map(tuple)
    return several if parts[-1] is Ellipsis else st.tuples(*map(values, parts))


def row(*events: Event, first: int = 1, seals: tuple[Seal, ...] = (), placed: tuple[Placed, ...] = ()) -> StoredUnit:
    """A unit of these events."""
    actor = Actor("acme", "ann", "req-1")
    return StoredUnit(first, VERSION, 7, "thr-1", "msg-1", "msg-0", actor, list(events), list(seals), list(placed))


@pytest.mark.parametrize("kind", EVENTS.values(), ids=EVENTS)
@settings(max_examples=20)
@given(data=st.data())
def test_each_event_comes_back_as_it_was(kind: type[Event], data: st.DataObject) -> None:
    stored = row(data.draw(values(kind)))
    assert decode_unit(encode_unit(stored)) == stored


def test_a_record_has_what_its_unit_says_but_for_what_the_row_says_of_it_alone() -> None:
    events = (ThreadCreated(), ThreadKilled(), OrganismPaused("operator"))
    stored = row(*events, first=5, seals=(Seal(1, "digest", "thr-9"),), placed=(Placed(2, None, "msg-2", None),))
    first, second, third = decode_unit(encode_unit(stored)).records()
    assert stored.last == 7
    assert stored.digests() == {6: "digest"}
    assert [record.event for record in (first, second, third)] == list(events)
    assert _envelope(first) == (5, 7, "thr-1", "msg-1", "msg-0", "", None)
    assert _envelope(second) == (6, 7, "thr-1", "msg-1", "msg-0", "digest", "thr-9")
    assert _envelope(third) == (7, 7, None, "msg-2", None, "", None)
    assert {record.actor for record in (first, second, third)} == {Actor("acme", "ann", "req-1")}


def _envelope(record: Record[Event]) -> tuple[object, ...]:
    place = (record.thread, record.cause, record.correlation)
    return (record.position, record.at, *place, record.digest, record.content_owner)


def test_what_has_its_default_is_left_out_of_the_row() -> None:
    stored = StoredUnit(1, VERSION, 7, None, None, None, None, [ThreadCreated(), ThreadKilled(ended=True)], [], [])
    events = b'[{"event":"thread_created"},{"event":"thread_killed","ended":true}]'
    assert encode_unit(stored) == b"[1,%d,7,null,null,null,null,%b,[],[]]" % (VERSION, events)


# Older and newer rows


def test_a_row_of_version_1_is_read_as_the_present_version_would_have_written_it() -> None:
    sent = {"message": "msg-1", "from": "console", "to": "a", "type": "Ask", "depth": 1, "token": "t", "class": "m:A"}
    error = {"code": "no_reply", "message": "Nothing came."}
    step = {"message": "msg-1", "agent": "a", "step": 1, "kind": "ask", "input": "digest", "error": error}
    listed: list[Any] = [
        ["message_sent", {**sent, "content": "d1"}],
        ["step_recorded", {**step, "content": "d2", "content_owner": "thr-9"}],
        ["organism_paused", {"by": "operator"}, None, "msg-2", None],
    ]
    old = [5, 1, 7, "thr-1", "msg-1", "msg-0", ["acme", "ann", "req-1", None], listed]
    assert msgspec.structs.replace(decode_unit(msgspec.json.encode(old)), version=VERSION) == row(
        MessageSent("msg-1", "console", "a", "Ask", 1, "t", payload_class="m:A"),
        StepRecorded("msg-1", "a", 1, "ask", "digest", StepError("no_reply", "Nothing came.")),
        OrganismPaused("operator"),
        first=5,
        seals=(Seal(0, "d1"), Seal(1, "d2", "thr-9")),
        placed=(Placed(2, None, "msg-2", None),),
    )


def test_a_row_is_lifted_step_by_step() -> None:
    steps = {number: lambda row, number=number: [*row, number] for number in (1, 2, 3)}
    assert upcast(["row"], 1, steps, 4) == ["row", 1, 2, 3]
    assert upcast(["row"], 3, steps, 4) == ["row", 3]
    assert upcast(["row"], 4, steps, 4) == ["row"]


def test_a_row_of_a_newer_version_is_refused_with_what_to_do() -> None:
    newer = encode_unit(msgspec.structs.replace(row(ThreadCreated()), version=VERSION + 1))
    with pytest.raises(LogDamaged, match=f"of version {VERSION + 1}, .* up to {VERSION}: run the newer program"):
        decode_unit(newer)


# Names


def test_no_name_on_the_wire_changes_by_mistake() -> None:
    """Rows hold these names; without ``?`` one has to be there. To rename, drop or demand one takes a new version."""
    shared = {each.__name__: each for each in (Actor, CodeLine, Declared, SessionSettings, StepError, Todo)}
    named = {name: _names(kind) for name, kind in {**shared, **EVENTS}.items()}
    assert named == msgspec.json.decode(GOLDEN.read_bytes())


def _names(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name + "?" * (not field.required) for field in fields(kind)]


@pytest.mark.parametrize(
    "body",
    [b"", b"[1", b"{}", b"[1,0,5]", b"[1,1,5]", b'[1,1,5,"t",null,null,null,[["thread_created"]]]', b"[1,2,5]",
     b'[1,2,5,null,null,null,null,[{"event":"thread_lost"}],[],[]]', b"\xff" * 50],
)  # fmt: skip
def test_what_is_no_unit_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec's own and ours
        decode_unit(body)
