"""Approvals, and the tokens that confirm a call."""

from __future__ import annotations

import msgspec
from hypothesis import given

from organism.events.record import Record
from organism.events.vocabulary import (
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    ConfirmRedeemed,
    ConfirmRequested,
    Event,
)
from organism.model.thread import Message, Thread
from organism.pump.state import MOST_OPEN_TOKENS, TOKEN_MEMORY_US, Confirmations
from organism.views.approvals import APPROVALS
from tests.views.folding import AT, Scenario, kept
from tests.views.moves import lawful_logs

MINUTE_US = 60_000_000
STATUS = {"approve": "approved", "reject": "rejected"}


def test_an_approval_has_the_fields_of_the_api_and_its_first_end_is_for_good() -> None:
    scenario = Scenario()
    scenario.sends("m", "greeter")
    scenario.add(ApprovalRequested("apr-1", "m", "greeter", 1, "abc", expires_at=AT), "t")
    assert list(scenario.rows("approvals")["apr-1"].items()) == [
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
        ("resolved", None),
    ]
    scenario.add(ApprovalResolved("apr-1", "reject", comment="", by="me"), "t")
    scenario.add(ApprovalCancelled("apr-1"), "t")
    row = scenario.rows("approvals")["apr-1"]
    assert (row["status"], row["digest"], row["position"]) == ("rejected", "abc", 2)


def test_what_it_asks_about_and_the_edits_of_who_decides_are_reported() -> None:
    scenario = Scenario()
    asked = ApprovalRequested("apr-1", "m", "greeter", 0, "abc", expires_at=AT, type="Transfer", why="It read a page.")
    scenario.add(asked, "t")
    scenario.add(ApprovalResolved("apr-1", "approve", comment="", by="me", digest="edits"), "t")
    row = scenario.rows("approvals")["apr-1"]
    fields = ("payload_type", "why", "digest", "status")
    assert [row[field] for field in fields] == ["Transfer", "It read a page.", "edits", "approved"]


@given(lawful_logs)
def test_the_approvals_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    expected: dict[str, tuple[str, int, str]] = {}
    for record in records:
        event = record.event
        if isinstance(event, ApprovalRequested):
            expected[event.approval] = (event.agent, record.at, "pending")
        elif isinstance(event, ApprovalResolved):
            expected[event.approval] = (*expected[event.approval][:2], STATUS[event.decision])
        elif isinstance(event, ApprovalExpired | ApprovalCancelled):
            expected[event.approval] = (*expected[event.approval][:2], record.type.removeprefix("approval_"))
    rows = kept(APPROVALS, records)
    assert {key: (row["agent"], row["_asked_at"], row["status"]) for key, row in rows.items()} == expected


def requested(token: str, at: int = 0, thread: str = "t") -> Record[ConfirmRequested]:
    """A token is given."""
    return Record(ConfirmRequested(token, "d", "asks", "greeter", at + MINUTE_US), thread=thread, at=at)


def redeemed(token: str) -> Record[ConfirmRedeemed]:
    """A token is used."""
    return Record(ConfirmRedeemed(token, "m", "greeter"), thread="t")


def test_a_token_is_open_for_its_time_and_until_it_is_used() -> None:
    confirmations = Confirmations()
    confirmations.requested(requested("a"), {})
    assert confirmations.by_token["a"].is_open(MINUTE_US - 1)
    assert not confirmations.by_token["a"].is_open(MINUTE_US)
    confirmations.redeemed(redeemed("a"))
    assert not confirmations.by_token["a"].is_open(0)
    assert confirmations.by_token["a"].used_by == "m"


def test_one_more_than_may_be_open_in_a_thread_closes_the_oldest_of_that_thread() -> None:
    confirmations = Confirmations()
    confirmations.requested(requested("elsewhere", thread="other"), {})
    for number in range(MOST_OPEN_TOKENS + 1):
        confirmations.requested(requested(str(number), at=number), {})
    still = [token for token, each in confirmations.by_token.items() if each.is_open(MOST_OPEN_TOKENS)]
    assert still == ["elsewhere", *map(str, range(1, MOST_OPEN_TOKENS + 1))]


def test_what_is_long_over_is_forgotten_when_another_is_given() -> None:
    confirmations = Confirmations()
    confirmations.requested(requested("a"), {})
    confirmations.requested(requested("b", at=MINUTE_US + TOKEN_MEMORY_US - 1), {})
    assert list(confirmations.by_token) == ["a", "b"]
    confirmations.requested(requested("c", at=MINUTE_US + TOKEN_MEMORY_US), {})
    assert list(confirmations.by_token) == ["b", "c"]


def test_one_that_an_open_message_rests_on_is_known_as_long_as_that() -> None:
    confirmations, late = Confirmations(), 2 * (MINUTE_US + TOKEN_MEMORY_US)
    confirmations.requested(requested("a"), {})
    confirmations.redeemed(redeemed("a"))
    message = Message("m", "", "greeter", "Ask", 0, False, frozenset(), 0, "", None, thread=Thread("t"))  # noqa: FBT003 - its fields
    confirmations.requested(requested("b", at=late), {"m": message})
    assert list(confirmations.by_token) == ["a", "b"]
    confirmations.requested(requested("c", at=late), {})
    assert list(confirmations.by_token) == ["b", "c"]


def test_it_is_the_same_when_it_was_put_down_and_taken_up() -> None:
    confirmations = Confirmations()
    confirmations.requested(requested("a"), {})
    confirmations.requested(requested("b"), {})
    confirmations.redeemed(redeemed("a"))
    assert (
        msgspec.json.decode(msgspec.json.encode(confirmations), type=Confirmations).by_token == confirmations.by_token
    )
