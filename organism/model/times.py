"""Times as people and programs read them. Inside, a time is an int: UTC in microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_LAST_DIGITS: Final = tuple(f"{microsecond:03d}Z" for microsecond in range(1000))


@lru_cache(maxsize=256)
def iso(at: int) -> str:
    """``at`` (µs since 1970, not negative) as ISO 8601 in UTC with six digits: ``2026-01-11T22:47:57.000042Z``.

    Texts of this form sort as the times do. It stands in every hop: the events of one unit ask for the same time, and
    those of one millisecond differ in three digits only, so most of it is remembered.
    """
    return _millisecond(at // 1000) + _LAST_DIGITS[at % 1000]


@lru_cache(maxsize=16)
def _millisecond(milliseconds: int) -> str:
    second, fraction = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:03d}"
