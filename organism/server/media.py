"""Which form of an answer a client wants, by its Accept header (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.errors import NotAcceptable

_MAX_RANGES: Final = 50


def chosen(accept: str, offers: Sequence[str]) -> str:
    """The offer that is wanted most; among equals the one that is offered first, which is also that of an empty header.

    Raises ``NotAcceptable`` if none of them is wanted.
    """
    if not accept:
        return offers[0]
    ranges = [_range(part) for part in accept.lower().split(",")[:_MAX_RANGES]]
    best = max(offers, key=lambda offer: _quality(offer, ranges))
    if _quality(best, ranges) <= 0:
        raise NotAcceptable(f"This comes as {' or '.join(offers)}; came {accept[:80]!r}.", param="headers.accept")
    return best


def _range(part: str) -> tuple[str, float]:
    """A media range with its weight; one that cannot be read weighs nothing."""
    name, *parameters = (piece.strip() for piece in part.split(";"))
    said = next((value[2:] for value in parameters if value.startswith("q=")), "1")
    try:
        weight = float(said)
    except ValueError:
        weight = 0.0
    return name, weight if 0 <= weight <= 1 else 0.0


def _quality(offer: str, ranges: Sequence[tuple[str, float]]) -> float:
    """How much an offer is wanted: as the most specific range that fits it says."""
    for fitting in (offer, offer.partition("/")[0] + "/*", "*/*"):
        weights = [weight for name, weight in ranges if name == fitting]
        if weights:
            return max(weights)
    return 0.0
