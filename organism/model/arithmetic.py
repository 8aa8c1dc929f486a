"""Exact arithmetic on text: Python's parser reads it, a table of allowed nodes computes it, and nothing is evaluated.

Numbers are fractions, so nothing is lost but in roots without an exact value: those are right to 50 digits. A ``%``
before a number, a name or a parenthesis is the remainder; behind a number it is a percentage elsewhere. ``200 + 10%``
is 220, as on any pocket calculator: a percentage that is added is one of what stands before it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from decimal import Context, Overflow, Underflow
from fractions import Fraction
from math import ceil, floor, isqrt, log2
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 1_000
MAX_DIGITS: Final = 2_000
"""Of a numerator, a denominator, and a literal."""
MAX_ROOT: Final = 1_000
ROOT_DIGITS: Final = 50
MAX_BITS: Final = int(MAX_DIGITS * log2(10))

_WRITTEN_ELSEWHERE: Final = str.maketrans({"×": "*", "·": "*", "∙": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_NUMBER: Final = r"(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[+-]?\d+)?"
_UNKNOWN: Final = re.compile(r"[^0-9a-z_.,+\-*/%() \t]|(?<![\w.])_")
_LETTER_AFTER_DIGIT: Final = re.compile(r"(?:\d|\d\.)(?!e[+-]?\d)[a-z_](?<!\d_)")
_LITERAL: Final = re.compile(_NUMBER)
_PERCENT: Final = re.compile(rf"(?<![\w.])({_NUMBER})\s*%(?!\s*(?:[\d.(]|(?!of\b)[a-z]))(\s*of\b)?")
_CONTEXT: Final = Context(prec=ROOT_DIGITS + 10, traps=[Overflow, Underflow])


class Unfit(ValueError):
    """The text is no arithmetic, or its value cannot be computed; says what was expected."""


class Value(NamedTuple):
    """A number. ``is_exact`` is false once a root had to be rounded; ``is_percent``: it was written as one."""

    number: Fraction
    is_exact: bool = True
    is_percent: bool = False


def value_of(text: str) -> Value:
    """The value of an expression. Raises ``Unfit``. Takes linear time, but for the arithmetic of bounded numbers."""
    if len(text) > MAX_CHARACTERS:
        raise Unfit(f"an expression has at most {MAX_CHARACTERS} characters; {len(text)} came")
    source = text.translate(_WRITTEN_ELSEWHERE).lower().strip()
    if (unknown := _UNKNOWN.search(source)) is not None:
        raise Unfit(f"{unknown.group()!r} is not known in arithmetic")
    source = _PERCENT.sub(lambda found: f"percent({found[1]})" + ("*" if found[2] else ""), source)
    if _LETTER_AFTER_DIGIT.search(source):  # Python warns of it; and `0x1f` and `2j` are not meant
        raise Unfit("expected an operator between a number and what follows it")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise Unfit(f"expected an expression such as (2 + 3) * 4 or 17% of 2340: {why}") from None
    nodes = list(ast.walk(tree))
    callees = {node.func for node in nodes if isinstance(node, ast.Call)}
    values: dict[ast.AST, Value] = {}
    for node in reversed(nodes):  # operands before what they are operands of, without recursion
        if isinstance(node, ast.expr) and node not in callees:
            values[node] = _computed(node, values, source)
    return values[tree]._replace(is_percent=False)


def is_arithmetic(text: str) -> bool:
    """Whether the text has a value."""
    try:
        value_of(text)
    except Unfit:
        return False
    return True


def _computed(node: ast.expr, values: Mapping[ast.AST, Value], source: str) -> Value:
    """The value of a node whose operands are computed."""
    match node:
        case ast.Constant():
            return Value(_literal(source[node.col_offset : node.end_col_offset]))
        case ast.BinOp(op=op) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](values[node.left], values[node.right])
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            value = values[node.operand]
            return value._replace(number=-value.number) if isinstance(node.op, ast.USub) else value
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            if name not in _FUNCTIONS:
                raise Unfit(f"there is no function `{name}`; there are {', '.join(_FUNCTIONS)}")
            least, most, apply = _FUNCTIONS[name]
            if not least <= len(node.args) <= most:
                count = f"{least} to {most}" if most > least else str(least)
                raise Unfit(f"`{name}` takes {count} argument{'s' * (most > 1)}; {len(node.args)} came")
            return apply(*(values[each] for each in node.args))
        case ast.Tuple():
            raise Unfit("`,` stands only between a function's arguments; write 1000 for a thousand")
        case ast.Name(id=name):
            raise Unfit(f"expected a number or a function in place of `{name}`; there are {', '.join(_FUNCTIONS)}")
    raise Unfit("expected numbers, + - * / // % **, parentheses, and functions with their arguments in parentheses")


def _literal(text: str) -> Fraction:
    if not _LITERAL.fullmatch(text):
        raise Unfit(f"`{text[:20]}` is no number in arithmetic")
    digits, _, exponent = text.replace("_", "").partition("e")
    is_huge = len(exponent.lstrip("+-0")) > len(str(MAX_DIGITS))
    if is_huge or len(digits) + abs(int(exponent or "0")) > MAX_DIGITS:
        raise Unfit(f"the number `{text[:20]}` has more than {MAX_DIGITS} digits")
    return Fraction(digits) * Fraction(10) ** int(exponent or "0")


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _bounded(number: Fraction) -> Fraction:
    if _bits(number) > MAX_BITS:
        raise Unfit(f"an intermediate value has more than {MAX_DIGITS} digits")
    return number


def _operation(apply: Callable[[Fraction, Fraction], Fraction | int]) -> Callable[[Value, Value], Value]:
    def operate(left: Value, right: Value) -> Value:
        try:
            number = Fraction(apply(left.number, right.number))
        except ZeroDivisionError:
            raise Unfit("nothing can be divided by zero") from None
        return Value(_bounded(number), left.is_exact and right.is_exact)

    return operate


def _sum(sign: int) -> Callable[[Value, Value], Value]:
    add = _operation(lambda left, right: left + sign * right)

    def operate(left: Value, right: Value) -> Value:
        is_share = right.is_percent and not left.is_percent
        return add(left, right._replace(number=left.number * right.number) if is_share else right)

    return operate


def power(base: Value, exponent: Value) -> Value:
    """``base`` to the ``exponent``; exact if there is an exact value. Raises ``Unfit``."""
    is_exact = base.is_exact and exponent.is_exact
    if base.number == 0:
        if exponent.number < 0:
            raise Unfit("zero has no negative power: nothing can be divided by zero")
        return Value(Fraction(int(exponent.number == 0)), is_exact)
    if base.number == 1:
        return Value(base.number, is_exact)
    if base.number != -1 and (_bits(base.number) - 1) * abs(exponent.number) > MAX_BITS:
        raise Unfit(f"the power has more than {MAX_DIGITS} digits")
    whole, root = exponent.number.numerator, exponent.number.denominator
    if root == 1:
        return Value(_bounded(base.number ** (whole if abs(base.number) != 1 else whole % 2)), is_exact)
    if base.number < 0 and root % 2 == 0:
        raise Unfit("a negative number has no even root")
    found = _root(abs(base.number), root)
    sign = -1 if base.number < 0 and whole % 2 else 1
    if found is not None:
        return Value(_bounded(sign * found**whole), is_exact)
    return Value(sign * _rounded_power(abs(base.number), exponent.number), is_exact=False)


def _root(number: Fraction, degree: int) -> Fraction | None:
    """The exact root, if there is one."""
    if degree > MAX_ROOT:
        return None
    above, below = _whole_root(number.numerator, degree), _whole_root(number.denominator, degree)
    is_exact = above**degree == number.numerator and below**degree == number.denominator
    return Fraction(above, below) if is_exact else None


def _whole_root(number: int, degree: int) -> int:
    """The largest whole number whose power is not above ``number``, by Newton's method from above."""
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
        root = _CONTEXT.power(*(_CONTEXT.divide(each.numerator, each.denominator) for each in (number, exponent)))
    except (Overflow, Underflow) as error:
        raise Unfit(f"the power has more than {MAX_DIGITS} digits") from error
    return _bounded(Fraction(Context(prec=ROOT_DIGITS).plus(root)))


