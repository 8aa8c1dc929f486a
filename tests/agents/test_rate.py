"""Tokens a minute: a minute's worth at once, what is beyond that waits in order, what was not used comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from organism.agents.rate import MINUTE_US, Rate

SECOND = 1_000_000


def test_a_minute_s_worth_comes_at_once_and_the_rest_waits_its_time() -> None:
    rate = Rate(600)
    assert [rate.take(300, 0), rate.take(300, 0), rate.take(100, 0), rate.take(10, 0)] == [
        0,
        0,
        10 * SECOND,
        11 * SECOND,
    ]


def test_what_time_has_filled_up_can_be_taken_again_and_never_more_than_a_minute_s_worth() -> None:
    rate = Rate(600)
    rate.take(600, 0)
    assert rate.take(100, 10 * SECOND) == 0
    assert rate.take(700, 100 * MINUTE_US) == 0
    assert rate.take(600, 100 * MINUTE_US) == 70 * SECOND


def test_what_was_not_used_comes_back() -> None:
    rate = Rate(600)
    rate.take(600, 0)
    rate.give_back(500)
    assert rate.take(500, 0) == 0
    rate.give_back(5000)
    assert rate.wait_us(600, 0) == 0
    assert rate.take(601, 0) == 0
    assert rate.wait_us(1, 0) > 0


def test_a_call_that_is_larger_than_a_minute_passes_when_nothing_was_taken() -> None:
    rate = Rate(100)
    assert rate.take(5000, 0) == 0
    assert rate.wait_us(100, 0) == 50 * MINUTE_US


def test_without_a_rate_nothing_waits() -> None:
    rate = Rate(0)
    assert [rate.take(10**9, 0) for _ in range(3)] == [0, 0, 0]


def test_a_new_rate_keeps_what_was_taken() -> None:
    rate = Rate(100)
    rate.take(100, 0)
    rate.resize(400)
    assert (rate.take(300, 0), rate.wait_us(40, 0)) == (0, 6 * SECOND)


@given(st.integers(60, 6000), st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 30 * SECOND)), max_size=30))
def test_no_minute_gets_more_than_two_minutes_worth(per_minute: int, calls: list[tuple[int, int]]) -> None:
    rate, now, used = Rate(per_minute), 0, []
    for tokens, pause in calls:
        now += pause
        used.append((now + rate.take(min(tokens, per_minute), now), min(tokens, per_minute)))
    for start, _ in used:
        within = sum(tokens for at, tokens in used if start <= at < start + MINUTE_US)
        assert within <= 2 * per_minute + 1
