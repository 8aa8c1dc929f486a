"""What a server says of tokens and of money, as far as it makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from organism.model.completion import Usage

MOST_TOKENS: Final = 10**12
MOST_USD: Final = 10**6


def tokens(value: Any) -> int | None:
    """A count of tokens, or None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def dollars(value: Any) -> Decimal | None:
    """A cost, or None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and 0 <= cost <= MOST_USD else None


def used(told: Mapping[str, Any], given: int | None, written: int | None) -> Usage | None:
    """The usage with these counts and the cost that is told, or None unless both counts are known."""
    if given is None or written is None:
        return None
    return Usage(given, written, dollars(told.get("cost")))
