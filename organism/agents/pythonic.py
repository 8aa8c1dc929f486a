"""Calls that a model writes as Python, ``f(a=1, b=["x"])``: read character by character, never run.

Taken are literals alone: texts, numbers, ``True``, ``False``, ``None`` (and JSON's words for them), lists, tuples and
dicts with text keys. Anything else is no call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

MOST_DEPTH: Final = 32

_SPACE: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_KEYWORD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.])")
_WORD: Final = re.compile(r"[A-Za-z]+\b")
_TEXT: Final = re.compile(
    r'"""((?:[^\\]|\\.)*?)"""|\'\'\'((?:[^\\]|\\.)*?)\'\'\'|"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'', re.DOTALL
)
_ESCAPE: Final = re.compile(
    r"\\(?:U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_WORDS: Final = {"True": True, "true": True, "False": False, "false": False, "None": None, "none": None, "null": None}
_CLOSES: Final = {"[": "]", "(": ")", "{": "}"}


class NotPythonic(ValueError):
    """What stands there is no call and no literal; ``at`` is where that was seen."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class PythonicCall:
    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    end: int


def read_call(text: str, at: int) -> PythonicCall:
    """The call that begins at ``at``. Raises ``NotPythonic``."""
    reader = _Reader(text, at)
    return reader.call()


def read_literal(text: str, at: int) -> tuple[Any, int]:
    """The literal that begins at ``at``, and where it ends. Raises ``NotPythonic``."""
    reader = _Reader(text, at)
    return reader.value(), reader.at


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._depth = 0
        self.at = at

    def call(self) -> PythonicCall:
        found = self._take(_NAME)
        self._expect("(")
        positional: list[Any] = []
        named: dict[str, Any] = {}
        while not self._closes(")"):
            keyword = self._find(_KEYWORD)
            if keyword is None:
                positional.append(self.value())
            else:
                named[keyword[1]] = self.value()
            self._separate(")")
        return PythonicCall(found[0], tuple(positional), named, self.at)

    def value(self) -> Any:
        self._space()
        sign = self._text[self.at : self.at + 1]
        if sign in _CLOSES:
            return self._nested(sign)
        quoted = self._find(_TEXT)
        if quoted is not None:
            return _unescaped(next(group for group in quoted.groups() if group is not None))
        number = self._find(_NUMBER)
        if number is not None:
            return _number(number)
        word = self._find(_WORD)
        if word is None or word[0] not in _WORDS:
            raise NotPythonic("expected a literal", self.at)
        return _WORDS[word[0]]

    def _nested(self, sign: str) -> Any:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise NotPythonic("nested too deep", self.at)
        self.at += 1
        found = self._table() if sign == "{" else self._items(_CLOSES[sign])
        self._depth -= 1
        return found

    def _items(self, end: str) -> list[Any]:
        items = []
        while not self._closes(end):
            items.append(self.value())
            self._separate(end)
        return items

    def _table(self) -> dict[str, Any]:
        table: dict[str, Any] = {}
        while not self._closes("}"):
            key = self.value()
            if not isinstance(key, str):
                raise NotPythonic("expected a text as key", self.at)
            self._expect(":")
            table[key] = self.value()
            self._separate("}")
        return table

    def _separate(self, end: str) -> None:
        """A comma, or the end that ``_closes`` takes next."""
        self._space()
        if self._text.startswith(",", self.at):
            self.at += 1
        elif not self._text.startswith(end, self.at):
            raise NotPythonic(f"expected a comma or {end}", self.at)

    def _closes(self, end: str) -> bool:
        self._space()
        if self.at >= len(self._text):
            raise NotPythonic(f"expected {end}, came the end", self.at)
        closes = self._text.startswith(end, self.at)
        self.at += closes
        return closes

    def _expect(self, sign: str) -> None:
        self._space()
        if not self._text.startswith(sign, self.at):
            raise NotPythonic(f"expected {sign}", self.at)
        self.at += 1

    def _space(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return found

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = self._find(pattern)
        if found is None:
            raise NotPythonic("expected a name", self.at)
        return found


def _number(found: re.Match[str]) -> int | float:
    try:
        value = float(found[0]) if found[1] or found[2] else int(found[0])
    except ValueError as error:  # more digits than Python reads
        raise NotPythonic("a number with too many digits", found.end()) from error
    if not isfinite(value):
        raise NotPythonic("a number beyond all bounds", found.end())
    return value


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_unescape, text)


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[4], found[4])
