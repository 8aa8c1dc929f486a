"""Reads YAML safely, within bounds, and keeps the line of every value.

ruamel.yaml scans and parses; the tree is built here from its events, so that the bounds below are checked before
anything is resolved (S16), and only text, numbers, booleans, null, lists and mappings can come of it. Values are those
of the YAML 1.2 core schema whatever version a document claims, so ``no`` is the text "no"; keys are always text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml import events as seen
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from organism.config.faults import Faults, Place

MAX_DEPTH: Final = 32
MAX_NODES: Final = 100_000
MAX_ALIASES: Final = 32
MAX_DIGITS: Final = 40

ORGANISM: Final = "a mapping with `organism` and `listeners`"

Scalar = str | int | float | bool | None

_CONSTANTS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its line; ``size`` counts it and all in it, ``depth`` its levels; an alias counts as its target."""

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    line: int
    size: int = 1
    depth: int = 0

    def plain(self) -> Any:
        """The value in Python's own types, as JSON could hold it."""
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return self.value

    def items(self) -> Iterator[tuple[str | int, Node]]:
        """The nodes within, each with its key or index."""
        if isinstance(self.value, tuple):
            yield from enumerate(self.value)
        elif isinstance(self.value, dict):
            yield from self.value.items()

    def nearest(self, place: Place) -> Node:
        """The node at ``place``, or the last one on the way to it that is there."""
        node = self
        for step in place:
            inner = dict(node.items()).get(step)
            if inner is None:
                return node
            node = inner
        return node


class _Refused(Exception):
    """The document cannot be read further; the fault is noted."""


def read_yaml(text: str, faults: Faults, expected: str = ORGANISM) -> Node | None:
    """The tree of the one document in ``text``; None after a fault that ends the reading."""
    try:
        root = _Reader(YAML(typ="safe", pure=True).parse(text), faults).document()
    except _Refused:
        return None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        reason = " ".join(part for part in (error.context, error.problem) if part)
        column = f", column {mark.column + 1}" if mark is not None else ""
        faults.add(line, (), f"this is not YAML{column}: {reason}")
        return None
    except (YAMLError, ValueError, OverflowError) as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        faults.add(line, (), f"this is not YAML: {str(error).splitlines()[0]}")
        return None
    if root is None:
        faults.add(1, (), f"the file is empty; expected {expected}")
    return root


class _Reader:
    """Builds the tree from the parser's events; the recursion is no deeper than ``MAX_DEPTH``."""

    def __init__(self, events: Iterator[Any], faults: Faults) -> None:
        self._events = events
        self._faults = faults
        self._anchors: dict[str, Node] = {}
        self._aliases = 0

    def document(self) -> Node | None:
        root = None
        for event in self._events:
            if isinstance(event, seen.DocumentStartEvent):
                if root is not None:
                    self._refuse(_line(event), (), "a second document begins here; expected one")
                root = self._node(next(self._events), (), 0)
        return root

    def _node(self, event: Any, place: Place, depth: int, *, is_key: bool = False) -> Node:
        """The value that begins with the event; ``depth`` counts the lists and mappings around it."""
        line = _line(event)
        if isinstance(event, seen.AliasEvent):
            self._aliases += 1
            if self._aliases > MAX_ALIASES:
                self._refuse(line, place, f"more than {MAX_ALIASES} aliases; write the values out")
            if event.anchor not in self._anchors:
                message = f"the alias *{event.anchor} has no anchor &{event.anchor} that is complete before it"
                self._refuse(line, place, message)
            return self._anchors[event.anchor]
        if event.tag is not None:
            self._refuse(line, place, f"tags are not taken here, came {event.tag}; write the value without it")
        if isinstance(event, seen.ScalarEvent):
            is_text = is_key or not event.implicit[0]
            node = Node(self._scalar(event.value, is_text, line, place), line)
        elif depth >= MAX_DEPTH:
            self._refuse(line, place, f"nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, seen.MappingStartEvent):
            node = self._mapping(line, place, depth)
        else:
            node = self._list(line, place, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _list(self, line: int, place: Place, depth: int) -> Node:
        whole = Node((), line, depth=1)
        items: list[Node] = []
        while not isinstance(event := next(self._events), seen.SequenceEndEvent):
            inner_place = (*place, len(items))
            items.append(self._node(event, inner_place, depth + 1))
            whole = self._grown(whole, items[-1], _line(event), inner_place)
        return replace(whole, value=tuple(items))

    def _mapping(self, line: int, place: Place, depth: int) -> Node:
        entries: dict[str, Node] = {}
        whole = Node(entries, line, depth=1)
        while not isinstance(event := next(self._events), seen.MappingEndEvent):
            key_line, found = _line(event), self._node(event, place, depth + 1, is_key=True).value
            if isinstance(found, tuple | dict):
                self._refuse(key_line, place, "expected text as key, came a list or a mapping")
            key = str(found)
            inner = self._node(next(self._events), (*place, key), depth + 1)
            whole = self._grown(whole, inner, key_line, (*place, key))
            if key in entries:
                first = entries[key].line
                self._faults.add(key_line, (*place, key), f"this key stands here twice, first in line {first}")
            else:
                entries[key] = replace(inner, line=key_line)
        return whole

    def _grown(self, whole: Node, inner: Node, line: int, place: Place) -> Node:
        """A list or mapping with what one more value adds to its size and depth."""
        grown = replace(whole, size=whole.size + inner.size, depth=max(whole.depth, inner.depth + 1))
        if grown.size > MAX_NODES:
            self._refuse(line, place, f"more than {MAX_NODES} values, aliases counted with what they stand for")
        if grown.depth > MAX_DEPTH:
            self._refuse(
                line, place, f"nested deeper than {MAX_DEPTH} levels, aliases counted with what they stand for"
            )
        return grown

    def _scalar(self, text: str, is_text: bool, line: int, place: Place) -> Scalar:  # noqa: FBT001 - one caller
        if _SURROGATE.search(text):
            self._refuse(line, place, "expected characters, came half of a surrogate pair")
        if is_text:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
            wrong = f"expected a finite number, came {text[:MAX_DIGITS]}"
        elif _INTEGER.fullmatch(text) and len(text) > MAX_DIGITS:
            wrong = f"expected a number of at most {MAX_DIGITS} digits, came one of {len(text)}"
        elif _INTEGER.fullmatch(text):
            return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
        else:
            return float(text) if _FLOAT.fullmatch(text) else text
        self._faults.add(line, place, wrong)
        return None

    def _refuse(self, line: int, place: Place, message: str) -> NoReturn:
        self._faults.add(line, place, message)
        raise _Refused


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line
