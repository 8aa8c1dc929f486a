"""The approvals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from organism.model.events import Event
from organism.projections import approvals
from tests.projections.folding import AT, Story, fold, kept
from tests.projections.moves import lawful_logs


def requested() -> Story:
    story = Story()
    story.sends("m", "greeter")
    asked: dict[str, Any] = {"message": "m", "agent": "greeter", "step": 1, "digest": "abc", "expires_at": AT}
    story.tell("approval_requested", "t", approval="apr-1", **asked)
    return story


def status_after(*ends: tuple[str, dict[str, Any]]) -> str:
    story = requested()
    for kind, more in ends:
        story.tell(kind, "t", approval="apr-1", **more)
    status: str = story.rows("approvals")["apr-1"]["status"]
    return status


def test_an_approval_has_the_fields_of_the_api_its_preview_being_the_content_of_its_request() -> None:
    assert list(requested().rows("approvals")["apr-1"].items()) == [
        ("id", "apr-1"),
        ("thread_id", "t"),
        ("message_id", "m"),
        ("agent", "greeter"),
        ("payload_type", None),
        ("why", None),
        ("digest", "abc"),
        ("status", "pending"),
        ("requested_at", "2026-01-11T21:47:49.000000Z"),
        ("expires_at", "2026-01-11T21:47:47.000000Z"),
        ("position", 2),
    ]
    assert approvals.MODEL.with_content


@pytest.mark.parametrize(
    ("kind", "more", "status"),
    [
        ("approval_resolved", {"decision": "approve"}, "approved"),
        ("approval_resolved", {"decision": "reject"}, "rejected"),
        ("approval_expired", {}, "expired"),
        ("approval_cancelled", {}, "cancelled"),
    ],
)
def test_an_approval_ends_in_one_of_four_ways(kind: str, more: dict[str, Any], status: str) -> None:
    assert status_after((kind, more)) == status


def test_the_first_end_of_an_approval_is_for_good() -> None:
    assert status_after(("approval_resolved", {"decision": "reject"}), ("approval_cancelled", {})) == "rejected"


def test_a_resolved_approval_still_points_at_its_preview() -> None:
    story = requested()
    story.tell("approval_resolved", "t", approval="apr-1", decision="approve", by="me")
    assert story.rows("approvals")["apr-1"]["position"] == 2


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    words = {"approve": "approved", "reject": "rejected"}
    expected = {event.data["approval"]: "pending" for event in events if event.type == "approval_requested"}
    for event in events:
        if event.type in {"approval_resolved", "approval_expired", "approval_cancelled"}:
            decision = event.data.get("decision")
            expected[event.data["approval"]] = words[decision] if decision else event.type.removeprefix("approval_")
    assert {key: row["status"] for key, row in fold(approvals.MODEL, events).items()} == expected


@given(lawful_logs)
def test_each_is_found_by_its_agent_and_by_when_it_was_asked(events: list[Event]) -> None:
    asked = {e.data["approval"]: (e.data["agent"], e.at) for e in events if e.type == "approval_requested"}
    rows = kept(approvals.MODEL, events)
    assert {key: (row["agent"], row["_asked_at"]) for key, row in rows.items()} == asked
