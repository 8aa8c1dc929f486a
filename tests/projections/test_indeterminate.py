"""The effects of which nobody knows whether they happened."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from organism.model.events import Event
from organism.projections import indeterminate
from tests.projections.folding import Story, fold, kept
from tests.projections.moves import lawful_logs


def step(story: Story, event: str, **more: Any) -> None:
    story.tell(event, "t", message="m", agent="greeter", step=2, **more)


def under_way() -> Story:
    story = Story()
    step(story, "step_started", kind="effect", effect="unsafe", key="pay-7", input="d")
    return story


def found_unknown() -> Story:
    story = under_way()
    step(story, "step_started", kind="effect", effect="unsafe", key="pay-7", input="d", unknown=True)
    return story


def test_an_effect_under_way_is_not_indeterminate() -> None:
    assert under_way().rows("indeterminate") == {}


def test_an_effect_found_started_and_not_finished_is() -> None:
    assert list(found_unknown().rows("indeterminate")["m:2"].items()) == [
        ("id", "m:2"),
        ("thread_id", "t"),
        ("message_id", "m"),
        ("agent", "greeter"),
        ("step", 2),
        ("key", "pay-7"),
        ("since", "2026-01-11T21:47:49.000000Z"),
        ("position", 2),
    ]


def test_finding_it_again_changes_nothing() -> None:
    story = found_unknown()
    once = story.rows("indeterminate")
    step(story, "step_started", kind="effect", effect="unsafe", key="pay-7", input="d", unknown=True)
    assert story.rows("indeterminate") == once


def test_the_operators_word_closes_it() -> None:
    for outcome in ("done", "redo", "fail"):
        story = found_unknown()
        step(story, "step_resolved", outcome=outcome)
        assert story.rows("indeterminate") == {}


def test_a_record_closes_it() -> None:
    story = found_unknown()
    step(story, "step_recorded", kind="effect", input="d", error={"code": "killed", "message": "killed"})
    assert story.rows("indeterminate") == {}


def test_a_record_of_another_kind_of_step_touches_no_row() -> None:
    story = Story()
    step(story, "step_recorded", kind="ask", input="d")
    assert indeterminate.KEYS["step_recorded"](story.events[0]) == ()


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    last: dict[str, Event] = {}
    for event in events:
        if event.type.startswith("step_"):
            last[f"{event.data['message']}:{event.data['step']}"] = event
    expected = {key for key, event in last.items() if event.type == "step_started" and "unknown" in event.data}
    assert set(fold(indeterminate.MODEL, events)) == expected


@given(lawful_logs)
def test_each_is_found_by_its_agent_and_by_when_it_was_first_found(events: list[Event]) -> None:
    found: dict[str, tuple[str, int]] = {}
    for event in events:
        if event.type.startswith("step_"):
            key = f"{event.data['message']}:{event.data['step']}"
            if event.type == "step_started" and "unknown" in event.data:
                found.setdefault(key, (event.data["agent"], event.at))
            elif event.type != "step_started":
                found.pop(key, None)
    rows = kept(indeterminate.MODEL, events)
    assert {key: (row["agent"], row["_found_at"]) for key, row in rows.items()} == found
