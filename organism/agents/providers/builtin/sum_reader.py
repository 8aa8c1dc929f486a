"""Reads a sum from tokens by precedence climbing, with no step back further than the last sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.agents.providers.builtin.sum_tokens import MAX_SKIPPED, Cursor, Token
from organism.agents.providers.builtin.sum_tree import LEVELS, Sum, chained, changed, number, per_cent

MAX_DEPTH: Final = 16
MAX_LISTS: Final = 3
"""So deep may ``the sum of …`` stand in another one: each is read in two ways."""


class SumReader(Cursor):
    """Reads one sum from a token on. With ``joins``, ``and`` between numbers adds them."""

    def __init__(self, tokens: Sequence[Token], at: int, *, joins: bool) -> None:
        super().__init__(tokens, at)
        self._joins = joins
        self._depth = 0
        self._lists = 0

    def climb(self, level: int) -> Sum | None:
        """As much as binds at least as strongly as ``level``."""
        if self._depth >= MAX_DEPTH:
            return None
        self._depth += 1
        left = self._unary()
        while left is not None:
            longer = self._infix(left, level)
            if longer is None:
                break
            left = longer
        self._depth -= 1
        return left

    def _infix(self, left: Sum, level: int) -> Sum | None:
        """``left`` with the next operation behind it; None, and no token is taken, if there is none."""
        begin = self.at
        if self.kind() == "is" and self.kind(1) == "infix":
            self.at += 1
        token = self.took("infix", "and", ",") if self._joins else self.took("infix")
        op = "+" if token is not None and token.kind in ("and", ",") else token.value if token is not None else ""
        is_reversed = op.endswith("~")
        op = op.rstrip("~")
        bound = LEVELS.get(op, 0)
        if bound < level:
            self.at = begin
            return None
        right = self.climb(bound if op == "**" else bound + 1)
        if right is None:
            self.at = begin
            return None
        if op in ("+", "-") and right.op == "share":
            return changed(left, op, right)
        return Sum(op, (right, left) if is_reversed else (left, right))

    def _unary(self) -> Sum | None:
        begin = self.at
        sign = self.took("infix")
        if sign is not None:
            is_sign = sign.value in ("-", "+") and self.kind() != "infix"
            inner = self.climb(LEVELS["**"]) if is_sign else None
            self.at = begin if inner is None else self.at
            return Sum("neg", (inner,)) if inner is not None and sign.value == "-" else inner
        found = self._primary()
        while found is not None and (token := self.took("postfix")):
            found = Sum("**", (found, number(token.value)))
        return found

    def _primary(self) -> Sum | None:
        for read in (self._bracket, self._prefix, self._listed, self._fraction, self._number):
            begin = self.at
            found = read()
            if found is not None:
                return found
            self.at = begin
        return None

    def _bracket(self) -> Sum | None:
        inner = self.climb(1) if self.took("(") else None
        return inner if inner is not None and self.took(")") else None

    def _number(self) -> Sum | None:
        token = self.took("number")
        if token is None:
            return None
        value = number(token.value)
        return self._percent(value) if self.took("percent") else value

    def _percent(self, value: Sum) -> Sum:
        """``17 %``, and what it is of if that follows."""
        share = per_cent(value)
        begin = self.at
        self.skip_to("of", "on", "off")
        token = self.took("of", "on", "off")
        whole = self.operand(LEVELS["*"] + 1) if token is not None else None
        if token is None or whole is None:
            self.at = begin
            return share
        return changed(whole, "-", share) if token.kind == "off" else Sum("*", (share, whole))

    def operand(self, level: int) -> Sum | None:
        """What comes next, past some words that only name it: ``of my salary of 2,340``."""
        begin = self.at
        for _ in range(MAX_SKIPPED + 1):
            found = self.climb(level)
            if found is not None:
                return found
            if self.took("word", "of", "is", "on", "unit") is None:
                break
        self.at = begin
        return None

    def _prefix(self) -> Sum | None:
        """``square root of 16``, ``twice 4``, ``the square of 5``."""
        token = self.took("prefix")
        inner = self.operand(LEVELS["**"]) if token is not None else None
        if token is None or inner is None:
            return None
        if token.value in ("sqrt", "cbrt"):
            return Sum(token.value, (inner,))
        if token.value.startswith("/"):
            return Sum("/", (inner, number(token.value[1:])))
        if token.value.startswith("**"):
            return Sum("**", (inner, number(token.value[2:])))
        return Sum("*", (number(token.value), inner))

    def _fraction(self) -> Sum | None:
        """``a third of 90``, ``three quarters of 80``, ``half of 7``."""
        count = self.took("number")
        token = self.took("fraction")
        if token is None or not (self.took("of") or token.value == "2"):
            return None
        whole = self.operand(LEVELS["*"] + 1)
        if whole is None:
            return None
        share = Sum("/", (number(count.value if count else "1"), number(token.value)))
        return Sum("*", (share, whole)) if count else Sum("/", (whole, share.parts[1]))

    def _listed(self) -> Sum | None:
        """``the sum of 3, 4 and 5``, ``the difference between 9 and 4``."""
        token = self.took("listed") if self._lists < MAX_LISTS else None
        if token is None:
            return None
        self._lists += 1
        self.skip_to("of", "number")
        self.took("of")
        items = self._items(LEVELS["*"]) or self._items(LEVELS["+"])
        self._lists -= 1
        if not items:
            return None
        op = "+" if token.value == "mean" else token.value
        total = chained(op, items)
        return Sum("/", (total, number(str(len(items))))) if token.value == "mean" else total

    def _items(self, level: int) -> list[Sum]:
        """Two items or more; none, and no token is taken, if there are fewer."""
        begin, items = self.at, list[Sum]()
        while (item := self.item(level)) is not None:
            items.append(item)
            if not self._took_separator():
                break
        if len(items) > 1:
            return items
        self.at = begin
        return []

    def item(self, level: int = 1) -> Sum | None:
        joins, self._joins = self._joins, False
        item = self.operand(level)
        self._joins = joins
        return item

    def _took_separator(self) -> bool:
        begin = self.at
        took = self.took(",") is not None
        took = self.took("and", "with") is not None or took
        if not took:
            self.at = begin
        return took
