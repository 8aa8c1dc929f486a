"""A sum as a tree, and as the expression that calculators take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

LEVELS: Final[Mapping[str, int]] = {"+": 1, "-": 1, "*": 2, "/": 2, "share": 2, "mod": 2, "**": 3}
"""How strongly each operation binds."""
HUNDRED: Final = "100"

_ATOM: Final = 4


@dataclass(frozen=True, slots=True)
class Sum:
    """A number (``op`` is empty) or an operation; ``share`` is so many per cent.

    ``start`` and ``end`` say where it stands in the clause.
    """

    op: str
    parts: tuple[Sum, ...] = ()
    digits: str = ""
    start: int = 0
    end: int = 0

    @property
    def is_number(self) -> bool:
        return not self.op

    @property
    def level(self) -> int:
        return LEVELS.get(self.op, _ATOM)

    def numbers(self) -> Iterator[str]:
        """Its numbers, from left to right."""
        if self.is_number:
            yield self.digits
        for part in self.parts:
            yield from part.numbers()


def expression(found: Sum, power: str = "**") -> str:
    """The sum as calculators take it, with as few brackets as keep its meaning."""
    if found.is_number:
        return found.digits
    if found.op == "neg":
        return f"-{_bracketed(found.parts[0], 3, power)}"
    if found.op in ("sqrt", "cbrt"):
        return f"{found.op}({expression(found.parts[0], power)})"
    left, right = found.parts
    signs = {"mod": " % ", "**": power, "share": "/"}
    sign = signs.get(found.op, found.op)
    is_strict = found.op in ("-", "/", "share", "mod")
    return (
        _bracketed(left, found.level + (found.op == "**"), power)
        + sign
        + _bracketed(right, found.level + is_strict, power)
    )


def _bracketed(part: Sum, least: int, power: str) -> str:
    text = expression(part, power)
    return f"({text})" if part.level < least or (part.op == "neg") else text


def chained(op: str, items: Sequence[Sum]) -> Sum:
    total = items[0]
    for item in items[1:]:
        total = Sum(op, (total, item))
    return total


def changed(whole: Sum, op: str, share: Sum) -> Sum:
    """The whole and so many per cent of it more or less: ``250*(100+19)/100``."""
    return Sum("/", (Sum("*", (whole, Sum(op, (number(HUNDRED), share.parts[0])))), number(HUNDRED)))


def number(digits: str) -> Sum:
    """A number as a sum of its own."""
    return Sum("", digits=digits)


def per_cent(share: Sum) -> Sum:
    """So many per cent."""
    return Sum("share", (share, number(HUNDRED)))
