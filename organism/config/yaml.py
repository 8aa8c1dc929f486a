"""YAML as this project reads it: safe, small, and with the line of everything.

ruamel.yaml scans and parses; the tree is built here from its events, so that nothing of a document is resolved before
the bounds below were checked (S16), and nothing else than text, numbers, booleans, null, lists and mappings can come
of it. Values are those of the YAML 1.2 core schema whatever version a document claims, so ``no`` is the text "no";
keys are always text.
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
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Node:
    """A value with the line where it stands (of its key, if it has one).

    ``size`` counts it and all that is in it, ``depth`` the levels of lists and mappings; an alias counts as what it
    stands for.
    """

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
    """Reading on makes no sense; the fault is noted."""


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read. ``key`` is the mapping's key whose value comes next, with its line."""

    line: int
    place: Place
    anchor: str | None
    is_mapping: bool
    items: list[Node]
    entries: dict[str, Node]
    key: tuple[str, int] | None = None
    size: int = 1
    depth: int = 1


def read_yaml(text: str, faults: Faults, expected: str = ORGANISM) -> Node | None:
    """The tree of the one document in ``text``; None after a fault that ends the reading.

    A duplicate key, a tag or a number that cannot be held is a fault too, but the tree goes on without it.
    """
    builder = _Builder(faults)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
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
    if builder.root is None:
        faults.add(1, (), f"the file is empty; expected {expected}")
    return builder.root


class _Builder:
    """Builds the tree from events, without recursion: a deep document costs a fault, not the stack."""

    def __init__(self, faults: Faults) -> None:
        self.root: Node | None = None
        self._faults = faults
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._aliases = 0

    def take(self, event: seen.Event) -> None:
        """Take the next event."""
        line = event.start_mark.line + 1 if event.start_mark is not None else 1
        if isinstance(event, seen.AliasEvent):
            self._add(self._alias(event, line), line)
        elif isinstance(event, seen.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, seen.CollectionStartEvent):
            self._begin(event, line)
        elif isinstance(event, seen.CollectionEndEvent):
            self._end()
        elif isinstance(event, seen.DocumentStartEvent) and self.root is not None:
            self._refuse(line, "a second document begins here; expected one")

    def _scalar(self, event: seen.ScalarEvent, line: int) -> None:
        self._refuse_tag(event, line)
        if not event.value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in event.value):
            self._refuse(line, "expected characters, came half of a surrogate pair")
        is_key = bool(self._stack) and self._stack[-1].is_mapping and self._stack[-1].key is None
        value = event.value if is_key or not event.implicit[0] else self._resolved(event.value, line)
        self._add(Node(value, line), line, event.anchor)

    def _resolved(self, text: str, line: int) -> Scalar:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
            self._faults.add(line, self._place(), f"expected a finite number, came {text[:MAX_DIGITS]}")
            return None
        if _INTEGER.fullmatch(text):
            return self._integer(text, line)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _integer(self, text: str, line: int) -> int | None:
        if len(text) > MAX_DIGITS:
            expected = f"expected a number of at most {MAX_DIGITS} digits"
            self._faults.add(line, self._place(), f"{expected}, came one of {len(text)}")
            return None
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)

    def _begin(self, event: seen.CollectionStartEvent, line: int) -> None:
        self._refuse_tag(event, line)
        if self._stack and self._stack[-1].is_mapping and self._stack[-1].key is None:
            self._refuse(line, "expected text as key, came a list or a mapping")
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(line, f"nested deeper than {MAX_DEPTH} levels")
        is_mapping = isinstance(event, seen.MappingStartEvent)
        self._stack.append(_Open(line, self._place(), event.anchor, is_mapping, [], {}))

    def _end(self) -> None:
        done = self._stack.pop()
        value = done.entries if done.is_mapping else tuple(done.items)
        self._add(Node(value, done.line, done.size, done.depth), done.line, done.anchor)

    def _alias(self, event: seen.AliasEvent, line: int) -> Node:
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            self._refuse(line, f"more than {MAX_ALIASES} aliases; write the values out")
        node = self._anchors.get(event.anchor)
        if node is None:
            self._refuse(line, f"the alias *{event.anchor} has no anchor &{event.anchor} that is complete before it")
        return node

    def _add(self, node: Node, line: int, anchor: str | None = None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self.root = node
            return
        self._put(self._stack[-1], node, line)

    def _put(self, owner: _Open, node: Node, line: int) -> None:
        if owner.is_mapping and owner.key is None:
            owner.key = (str(node.value), line)
            return
        owner.size += node.size
        owner.depth = max(owner.depth, node.depth + 1)
        if owner.size > MAX_NODES:
            self._refuse(line, f"more than {MAX_NODES} values, aliases counted with what they stand for")
        if owner.depth > MAX_DEPTH:
            self._refuse(line, f"nested deeper than {MAX_DEPTH} levels, aliases counted with what they stand for")
        if owner.key is None:
            owner.items.append(node)
            return
        key, key_line = owner.key
        owner.key = None
        if key in owner.entries:
            first = owner.entries[key].line
            self._faults.add(key_line, (*owner.place, key), f"this key stands here twice, first in line {first}")
        else:
            owner.entries[key] = replace(node, line=key_line)

    def _place(self) -> Place:
        """Where the value that comes next will stand."""
        if not self._stack:
            return ()
        owner = self._stack[-1]
        if owner.is_mapping:
            return (*owner.place, owner.key[0]) if owner.key is not None else owner.place
        return (*owner.place, len(owner.items))

    def _refuse_tag(self, event: seen.NodeEvent, line: int) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._refuse(line, f"tags are not taken here, came {tag}; write the value without it")

    def _refuse(self, line: int, message: str) -> NoReturn:
        self._faults.add(line, self._place(), message)
        raise _Refused