def _of_one(apply: Callable[[Fraction], Fraction | int]) -> Callable[[Value], Value]:
    return lambda value: Value(Fraction(apply(value.number)), value.is_exact)


def _of_many(choose: Callable[..., Fraction]) -> Callable[..., Value]:
    return lambda *values: Value(choose(each.number for each in values), all(each.is_exact for each in values))


def _round(value: Value, digits: Value | None = None) -> Value:
    """To so many digits behind the point (before it, if negative); halves go away from zero."""
    count = digits.number if digits else Fraction(0)
    if count.denominator != 1 or abs(count) > MAX_DIGITS:
        raise Unfit(f"`round` rounds to a whole number of digits, at most {MAX_DIGITS}")
    scale = Fraction(10) ** int(count)
    number = floor(abs(value.number) * scale + Fraction(1, 2)) / scale
    return Value(_bounded(number if value.number >= 0 else -number), value.is_exact)


_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[Value, Value], Value]]] = {
    ast.Add: _sum(1),
    ast.Sub: _sum(-1),
    ast.Mult: _operation(lambda left, right: left * right),
    ast.Div: _operation(lambda left, right: left / right),
    ast.FloorDiv: _operation(lambda left, right: left // right),
    ast.Mod: _operation(lambda left, right: left % right),
    ast.Pow: power,
}
_FUNCTIONS: Final[Mapping[str, tuple[int, int, Callable[..., Value]]]] = {
    "abs": (1, 1, _of_one(abs)),
    "ceil": (1, 1, _of_one(ceil)),
    "floor": (1, 1, _of_one(floor)),
    "max": (1, MAX_CHARACTERS, _of_many(max)),
    "min": (1, MAX_CHARACTERS, _of_many(min)),
    "percent": (1, 1, lambda value: Value(_bounded(value.number / 100), value.is_exact, is_percent=True)),
    "round": (1, 2, _round),
    "sqrt": (1, 1, lambda value: power(value, Value(Fraction(1, 2)))),
}
