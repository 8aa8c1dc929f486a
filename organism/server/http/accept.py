"""The media types that a client accepts, by the ``Accept`` header."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from organism.errors import NotAcceptable

_MAX_RANGES: Final = 50
_WEIGHT: Final = re.compile(r"0(\.[0-9]*)?|1(\.0*)?|\.[0-9]+")


def weights(accept: str) -> dict[str, float]:
    """Each range of the header, in its order, with its weight; one that cannot be read has none."""
    found: dict[str, float] = {}
    for part in accept.lower().split(",")[:_MAX_RANGES]:
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((value[2:] for value in parameters if value.startswith("q=")), "1")
        found[name] = max(found.get(name, 0.0), float(quality) if _WEIGHT.fullmatch(quality) else 0.0)
    return found


def chosen(accept: str, offers: Sequence[str]) -> str:
    """The offer that is wanted most; among equals the one that is offered first, which is also that of an empty header.

    Raises ``NotAcceptable`` if none of them is wanted.
    """
    if not accept:
        return offers[0]
    wanted = weights(accept)
    best = max(offers, key=lambda offer: _weight(offer, wanted))
    if not _weight(best, wanted):
        raise NotAcceptable(f"This comes as {' or '.join(offers)}; came {accept[:80]!r}.", param="headers.accept")
    return best


def _weight(offer: str, wanted: Mapping[str, float]) -> float:
    """How much an offer is wanted: as the most specific range that fits it says."""
    ranges = (offer, offer.partition("/")[0] + "/*", "*/*")
    return next((wanted[name] for name in ranges if name in wanted), 0.0)
