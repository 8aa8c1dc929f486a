"""Money: exact amounts of US dollars, never floats.

An amount has at most twelve decimal places; finer ones are rounded up, so that no cost is understated and every sum is
exact. In events and answers an amount is its plain text: ``"0.0123"``.
"""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from typing import Final

NOTHING: Final = Decimal(0)
MOST: Final = Decimal(1_000_000_000)
"""A larger figure is taken for an error."""
_FINEST: Final = Decimal("1e-12")
_CENT: Final = Decimal("0.01")
_MILLION: Final = Decimal(1_000_000)


def exact(amount: Decimal) -> Decimal:
    """The amount with at most twelve decimal places."""
    return amount.quantize(_FINEST, rounding=ROUND_UP)


def priced(tokens: int, usd_per_million: Decimal) -> Decimal:
    """What so many tokens cost."""
    return exact(tokens * usd_per_million / _MILLION) if usd_per_million else NOTHING


def cents(amount: Decimal) -> str:
    """The amount rounded up to the cent, as text."""
    return f"{amount.quantize(_CENT, rounding=ROUND_UP):f}"


def is_amount(amount: Decimal) -> bool:
    """Whether a provider's figure is plausible: finite, not negative, at most ``MOST``."""
    return amount.is_finite() and NOTHING <= amount <= MOST


def plain(amount: Decimal) -> str:
    """The amount as text without an exponent or trailing zeros."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
