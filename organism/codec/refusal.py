"""What the codec raises. Every refusal of a payload is an ``InvalidPayload``, so one ``except`` takes them all."""

from __future__ import annotations

import re

from organism.codec.limits import MAX_DEPTH
from organism.errors import ConfigInvalid, Fault, InvalidPayload, PayloadTooLarge

UNCARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""The characters that XML 1.0 cannot carry (S11)."""
MAX_FAULTS = 20
"""No refusal lists more (S10: lists of schema errors can grow out of all proportion)."""


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
        super().__init__(
            f"The document says {field} is {shown(claimed)}; that is not for a document to say. Leave it out.",
            details=(
                Fault(
                    f"/meta/{field}",
                    f"expected {shown(actual) if actual else 'no such element'}, came {shown(claimed)}",
                ),
            ),
        )
        self.field = field
        self.claimed = claimed
        self.actual = actual


class UnsupportedPayload(ConfigInvalid):
    """A class cannot be a payload; ``details`` lists each fault as ``Class.field`` and what is allowed there."""

    remediation = (
        "A payload is a plain dataclass of str, int, float, bool, Decimal, bytes, date, aware datetime, Enum, Literal, "
        "list, dict[str, …], `… | None` and other such dataclasses."
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
    text = ascii(value) if not isinstance(value, str) or not value.isprintable() else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
