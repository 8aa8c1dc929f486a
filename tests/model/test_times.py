"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies

from organism.model.times import iso

moments = strategies.integers(0, 253_402_300_799_999_999)
"""1970 to the last microsecond of the year 9999."""


def test_a_time_has_six_digits_of_a_second_and_a_z() -> None:
    assert iso(1_768_168_077_000_042) == "2026-01-11T21:47:57.000042Z"


def test_the_first_microseconds_of_1970_have_their_zeros() -> None:
    assert [iso(0), iso(7)] == ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000007Z"]


@given(moments)
def test_a_time_reads_back_as_itself(at: int) -> None:
    assert datetime.fromisoformat(iso(at)) - datetime(1970, 1, 1, tzinfo=UTC) == timedelta(microseconds=at)


@given(moments, moments)
def test_times_sort_as_their_texts_do(one: int, other: int) -> None:
    assert (one < other) == (iso(one) < iso(other))
