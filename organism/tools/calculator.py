"""``calculator``: exact arithmetic, without running anything of what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Annotated, Final

from pydantic import Field

from organism.config.settings import ShippedTool
from organism.model.arithmetic import MAX_CHARACTERS, MAX_DIGITS, Unfit, Value, value_of
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.tool import ToolError

SHOWN_DIGITS: Final = 30
PLAIN_DIGITS: Final = 40
"""A rounded value with more places than this is written with an exponent."""
_EXACT: Final = Context(prec=2 * MAX_DIGITS, traps=[Inexact])


@dataclass
class Calculator:
    """Computes an arithmetic expression exactly.

    Knows + - * / // (whole division) % (remainder) ** (power), parentheses, percentages (17% of 2340; 200 + 10% is 220)
    and abs, ceil, floor, max, min, round(x, digits), sqrt. Numbers are written 1234.5 or 1.2e-3, without separators.
    """

    expression: Annotated[
        str, Field(min_length=1, max_length=MAX_CHARACTERS, description="What to compute, such as (2 + 3) * 4.")
    ]


@dataclass
class Calculated:
    """``value`` is the result, rounded to 30 digits if ``exact`` is false; ``fraction`` is the exact value then."""

    value: str
    exact: bool = True
    fraction: str = ""


TOOL: Final = ShippedTool(
    name="calculator",
    scope="tools:execute",
    payload_class=Calculator,
    replies=(Calculated,),
    effect="pure",
    timeout_s=10,
)


async def calculate(payload: Calculator, _metadata: HandlerMetadata) -> HandlerResponse:
    try:
        return HandlerResponse.respond(shown(value_of(payload.expression)))
    except Unfit as error:
        return HandlerResponse.respond(ToolError("invalid_field", f"{error}."))


def shown(value: Value) -> Calculated:
    """The value as text: all its digits if there are few enough, else rounded, with the fraction that it is."""
    number = value.number
    try:
        exact = _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))
    except Inexact:
        exact = None
    if value.is_exact and exact is not None:
        return Calculated(f"{exact:f}")
    fraction = f"{number.numerator}/{number.denominator}" if value.is_exact else ""
    return Calculated(_rounded(number), exact=False, fraction=fraction)


def _rounded(number: Fraction) -> str:
    context = Context(prec=SHOWN_DIGITS)
    rounded = context.normalize(context.divide(Decimal(number.numerator), Decimal(number.denominator)))
    plain = f"{rounded:f}"
    return plain if len(plain) <= PLAIN_DIGITS else f"{rounded:e}"
