"""Records → frames: the documented names and shapes, one frame an event, the same live and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from organism.events.record import Content
from organism.events.vocabulary import (
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    MessageDiscarded,
    MessageRefused,
    MessageReplayed,
    OrganismPaused,
    OrganismReloaded,
    OrganismStopped,
    StepResolved,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
)
from organism.server.push.filter import Filter, Frame
from organism.server.push.frames import Folded
from tests.views.folding import Scenario


def shown(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """The frames as a client reads them."""
    return [orjson.loads(frame.json) for frame in frames]


def hop() -> Scenario:
    """A thread of two messages that completes."""
    scenario = Scenario()
    scenario.add(ThreadCreated(), "t")
    scenario.sends("m1", "greeter").content = Content("t", b'{"name":"Dan"}', b"<message/>")
    scenario.begins("m1", "greeter")
    scenario.sends("m2", "console", "greeter").content = Content("t", b'{"message":"Hello"}')
    scenario.ends("m1", "greeter")
    scenario.add(ThreadCompleted(), "t")
    return scenario


def test_a_hop_has_the_documented_frames() -> None:
    frames = shown(Folded(0).frames(hop().records))
    assert [frame["event"] for frame in frames] == ["thread_created", "message", "message", "thread_updated"]
    assert [frame["position"] for frame in frames] == [1, 2, 4, 6]
    created, first, _, updated = frames
    assert created["thread"]["id"] == "t"
    assert (created["thread"]["status"], created["thread"]["participants"]) == ("active", ["console", "greeter"])
    assert first["message"] == {
        "id": "m1",
        "thread_id": "t",
        "from": "console",
        "to": "greeter",
        "payload_type": "Greeting",
        "timestamp": "2026-01-11T21:47:49.000000Z",
        "position": 2,
        "cause": None,
        "payload": {"name": "Dan"},
    }
    assert (updated["thread_id"], updated["status"], updated["message_count"]) == ("t", "completed", 2)
    assert not any(name.startswith("_") for name in created["thread"])


def test_erased_content_is_shown_as_erased() -> None:
    scenario = Scenario()
    scenario.sends("m", "greeter").content = Content("t", b"", b"", erased=True)
    assert shown(Folded(0).frames(scenario.records))[0]["message"]["payload"] == {"erased": True}


def one(event: Event, thread: str | None = None) -> dict[str, Any]:
    """The one frame of an event."""
    scenario = Scenario()
    scenario.add(ThreadCreated(), "t")
    scenario.add(event, thread).content = Content("t", b'{"sum":3}')
    (frame,) = shown(Folded(0).frames(scenario.records))[1:]
    assert frame.pop("position") == 2
    return frame


def test_dead_letters_open_and_close() -> None:
    opened = one(MessageRefused("m", "a", "b", "T", code="routing", why="unknown_receiver", reason="No b."), "t")
    assert (opened["event"], opened["status"], opened["agent"]) == ("dead_letter", "open", "a")
    assert opened["dead_letter"]["reason"] == "No b."
    assert one(MessageDiscarded("m", failed=False), "t")["status"] == "discarded"
    replayed = one(MessageReplayed(dead="m", message="n", edited=False, failed=False), "t")
    assert (replayed["status"], replayed["dead_letter"]) == ("replayed", {"id": "m"})


def test_approvals_open_with_their_preview_and_close_with_the_decision() -> None:
    opened = one(ApprovalRequested("a", "m", "greeter", step=1, digest="d", expires_at=0), "t")
    approval = opened["approval"]
    assert (opened["event"], approval["status"], approval["preview"]) == ("approval", "pending", {"sum": 3})
    closed = one(ApprovalResolved("a", decision="reject", comment="", by="x"), "t")
    resolved = {"by": None, "at": closed["timestamp"], "decision": "reject", "comment": "", "digest": None}
    assert closed["approval"] == {"id": "a", "status": "rejected", "resolved": resolved}
    expired = one(ApprovalExpired("a"), "t")["approval"]
    assert (expired["status"], expired["resolved"]["decision"]) == ("expired", "expired")


def test_only_an_effect_of_unknown_fate_is_indeterminate() -> None:
    begun = StepStarted("m", "a", step=2, kind="effect", input="d", effect="unsafe", key="k")
    assert one(replace(begun, unknown=True), "t")["indeterminate"]["id"] == "m:2"
    assert one(StepResolved("m", "a", step=2, outcome="redo"), "t")["indeterminate"]["status"] == "redo"
    scenario = Scenario()
    scenario.add(begun, "t")
    assert Folded(0).frames(scenario.records) == []


def test_the_organisms_own_events_have_frames_of_no_thread() -> None:
    at = {"timestamp": "2026-01-11T21:47:49.000000Z"}
    assert one(OrganismPaused("operator")) == {"event": "organism_state", "status": "paused", "by": None, **at}
    assert one(OrganismStopped()) == {"event": "organism_state", "status": "stopping", "by": None, **at}
    reloaded = one(OrganismReloaded(added=("a",), removed=(), updated=("b",), listeners=(), config="c"))
    assert reloaded == {"event": "reload", "added": ["a"], "removed": [], "updated": ["b"], "agents": [], **at}


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (Filter(), True),
        (Filter(threads=frozenset({"t"})), True),
        (Filter(threads=frozenset({"u"})), False),
        (Filter(threads=frozenset()), False),
        (Filter(agents=frozenset({"b"})), True),
        (Filter(agents=frozenset({"c"})), False),
        (Filter(events=frozenset({"message"})), True),
        (Filter(events=frozenset({"error"})), False),
        (Filter(frozenset({"t"}), frozenset({"c"}), frozenset({"message"})), False),
    ],
)
def test_a_frame_passes_if_each_list_names_something_of_it(wanted: Filter, *, passes: bool) -> None:
    assert wanted.passes(Frame(1, "message", "t", frozenset({"a", "b"}), b"")) is passes


def test_what_names_nothing_of_a_kind_passes_its_list() -> None:
    reload = Frame(1, "reload", None, frozenset(), b"")
    assert Filter(threads=frozenset({"t"}), agents=frozenset({"a"})).passes(reload)
    assert not Filter(events=frozenset({"message"})).passes(reload)
