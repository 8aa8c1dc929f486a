"""What may come in (S10, S11), and what the codec raises: every refusal of a payload is an ``InvalidPayload``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from organism.errors import ConfigInvalid, Fault, InvalidPayload, PayloadTooLarge

ENVELOPE = "urn:organism:envelope:1"
XSD = "http://www.w3.org/2001/XMLSchema"
XSI = "http://www.w3.org/2001/XMLSchema-instance"

MAX_DEPTH = 32
MAX_ATTRIBUTES = 64
MAX_NAMESPACES = 16
ENVELOPE_BYTES = 4096
"""Room for what an envelope puts around its payload."""
MAX_JSON_VALUES = 40_000
"""The values in one JSON value, as many as a request's body may have."""
MAX_FAULTS = 20
"""No refusal lists more (S10: lists of schema errors can grow out of all proportion)."""
UNCARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""The characters that XML 1.0 cannot carry (S11)."""


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """What a receiver takes: UTF-8 bytes of the payload's XML, and elements of the document."""

    payload_bytes: int = 262_144
    elements: int = 2_000


class PayloadOverLimit(PayloadTooLarge, InvalidPayload):
    """The payload is larger than the receiver takes."""

    remediation = "Send less at a time, or give the listener a larger `max_payload_bytes`."


class SpoofAttempt(InvalidPayload):
    """A document names a sender, receiver, thread or tenant that is not its own (S12).

    ``field`` is ``from``, ``to``, ``thread`` or ``tenant``; ``claimed`` is what the document says, ``actual`` what is
    so (empty for a tenant, which no document may name).
    """

    remediation = "Leave <from>, <to> and <thread> out: the organism writes them."

    def __init__(self, field: str, claimed: str, actual: str) -> None:
        expected = shown(actual) if actual else "no such element"
        super().__init__(
            f"The document says {field} is {shown(claimed)}; that is not for a document to say. Leave it out.",
            details=(Fault(f"/meta/{field}", f"expected {expected}, came {shown(claimed)}"),),
        )
        self.field = field
        self.claimed = claimed
        self.actual = actual


class UnsupportedPayload(ConfigInvalid):
    """A class cannot be a payload; ``details`` lists each fault as ``Class.field`` and what is allowed there."""

    remediation = (
        "A payload is a plain dataclass of str, int, float, bool, Decimal, bytes, date, aware datetime, Enum, Literal, "
        "list, dict[str, …], organism.Json, organism.JsonObject, `… | None` and other such dataclasses."
    )


class UnknownPayload(InvalidPayload):
    """No payload class of that name is known here."""


def invalid(what: str, faults: list[Fault]) -> InvalidPayload:
    """The refusal that lists ``faults`` (at most ``MAX_FAULTS``) and puts the first of them into its message."""
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    where = f" at {first.pointer}" if first.pointer else ""
    return InvalidPayload(f"{what}{where}: {first.message}{more}.", details=tuple(faults[:MAX_FAULTS]))


def too_deep() -> PayloadOverLimit:
    """The refusal of a document that is nested too deep."""
    return PayloadOverLimit(f"The payload is nested too deep: expected at most {MAX_DEPTH} levels, came more.")


def shown(value: object, most: int = 60) -> str:
    """``value`` as it may stand in an error text: short, on one line, never markup."""
    if isinstance(value, str):
        value = value[: most + 1]
    text = ascii(value) if not isinstance(value, str) or not value.isprintable() else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def came(value: object) -> str:
    """What came instead of what was expected."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, dict):
        return "an object with " + (", ".join(shown(str(name), 30) for name in list(value)[:5]) or "nothing in it")
    kind = type(value).__name__
    return f"{kind} {shown(value)}" if isinstance(value, str | int | float | bytes) else f"a {kind}"
