"""The fold of confirmations: what is kept of a token, how long, and how many are open in a thread."""

from __future__ import annotations

import orjson

from organism.model.events import Event
from organism.projections.confirms import KEPT_US, MOST_OPEN, Confirms, dump, load

MINUTE_US = 60_000_000


def requested(token: str, at: int = 0, thread: str = "t") -> Event:
    """A token is given."""
    event = Event("confirm_requested", {"token": token, "digest": "d", "expires_at": at + MINUTE_US}, thread=thread)
    event.at = at
    return event


def redeemed(token: str) -> Event:
    """A token is used."""
    return Event("confirm_redeemed", {"token": token, "message": "m"}, thread="t")


def test_a_token_is_open_for_its_time_and_until_it_is_used() -> None:
    confirms = Confirms()
    confirms.requested(requested("a"))
    assert confirms.by_token["a"].is_open(MINUTE_US - 1)
    assert not confirms.by_token["a"].is_open(MINUTE_US)
    confirms.redeemed(redeemed("a"))
    assert not confirms.by_token["a"].is_open(0)
    assert confirms.by_token["a"].used_by == "m"


def test_one_more_than_may_be_open_in_a_thread_closes_the_oldest_of_that_thread() -> None:
    confirms = Confirms()
    confirms.requested(requested("elsewhere", thread="other"))
    for number in range(MOST_OPEN + 1):
        confirms.requested(requested(str(number), at=number))
    still = [token for token, each in confirms.by_token.items() if each.is_open(MOST_OPEN)]
    assert still == ["elsewhere", *map(str, range(1, MOST_OPEN + 1))]


def test_what_is_long_over_is_forgotten_when_another_is_given() -> None:
    confirms = Confirms()
    confirms.requested(requested("a"))
    confirms.requested(requested("b", at=MINUTE_US + KEPT_US - 1))
    assert list(confirms.by_token) == ["a", "b"]
    confirms.requested(requested("c", at=MINUTE_US + KEPT_US))
    assert list(confirms.by_token) == ["b", "c"]


def test_a_token_that_was_never_given_is_not_used() -> None:
    confirms = Confirms()
    confirms.redeemed(redeemed("a"))
    assert confirms.by_token == {}


def test_it_is_the_same_when_it_was_put_down_and_taken_up() -> None:
    confirms = Confirms()
    confirms.requested(requested("a"))
    confirms.requested(requested("b"))
    confirms.redeemed(redeemed("a"))
    assert load(orjson.loads(orjson.dumps(dump(confirms)))).by_token == confirms.by_token
