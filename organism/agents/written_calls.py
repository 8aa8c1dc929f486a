"""Tool calls that a model writes into its text, as local models do where their server does not read them.

Understood, one or several, fenced, tagged and inside prose, and only for the functions that were offered:

- JSON: ``{"name": "f", "arguments": {…}}``, also with ``parameters``, ``args``, ``params``, ``kwargs`` or ``input``,
  in a list, or as OpenAI wraps it;
- Python: ``[f(a=1), g("x")]`` anywhere, ``f(a=1)`` on a line of its own;
- tags: ``<tool_call>…</tool_call>`` around either, ``<function=f>{…}</function>``.

A text that is nothing but a call whose arguments cannot be read is a call too: it is answered with what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NoReturn

from organism.agents.pythonic import NotPythonic, PythonicCall, read_call, read_literal

MOST_WASTED_CHARS: Final = 1_000_000
"""The search for calls ends after so many characters were read in vain, so that no text takes long."""
CHARS_A_PLACE: Final = 100
"""The least that looking at one place counts as."""
MOST_PLACES: Final = 100
"""Calls are taken at so many places; each is compared with all text from outside."""

_START: Final = re.compile(
    r"<tool_call>|<function=(?P<function>[\w.\-]+)>|\{(?=\s*[\"'])|\[(?=\s*[{A-Za-z_])"
    r"|(?m:^)[ \t]*(?=[A-Za-z_][\w.\-]*\()"
)
_TAG_ENDS: Final = re.compile(r"</tool_call>|(?=<tool_call>)|\Z")
_FUNCTION_ENDS: Final = re.compile(r"</function>|\Z")
_NEXT: Final = re.compile(r"[ \t]*[;,]?[ \t]*")
_LINE_ENDS: Final = re.compile(r"[ \t]*[;,]?[ \t]*(?:\n|\Z|```)")
_NAMED: Final = re.compile(r"[\"']name[\"']\s*:\s*[\"']([\w.\-]+)[\"']")
_BEGUN: Final = re.compile(
    r"[\s\[]*\{\s*(?:[\"'](?:id|type)[\"']\s*:\s*[\"'][^\"']*[\"']\s*,\s*)*[\"']name[\"']\s*:\s*[\"']([\w.\-]+)[\"']"
)
_WORDS: Final = ("arguments", "parameters", "args", "params", "kwargs", "input")
"""What models call the arguments of a call."""
_TEXTS: Final = frozenset({"arguments", "parameters"})
"""Where they may stand as a text, too."""
_ARGUED: Final = re.compile(rf"[\"'](?:{'|'.join(_WORDS)})[\"']\s*:")
_WRAPPING: Final = re.compile(r"```[a-zA-Z_]*|<\|[a-z_]+\|>|\[TOOL_CALLS\]|</?tool_calls?>")
_ONLY_SIGNS: Final = re.compile(r"[\s;,\[\]]*")
_KEYS: Final = frozenset({"name", "type", "id", *_WORDS})


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in a text. ``input`` is None where its arguments cannot be read; ``source`` is how it stands there."""

    name: str
    input: Mapping[str, Any] | None
    source: str


Offered = Mapping[str, Sequence[str]]
"""The functions that may be called, each with the names of its arguments in their order."""


def written_calls(text: str, offered: Offered, is_quoted: Callable[[str], bool]) -> tuple[tuple[WrittenCall, ...], str]:
    """The calls in a text, in their order, and what else it says.

    A call that ``is_quoted`` from text of others stays text.
    """
    if not any(name in text for name in offered):
        return (), text
    calls: list[WrittenCall] = []
    rest: list[str] = []
    end = 0
    for start, stop, found in islice(_found(text, offered), MOST_PLACES):
        if not is_quoted(text[start:stop]):
            calls += found
            rest.append(text[end:start])
            end = stop
    if not calls:
        return _broken(text, offered, is_quoted), text
    rest.append(text[end:])
    return tuple(calls), _prose(rest)


def _prose(pieces: Sequence[str]) -> str:
    """What is left between calls: no marks of their wrapping, no signs that separated them."""
    bare = [_WRAPPING.sub("", piece) for piece in pieces]
    return "".join(piece for piece in bare if not _ONLY_SIGNS.fullmatch(piece)).strip()


def _found(text: str, offered: Offered) -> Iterator[tuple[int, int, list[WrittenCall]]]:
    """Each place with calls: where it begins and ends, and what they are."""
    reader = _Reader(text, offered)
    at = 0
    while reader.wasted_chars < MOST_WASTED_CHARS and (start := _START.search(text, at)):
        reader.wasted_chars += CHARS_A_PLACE
        calls, at = reader.read(start)
        if calls:
            yield start.start(), at, calls


def _broken(text: str, offered: Offered, is_quoted: Callable[[str], bool]) -> tuple[WrittenCall, ...]:
    """The call that the whole text means to be, with arguments that cannot be read."""
    bare = _WRAPPING.sub("", text).strip()
    begun = _BEGUN.match(bare)
    if begun is None or not _ARGUED.search(bare) or begun[1] not in offered or is_quoted(bare):
        return ()
    return (WrittenCall(begun[1], None, bare),)


