"""Times as people and programs read them. Inside, a time is an int: UTC in microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def iso(at: int) -> str:
    """``at`` (µs since 1970, not negative) as ISO 8601 in UTC with six digits: ``2026-01-11T22:47:57.000042Z``.

    Texts of this form sort as the times do.
    """
    return f"{_second(at // 1_000_000)}.{at % 1_000_000:06d}Z"


def spoken(at: int) -> str:
    """``at`` (µs since 1970) as people read it in an error: ``2026-01-11 22:47:57 UTC``."""
    return f"{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
