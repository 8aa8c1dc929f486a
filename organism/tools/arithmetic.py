"""Exact arithmetic on text: a tokenizer, a parser that computes as it reads, and bounds on everything that could grow.

    sum    := product (("+" | "-") product)*
    product:= sign (("*" | "/" | "//" | "%" | "of") sign)*
    sign   := ("+" | "-")* power
    power  := percent ("**" sign)?
    percent:= atom "%"*
    atom   := number | name "(" sum ("," sum)* ")" | "(" sum ")"

Numbers are fractions, so nothing is lost but in roots that have no exact value: those are right to 50 digits. ``%``
before a number, a name or a parenthesis is the remainder; elsewhere it is a percentage. ``200 + 10%`` is 220, as on any
pocket calculator, since a percentage that is added or taken away is one of what stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Overflow, Underflow
from fractions import Fraction
from math import ceil, floor, isqrt, log2
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 1_000
MAX_DEPTH: Final = 50
MAX_DIGITS: Final = 2_000
"""Of a numerator, a denominator, and a literal."""
MAX_ROOT: Final = 1_000
ROOT_DIGITS: Final = 50
MAX_BITS: Final = int(MAX_DIGITS * log2(10))

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:e[+-]?[0-9]+)?)"
    r"|(?P<name>[a-z]+)|(?P<sign>\*\*|//|[-+*/%^(),]))"
)
_WRITTEN_ELSEWHERE: Final = str.maketrans("×·∙÷−–", "***/--")
_CONTEXT: Final = Context(prec=ROOT_DIGITS + 10, traps=[Overflow, Underflow])


class Unfit(ValueError):
    """The text is no arithmetic, or its value cannot be had; says where and what was expected."""


class Value(NamedTuple):
    """A number. ``is_exact`` is false once a root had to be rounded; ``is_percent``: it was just written as one."""

    number: Fraction
    is_exact: bool = True
    is_percent: bool = False


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def value_of(text: str) -> Value:
    """The value of an expression. Raises ``Unfit``."""
    if len(text) > MAX_CHARACTERS:
        raise Unfit(f"an expression has at most {MAX_CHARACTERS} characters; {len(text)} came")
    reader = _Reader(_tokens(text.translate(_WRITTEN_ELSEWHERE).lower()))
    value = reader.sum()
    reader.expect_end()
    return value._replace(is_percent=False)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise Unfit(f"{text[at]!r} at character {at + 1} is not known in arithmetic")
        kind = str(found.lastgroup)
        tokens.append(_Token(kind, found[kind], found.start(kind) + 1))
        at = found.end()
    return [*tokens, _Token("end", "the end", end + 1)]


class _Reader:
    """Reads the tokens from left to right and computes on the way."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def sum(self) -> Value:
        """See the module."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unfit(f"parentheses and signs stand at most {MAX_DEPTH} deep")
        value = self._product()
        while (sign := self._take("+", "-")) is not None:
            value = _added(value, self._product(), sign.text)
        self._depth -= 1
        return value

    def _product(self) -> Value:
        value = self._sign()
        while (sign := self._take("*", "/", "//", "%", "of")) is not None:
            if sign.text == "of" and not value.is_percent:
                raise Unfit(f"`of` at character {sign.at} follows a percentage, as in `17% of 2340`")
            value = _OPERATIONS[sign.text](value, self._sign())
        return value

    def _sign(self) -> Value:
        minus = 0
        while (sign := self._take("+", "-")) is not None:
            minus += sign.text == "-"
        value = self._power()
        return value._replace(number=-value.number) if minus % 2 else value

    def _power(self) -> Value:
        value = self._percent()
        if self._take("**", "^") is None:
            return value
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unfit(f"powers stand at most {MAX_DEPTH} deep")
        value = power(value, self._sign())
        self._depth -= 1
        return value

    def _percent(self) -> Value:
        value = self._atom()
        while self._peek().text == "%" and not self._begins_operand(self._next + 1):
            self._next += 1
            value = Value(_bounded(value.number / 100), value.is_exact, is_percent=True)
        return value

    def _begins_operand(self, at: int) -> bool:
        token = self._tokens[at]
        return token.kind == "number" or token.text == "(" or (token.kind == "name" and token.text != "of")

    def _atom(self) -> Value:
        token = self._peek()
        self._next += 1
        if token.kind == "number":
            return Value(_literal(token))
        if token.kind == "name":
            return self._call(token)
        if token.text == "(":
            value = self.sum()
            self._close(token)
            return value._replace(is_percent=False)
        raise Unfit(f"expected a number, a function or `(` at character {token.at}; came {_shown(token)}")

    def _call(self, name: _Token) -> Value:
        function = _FUNCTIONS.get(name.text)
        if function is None:
            raise Unfit(f"there is no function `{name.text}`; there are {', '.join(_FUNCTIONS)}")
        opening = self._take("(")
        if opening is None:
            raise Unfit(f"expected `(` behind `{name.text}` at character {self._peek().at}")
        arguments = [self.sum()]
        while self._take(",") is not None:
            arguments.append(self.sum())
        self._close(opening)
        return function(arguments)

    def _close(self, opening: _Token) -> None:
        if self._take(")") is None:
            token = self._peek()
            raise Unfit(
                f"expected `)` at character {token.at}, for the `(` at character {opening.at}; came {_shown(token)}"
            )

    def expect_end(self) -> None:
        """Raise ``Unfit`` if anything is left."""
        token = self._peek()
        if token.text == ",":
            raise Unfit(
                f"`,` at character {token.at} stands only between a function's arguments; write 1000 for a thousand "
                "and 1.5 for one and a half"
            )
        if token.kind != "end":
            raise Unfit(f"expected an operator at character {token.at}; came {_shown(token)}")

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> _Token | None:
        token = self._peek()
        if token.text not in texts or token.kind == "end":
            return None
        self._next += 1
        return token


def _shown(token: _Token) -> str:
    return token.text if token.kind == "end" else f"`{token.text[:20]}`"


def _literal(token: _Token) -> Fraction:
    digits, _, exponent = token.text.replace("_", "").partition("e")
    too_large = Unfit(f"the number at character {token.at} has more than {MAX_DIGITS} digits")
    if len(exponent.lstrip("+-0")) > len(str(MAX_DIGITS)):
        raise too_large
    shift = int(exponent or "0")
    if len(digits) + abs(shift) > MAX_DIGITS:
        raise too_large
    return Fraction(digits) * Fraction(10) ** shift


def _bounded(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise Unfit(f"a value on the way has more than {MAX_DIGITS} digits")
    return number


def _added(left: Value, right: Value, sign: str) -> Value:
    amount = left.number * right.number if right.is_percent and not left.is_percent else right.number
    number = left.number + amount if sign == "+" else left.number - amount
    return Value(_bounded(number), left.is_exact and right.is_exact)


def _times(left: Value, right: Value) -> Value:
    return Value(_bounded(left.number * right.number), left.is_exact and right.is_exact)


def _over(left: Value, right: Value) -> Value:
    _refuse_zero(right)
    return Value(_bounded(left.number / right.number), left.is_exact and right.is_exact)


def _floor_over(left: Value, right: Value) -> Value:
    _refuse_zero(right)
    return Value(Fraction(left.number // right.number), left.is_exact and right.is_exact)


def _remainder(left: Value, right: Value) -> Value:
    _refuse_zero(right)
    return Value(_bounded(left.number % right.number), left.is_exact and right.is_exact)


def _refuse_zero(divisor: Value) -> None:
    if divisor.number == 0:
        raise Unfit("nothing can be divided by zero")


def power(base: Value, exponent: Value) -> Value:
    """``base`` to the ``exponent``; exact if there is an exact value. Raises ``Unfit``."""
    is_exact = base.is_exact and exponent.is_exact
    if base.number == 0:
        if exponent.number < 0:
            raise Unfit("zero has no negative power: nothing can be divided by zero")
        return Value(Fraction(int(exponent.number == 0)), is_exact)
    if base.number == 1:
        return Value(base.number, is_exact)
    if base.number != -1 and _bits(base.number) * abs(exponent.number) > MAX_BITS:
        raise Unfit(f"the power has more than {MAX_DIGITS} digits")
    whole, root = exponent.number.numerator, exponent.number.denominator
    if root == 1:
        whole = whole if abs(base.number) != 1 else whole % 2
        return Value(_bounded(base.number**whole), is_exact)
    if base.number < 0 and root % 2 == 0:
        raise Unfit("a negative number has no even root")
    found = _root(abs(base.number), root)
    sign = -1 if base.number < 0 and whole % 2 else 1
    if found is not None:
        return Value(_bounded(sign * found**whole), is_exact)
    return Value(sign * _rounded_power(abs(base.number), exponent.number), is_exact=False)


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length()) - 1


def _root(number: Fraction, degree: int) -> Fraction | None:
    """The exact root, if there is one."""
    if degree > MAX_ROOT:
        return None
    above, below = _whole_root(number.numerator, degree), _whole_root(number.denominator, degree)
    is_exact = above**degree == number.numerator and below**degree == number.denominator
    return Fraction(above, below) if is_exact else None


def _whole_root(number: int, degree: int) -> int:
    """The largest whole number whose power is not above ``number``, by Newton's way from above."""
    if degree == 2:  # noqa: PLR2004 - the square root
        return isqrt(number)
    guess = 1 << -(-number.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + number // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def _rounded_power(number: Fraction, exponent: Fraction) -> Fraction:
    try:
        root = _CONTEXT.power(_decimal(number), _decimal(exponent))
    except (Overflow, Underflow) as error:
        raise Unfit(f"the power has more than {MAX_DIGITS} digits") from error
    return _bounded(Fraction(Context(prec=ROOT_DIGITS).plus(root)))


def _decimal(number: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


Function = Callable[[list[Value]], Value]


def _of_one(name: str, apply: Callable[[Fraction], Fraction | int]) -> Function:
    def call(arguments: list[Value]) -> Value:
        _expect_count(name, arguments, 1, 1)
        return Value(Fraction(apply(arguments[0].number)), arguments[0].is_exact)

    return call


def _of_many(name: str, choose: Callable[..., Fraction]) -> Function:
    def call(arguments: list[Value]) -> Value:
        _expect_count(name, arguments, 1, MAX_CHARACTERS)
        return Value(choose(each.number for each in arguments), all(each.is_exact for each in arguments))

    return call


def _square_root(arguments: list[Value]) -> Value:
    _expect_count("sqrt", arguments, 1, 1)
    return power(arguments[0], Value(Fraction(1, 2)))


def _round(arguments: list[Value]) -> Value:
    """To so many digits behind the point (before it, if negative); halves go away from zero."""
    _expect_count("round", arguments, 1, 2)
    digits = arguments[1].number if len(arguments) > 1 else Fraction(0)
    if digits.denominator != 1 or abs(digits) > MAX_DIGITS:
        raise Unfit(f"`round` rounds to a whole number of digits, at most {MAX_DIGITS}")
    scale = Fraction(10) ** int(digits)
    scaled = abs(arguments[0].number) * scale
    number = floor(scaled + Fraction(1, 2)) / scale
    return Value(_bounded(number if arguments[0].number >= 0 else -number), arguments[0].is_exact)


def _expect_count(name: str, arguments: list[Value], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        count = str(least) if least == most else f"{least} or {most}"
        raise Unfit(f"`{name}` takes {count} argument{'s' * (most > 1)}; {len(arguments)} came")


_OPERATIONS: Final[Mapping[str, Callable[[Value, Value], Value]]] = {
    "*": _times,
    "of": _times,
    "/": _over,
    "//": _floor_over,
    "%": _remainder,
}
_FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": _of_one("abs", abs),
    "ceil": _of_one("ceil", ceil),
    "floor": _of_one("floor", floor),
    "max": _of_many("max", max),
    "min": _of_many("min", min),
    "round": _round,
    "sqrt": _square_root,
}