class _Reader:
    """Reads the calls that begin at a place."""

    def __init__(self, text: str, offered: Offered) -> None:
        self._text = text
        self._offered = offered
        self.wasted_chars = 0

    def read(self, start: re.Match[str]) -> tuple[list[WrittenCall], int]:
        """The calls there, and where to go on; none: what stands there is no call."""
        opening = start[0]
        if opening == "<tool_call>":
            return self._tagged(start.end())
        if start["function"]:
            return self._function(start["function"], start.end())
        if opening == "{":
            return self._value(start.start())
        if opening == "[":
            calls, end = self._value(start.start())
            return (calls, end) if calls else self._list(start.end())
        return self._line(start.end())

    def _tagged(self, at: int) -> tuple[list[WrittenCall], int]:
        """What stands between the tags is meant as a call, also where it cannot be read."""
        ends = _TAG_ENDS.search(self._text, at)
        stop, end = (ends.start(), ends.end()) if ends else (at, at)
        source = self._text[at:stop]
        calls = [call for _, _, found in _found_within(source, self._offered) for call in found]
        named = _NAMED.search(source)
        if not calls and named and named[1] in self._offered:
            calls = [WrittenCall(named[1], None, source.strip())]
        return calls, max(end, at)

    def _function(self, name: str, at: int) -> tuple[list[WrittenCall], int]:
        if name not in self._offered:
            return [], at
        ends = _FUNCTION_ENDS.search(self._text, at)
        stop, end = (ends.start(), ends.end()) if ends else (at, at)
        source = self._text[at:stop].strip()
        return [WrittenCall(name, _arguments(source), source)], end

    def _value(self, at: int) -> tuple[list[WrittenCall], int]:
        try:
            value, end = _literal(self._text, at)
        except NotPythonic as error:
            self.wasted_chars += 2 * (error.at - at)
            return [], at + 1
        calls = [self._of(item, self._text[at:end]) for item in (value if isinstance(value, list) else [value])]
        whole = [call for call in calls if call is not None]
        if len(whole) == len(calls):
            return whole, end
        self.wasted_chars += end - at
        return [], end

    def _of(self, value: Any, source: str) -> WrittenCall | None:
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
        return WrittenCall(name, _arguments(given) if isinstance(given, str) else _table(given), source)

    def _list(self, at: int) -> tuple[list[WrittenCall], int]:
        """``[f(a=1), g()]``; ``at`` is behind the bracket."""
        calls, end = self._sequence(at)
        closes = re.compile(r"\s*,?\s*\]").match(self._text, end)
        return (calls, closes.end()) if calls and closes else ([], at)

    def _line(self, at: int) -> tuple[list[WrittenCall], int]:
        calls, end = self._sequence(at)
        ends = _LINE_ENDS.match(self._text, end)
        return (calls, end) if calls and ends else ([], at + 1)

    def _sequence(self, at: int) -> tuple[list[WrittenCall], int]:
        """Calls one after the other, up to the first thing that is none."""
        calls: list[WrittenCall] = []
        while True:
            begins = re.compile(r"\s*").match(self._text, at)
            try:
                call = read_call(self._text, begins.end() if begins else at)
            except NotPythonic as error:
                self.wasted_chars += error.at - at
                return calls, at
            named = self._named(call)
            if named is None:
                return [], at
            calls.append(WrittenCall(call.name, named, self._text[at : call.end].strip()))
            between = _NEXT.match(self._text, call.end)
            at = call.end
            if between is None or not between[0].strip():
                return calls, at
            at = between.end()

    def _named(self, call: PythonicCall) -> dict[str, Any] | None:
        """The arguments by name; those without one are meant in the order of the function's own."""
        order = self._offered.get(call.name)
        if order is None or len(call.positional) > len(order):
            return None
        return {**dict(zip(order, call.positional, strict=False)), **call.named}


def _found_within(source: str, offered: Offered) -> Iterator[tuple[int, int, list[WrittenCall]]]:
    return _found(source, offered) if "<tool_call>" not in source else iter(())


def _literal(text: str, at: int) -> tuple[Any, int]:
    """The JSON value or Python literal that begins at ``at``, and its end. Raises ``NotPythonic``."""
    try:
        return json.JSONDecoder(parse_constant=_refuse).raw_decode(text, at)
    except json.JSONDecodeError as error:
        seen = error.pos
    except (ValueError, RecursionError):
        seen = at
    try:
        return read_literal(text, at)
    except NotPythonic as error:
        raise NotPythonic(str(error), max(seen, error.at)) from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _arguments(text: str) -> Mapping[str, Any] | None:
    if not text.strip():
        return {}
    try:
        value, end = _literal(text, len(text) - len(text.lstrip()))
    except NotPythonic:
        return None
    return _table(value) if not text[end:].strip() else None


def _table(value: Any) -> Mapping[str, Any] | None:
    return {} if value is None else value if isinstance(value, dict) else None
