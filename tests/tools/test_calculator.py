"""The calculator: exact, bounded, and clear about what it does not take."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.model.arithmetic import Unfit, Value, value_of
from organism.model.tool import ToolError
from organism.tools.calculator import Calculated, Calculator, calculate, shown


async def answered(expression: str) -> Calculated | ToolError:
    answer = await calculate(Calculator(expression), cast("Any", None))
    assert isinstance(answer.payload, Calculated | ToolError)
    return answer.payload


EXACT = {
    "2*21": "42",
    " 1 + 2 * 3 ": "7",
    "7 / 8": "0.875",
    "-7 / 8": "-0.875",
    "0.1 + 0.2": "0.3",
    "1e3": "1000",
    ".5 + 1.": "1.5",
    "1_000_000": "1000000",
    "2^10": "1024",
    "2 ** 3 ** 2": "512",
    "-2 ** 2": "-4",
    "2 ** -2": "0.25",
    "--3": "3",
    "0 ** 0": "1",
    "(-1) ** 999999999999": "-1",
    "1 ** (10 ** 500)": "1",
    "17 % 5": "2",
    "17 // 5": "3",
    "7.5 % 2": "1.5",
    "17 % of 2340": "397.8",
    "17 % OF 2340 + 1": "398.8",
    "50%": "0.5",
    "5% * 200": "10",
    "200 + 10%": "220",
    "200 + (10%)": "220",
    "(" * 51 + "1" + ")" * 51: "1",
    "2" + "**1" * 60: "2",
    "+".join("1" * 500): "500",
    "10% + 5%": "0.15",
    "10% % 3": "0.1",
    "12 × 3 ÷ 4 − 1": "8",
    "abs(-3)": "3",
    "ceil(1.2)": "2",
    "max(1, 3, 2)": "3",
    "round(2.5)": "3",
    "round(3.14159, 2)": "3.14",
    "round(1250, -2)": "1300",
    "sqrt(16)": "4",
    "sqrt(2) ** 0": "1",
    "27 ** (1/3)": "3",
    "4 ** -0.5": "0.5",
    "SQRT(9)": "3",
    "1 / 2 ** 70": "0.0000000000000000000008470329472543003390683225006796419620513916015625",
}


@pytest.mark.parametrize("expression", EXACT)
async def test_it_computes_exactly(expression: str) -> None:
    found = await answered(expression)
    assert isinstance(found, Calculated)
    assert found.value == EXACT[expression]


@pytest.mark.parametrize(
    ("expression", "value", "fraction"),
    [
        ("1/3", "0.333333333333333333333333333333", "1/3"),
        ("-2/3", "-0.666666666666666666666666666667", "-2/3"),
        ("1/3 + 1/6 + 1/7", "0.642857142857142857142857142857", "9/14"),
        ("sqrt(2)", "1.41421356237309504880168872421", ""),
        ("2 ** 0.5 * 10 ** 100", "1.41421356237309504880168872421e+100", ""),
        ("1/3 / 10 ** 60", "3.33333333333333333333333333333e-61", None),
    ],
)
async def test_what_has_no_exact_digits_is_rounded_and_says_so(
    expression: str, value: str, fraction: str | None
) -> None:
    found = await answered(expression)
    assert isinstance(found, Calculated)
    assert (found.value, found.exact) == (value, False)
    assert fraction is None or found.fraction == fraction


NO_EXPRESSION = "expected an expression such as (2 + 3) * 4 or 17% of 2340: "
FUNCTIONS = "there are abs, ceil, floor, max, min, percent, round, sqrt."
OPERATORS = "expected numbers, + - * / // % **, parentheses, and functions with their arguments in parentheses"
WRONG = {
    "": f"{NO_EXPRESSION}invalid syntax.",
    "1 +": f"{NO_EXPRESSION}invalid syntax.",
    "1 2": f"{NO_EXPRESSION}invalid syntax.",
    "(1": f"{NO_EXPRESSION}'(' was never closed.",
    "(" * 300 + "1" + ")" * 300: f"{NO_EXPRESSION}too many nested parentheses.",
    "2(3)": f"{OPERATORS}.",
    "1,000": "`,` stands only between a function's arguments; write 1000 for a thousand.",
    "1 / 0": "nothing can be divided by zero.",
    "0 ** -1": "zero has no negative power: nothing can be divided by zero.",
    "sqrt(-1)": "a negative number has no even root.",
    "(-2) ** 0.5": "a negative number has no even root.",
    "sin(1)": f"there is no function `sin`; {FUNCTIONS}",
    "x + 1": f"expected a number or a function in place of `x`; {FUNCTIONS}",
    "sqrt(1, 2)": "`sqrt` takes 1 argument; 2 came.",
    "round(1, 0.5)": "`round` rounds to a whole number of digits, at most 2000.",
    "max()": "`max` takes 1 to 1000 arguments; 0 came.",
    "2 $ 3": "'$' is not known in arithmetic.",
    "٣ + 1": "'٣' is not known in arithmetic.",
    "__import__('os')": "'_' is not known in arithmetic.",
    "0x1f": "expected an operator between a number and what follows it.",
    "1e2001": "the number `1e2001` has more than 2000 digits.",
    "1e-99999": "the number `1e-99999` has more than 2000 digits.",
    "9 ** 9 ** 9": "the power has more than 2000 digits.",
    "2 ** 0.5 ** -40": "the power has more than 2000 digits.",
    "1.0000001 ** 1e9": "the power has more than 2000 digits.",
    "10 ** 1500 * 10 ** 1500": "an intermediate value has more than 2000 digits.",
}


@pytest.mark.parametrize("expression", WRONG)
async def test_what_it_does_not_take_is_refused_by_what_was_expected(expression: str) -> None:
    assert await answered(expression) == ToolError("invalid_field", WRONG[expression])


def test_a_long_expression_is_refused_before_it_is_read() -> None:
    with pytest.raises(Unfit, match="at most 1000 characters; 1001 came"):
        value_of("1" * 1001)


@pytest.mark.parametrize(
    "expression",
    [
        "9**" * 332 + "9",
        "sqrt(" * 100 + "2" + ")" * 100,
        "*".join(["9" * 8] * 110),
        "2**6600 - 3" + "/7" * 300,
        "max(" + ",".join(["7**2000"] * 120) + ")",
        "(7**2300) ** (1/997)",
        "%" * 1000,
    ],
)
async def test_nothing_makes_it_hang(expression: str) -> None:
    assert isinstance(await answered(expression), Calculated | ToolError)


@given(st.fractions(max_denominator=10**6))
def test_what_is_shown_as_exact_is_the_value(number: Fraction) -> None:
    found = shown(Value(number))
    if found.exact:
        assert Fraction(found.value) == number
    else:
        assert Fraction(found.fraction) == number
        assert abs(Fraction(found.value) - number) <= abs(number) / 10**29


@given(st.text(alphabet="0123456789.+-*/%^() ,eofsqrtabmxin", max_size=40))
def test_any_text_gives_a_value_or_says_what_is_wrong(expression: str) -> None:
    with suppress(Unfit):
        assert isinstance(shown(value_of(expression)), Calculated)
