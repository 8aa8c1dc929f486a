"""Tool calls that a model writes into its text, as local models do where their server does not read them.

Understood, one or several, fenced, tagged and inside prose, and only for the functions that were offered:

- JSON: ``{"name": "f", "arguments": {…}}``, also with ``parameters``, ``args``, ``params``, ``kwargs`` or ``input``,
  in a list, or as OpenAI wraps it;
- Python: ``[f(a=1), g("x")]`` anywhere, ``f(a=1)`` on a line of its own;
- tags: ``<tool_call>…</tool_call>`` around either, ``<function=f>{…}</function>``.

A text that is nothing but a call whose arguments cannot be read is a call too: it is answered with what is wrong. JSON
and Python are read by one reader of literals; nothing is ever run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import isfinite
from typing import Any, Final, NamedTuple

from organism.model.completion import ToolCall

MOST_WASTED_CHARS: Final = 1_000_000
"""The search ends after reading so many characters in vain, so that no text takes long."""
CHARS_A_PLACE: Final = 100
"""What looking at one place costs at least."""
MOST_PLACES: Final = 100
"""Calls are taken at so many places: each is compared with all text from outside."""
MOST_DEPTH: Final = 32

_START: Final = re.compile(
    r"<tool_call>|<function=(?P<function>[\w.\-]+)>|\{(?=\s*[\"'])|\[(?=\s*[{A-Za-z_])"
    r"|(?m:^)[ \t]*(?=[A-Za-z_][\w.\-]*\()"
)
_TAG_ENDS: Final = re.compile(r"</tool_call>|(?=<tool_call>)")
_FUNCTION_ENDS: Final = re.compile(r"</function>")
_LINE_ENDS: Final = re.compile(r"[ \t]*+(?:[;,][ \t]*+)?(?:\n|\Z|```)")
_NAMED: Final = re.compile(r"[\"']name[\"']\s*:\s*[\"']([\w.\-]+)[\"']")
_BEGUN: Final = re.compile(
    r"[\s\[]*\{\s*(?:[\"'](?:id|type)[\"']\s*:\s*[\"'][^\"']*[\"']\s*,\s*)*[\"']name[\"']\s*:\s*[\"']([\w.\-]+)[\"']"
)
_WORDS: Final = ("arguments", "parameters", "args", "params", "kwargs", "input")
"""The keys under which models write a call's arguments."""
_TEXTS: Final = frozenset({"arguments", "parameters"})
"""The keys under which they may stand as text, too."""
_ARGUED: Final = re.compile(rf"[\"'](?:{'|'.join(_WORDS)})[\"']\s*:")
_WRAPPING: Final = re.compile(r"```[a-zA-Z_]*|<\|[a-z_]+\|>|\[TOOL_CALLS\]|</?tool_calls?>")
_ONLY_SIGNS: Final = re.compile(r"[\s;,\[\]]*")
_KEYS: Final = frozenset({"name", "type", "id", *_WORDS})

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))"
    r"|(?P<keyword>[A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)|(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)|(?P<sign>[\[\](){},:]))",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(?:U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_CONSTANTS: Final = {"True": True, "true": True, "False": False, "false": False} | dict.fromkeys(
    ("None", "none", "null")
)
_CLOSES: Final = {"[": "]", "(": ")", "{": "}"}


Offered = Mapping[str, Sequence[str]]
"""The functions that may be called, each with the names of its arguments in their order."""


def written_calls(text: str, offered: Offered, is_quoted: Callable[[str], bool]) -> tuple[tuple[ToolCall, ...], str]:
    """The calls in a text, in order, and the rest of the text. What ``is_quoted`` from text of others stays text."""
    if not any(name in text for name in offered):
        return (), text
    calls: list[ToolCall] = []
    rest: list[str] = []
    end = 0
    for start, stop, found in islice(_Search(text, offered).found(), MOST_PLACES):
        if not is_quoted(text[start:stop]):
            calls += found
            rest.append(text[end:start])
            end = stop
    if not calls:
        return _broken(text, offered, is_quoted), text
    rest.append(text[end:])
    return tuple(calls), _prose(rest)


def _prose(pieces: Sequence[str]) -> str:
    """The text between calls, without their wrapping and separators."""
    bare = [_WRAPPING.sub("", piece) for piece in pieces]
    return "".join(piece for piece in bare if not _ONLY_SIGNS.fullmatch(piece)).strip()


def _broken(text: str, offered: Offered, is_quoted: Callable[[str], bool]) -> tuple[ToolCall, ...]:
    """The call that the whole text is meant to be, with unreadable arguments."""
    bare = _WRAPPING.sub("", text).strip()
    begun = _BEGUN.match(bare)
    if begun is None or not _ARGUED.search(bare) or begun[1] not in offered or is_quoted(bare):
        return ()
    return (_call(begun[1], None, bare),)


class _Search:
    """Finds the calls of a text. Each way to read some gives those that begin there, and where to go on."""

    def __init__(self, text: str, offered: Offered) -> None:
        self._text = text
        self._offered = offered
        self._wasted_chars = 0

    def found(self) -> Iterator[tuple[int, int, list[ToolCall]]]:
        """Each place with calls: where it begins and ends, and what they are."""
        at = 0
        while self._wasted_chars < MOST_WASTED_CHARS and (start := _START.search(self._text, at)):
            self._wasted_chars += CHARS_A_PLACE
            calls, at = self._read(start)
            if calls:
                yield start.start(), at, calls

    def _read(self, start: re.Match[str]) -> tuple[list[ToolCall], int]:
        if start[0] == "<tool_call>":
            return self._tagged(start.end())
        if start["function"]:
            return self._function(start["function"], start.end())
        is_line = start[0] not in {"{", "["}
        return self._expression(start.end() if is_line else start.start(), is_line=is_line)

    def _until(self, ends: re.Pattern[str], at: int) -> tuple[str, int]:
        found = ends.search(self._text, at)
        return (self._text[at : found.start()], found.end()) if found else (self._text[at:], len(self._text))

    def _tagged(self, at: int) -> tuple[list[ToolCall], int]:
        """Text between the tags is meant as a call, even if it cannot be read."""
        source, end = self._until(_TAG_ENDS, at)
        calls = [call for _, _, found in _Search(source, self._offered).found() for call in found]
        named = _NAMED.search(source)
        if not calls and named and named[1] in self._offered:
            calls = [_call(named[1], None, source.strip())]
        return calls, end

    def _function(self, name: str, at: int) -> tuple[list[ToolCall], int]:
        if name not in self._offered:
            return [], at
        source, end = self._until(_FUNCTION_ENDS, at)
        return [_call(name, _arguments(source), source.strip())], end

    def _expression(self, at: int, *, is_line: bool) -> tuple[list[ToolCall], int]:
        """What is nothing but a call or a list of calls; ``is_line``: on a line of its own."""
        reader = _Literals(self._text, at)
        with suppress(NotLiteral):
            value = reader.expression()
            source = self._text[at : reader.at]
            found = [self._call_in(item, source) for item in (value if isinstance(value, list) else [value])]
            calls = [call for call in found if call is not None]
            if len(calls) == len(found) and (not is_line or _LINE_ENDS.match(self._text, reader.at)):
                return calls, reader.at
            if isinstance(value, dict):  # what it holds is no call either
                self._wasted_chars += reader.at - at
                return [], reader.at
        self._wasted_chars += reader.at - at
        return [], at + 1

    def _call_in(self, value: Any, source: str) -> ToolCall | None:
        if isinstance(value, _Called):
            order = self._offered.get(value.name)
            if order is None or len(value.positional) > len(order):
                return None
            return _call(value.name, {**dict(zip(order, value.positional, strict=False)), **value.named}, source)
        inner = value.get("function") if isinstance(value, dict) else None
        value = inner if isinstance(inner, dict) else value
        if not isinstance(value, dict) or not _KEYS.issuperset(value):
            return None
        name = value.get("name")
        if not isinstance(name, str) or name not in self._offered:
            return None
        word = next((word for word in _WORDS if word in value), "arguments")
        given = value.get(word)
        if word not in _TEXTS and not isinstance(given, dict):
            return None
        return _call(name, _arguments(given) if isinstance(given, str) else _table(given), source)


def _arguments(text: str) -> Mapping[str, Any] | None:
    """The arguments in a text that is nothing else; None if it cannot be read."""
    if not text.strip():
        return {}
    reader = _Literals(text, 0)
    try:
        value = reader.value()
    except NotLiteral:
        return None
    return _table(value) if not text[reader.at :].strip() else None


def _table(value: Any) -> Mapping[str, Any] | None:
    return {} if value is None else value if isinstance(value, dict) else None


def _call(name: str, given: Mapping[str, Any] | None, source: str) -> ToolCall:
    """A call, which gets its id later. If its arguments cannot be read, it stands as ``source`` in the text."""
    return ToolCall("", name, given, source if given is None else None)


class NotLiteral(ValueError):
    """What stands there is no call and no literal."""


class _Called(NamedTuple):
    """A call as Python writes it."""

    name: str
    positional: list[Any]
    named: dict[str, Any]


class _Literals:
    """Reads literals of Python and JSON, and calls with them, up to ``at``. Each method raises ``NotLiteral``."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._depth = 0
        self.at = at

    def expression(self) -> Any:
        """A literal, a call, or a list of both."""
        token = self._next()
        return (
            list(map(self._call_or_value, self._items("]"))) if token == ("sign", "[") else self._call_or_value(token)
        )

    def _call_or_value(self, token: tuple[str, str]) -> Any:
        kind, name = token
        if kind != "name" or name in _CONSTANTS:
            return self._value(token)
        self._expect(self._next() == ("sign", "("))
        called = _Called(name, [], {})
        for argument in self._items(")"):
            if argument[0] == "keyword":
                called.named[argument[1]] = self.value()
            else:
                called.positional.append(self._value(argument))
        return called

    def value(self) -> Any:
        return self._value(self._next())

    def _next(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self.at)
        if found is None or found.lastgroup is None:
            raise NotLiteral
        self.at = found.end()
        return found.lastgroup, found[found.lastgroup]

    def _expect(self, is_so: bool) -> None:  # noqa: FBT001 - an assertion
        if not is_so:
            raise NotLiteral

    def _items(self, end: str) -> Iterator[tuple[str, str]]:
        """The first token of each item up to ``end``; the caller reads the rest of the item."""
        token = self._next()
        while token != ("sign", end):
            yield token
            token = self._next()
            if token == ("sign", ","):
                token = self._next()
            else:
                self._expect(token == ("sign", end))

    def _value(self, token: tuple[str, str]) -> Any:
        kind, text = token
        if kind == "text":
            return _unescaped(text)
        if kind == "number":
            return _number(text)
        if kind == "name" and text in _CONSTANTS:
            return _CONSTANTS[text]
        self._expect(kind == "sign" and text in _CLOSES and self._depth < MOST_DEPTH)
        self._depth += 1
        items = self._items(_CLOSES[text])
        found = dict(map(self._entry, items)) if text == "{" else list(map(self._value, items))
        self._depth -= 1
        return found

    def _entry(self, token: tuple[str, str]) -> tuple[str, Any]:
        self._expect(token[0] == "text" and self._next() == ("sign", ":"))
        return _unescaped(token[1]), self.value()


def _number(text: str) -> int | float:
    try:
        value = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError as error:  # more digits than Python reads
        raise NotLiteral from error
    if isinstance(value, float) and not isfinite(value):
        raise NotLiteral
    return value


def _unescaped(quoted: str) -> str:
    width = 3 if quoted[:3] in {'"""', "'''"} else 1
    text = _ESCAPE.sub(_unescape, quoted[width:-width])
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # joins halves of characters


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[4], found[4])
