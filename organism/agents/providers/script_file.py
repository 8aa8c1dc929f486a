"""Reads a script from its YAML file; every fault is told with its line and key, all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from organism.agents.providers.script import (
    CHUNK_CHARS,
    Answer,
    FaultKind,
    ScriptedCall,
    ScriptedFault,
    ScriptedUsage,
    Text,
    When,
)
from organism.config.check import came, near
from organism.config.faults import Faults, Place
from organism.config.text import read_text
from organism.config.yaml import Node, read_yaml
from organism.model.completion import FinishReason
from organism.model.linear import Linear, linear

MAX_DELAY_S: Final = 3600

_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)
_STATUSES: Final[Mapping[int, FaultKind]] = {
    **dict.fromkeys((401, 403), "unauthorized"),
    **dict.fromkeys((400, 404, 413, 422), "rejected"),
    429: "rate_limited",
    **dict.fromkeys((500, 502, 503, 529), "unavailable"),
    **dict.fromkeys((408, 504), "timeout"),
}
_ANSWER: Final = (
    *("when", "text", "json", "thought", "calls", "finish", "usage", "fault"),
    *("chunk_chars", "delay_s", "chunk_delay_s", "times"),
)

Value = TypeVar("Value")


def read_script(path: Path) -> tuple[Answer, ...]:
    """The answers of a file. Raises ``ConfigInvalid`` with every fault, each with its line and key."""
    faults = Faults(path.name)
    text = read_text(path, faults, if_missing="name a YAML file with `answers`", if_large="split the script")
    faults.refuse_if_any()
    node = read_yaml(text, faults, "a mapping with `answers`")
    answers = tuple(_answers(_Spot(node, (), faults))) if node is not None else ()
    faults.refuse_if_any()
    return answers


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value of the file, where it stands, and where its faults go. What is wrong reads as None, or as nothing."""

    node: Node
    place: Place
    faults: Faults

    def refuse(self, expected: str, ending: str = "") -> None:
        """Note that something else was expected here."""
        self.faults.add(self.node.line, self.place, f"expected {expected}, came {came(self.node.plain())}{ending}")

    def entries(self, known: Sequence[str], *needed: str) -> _Entries:
        """The entries of a mapping of known keys."""
        value = self.node.value
        if not isinstance(value, dict):
            self.refuse(f"a mapping with {', '.join(f'`{key}`' for key in known)}")
            return _Entries({})
        spots = {key: _Spot(node, (*self.place, key), self.faults) for key, node in value.items()}
        for key in set(value) - set(known):
            hint = near(key, known) or f"; known here: {', '.join(known)}"
            spots[key].faults.add(spots[key].node.line, spots[key].place, f"unknown key `{key}`{hint}")
        for key in set(needed) - set(value):
            self.faults.add(self.node.line, (*self.place, key), f"`{key}` is missing")
        return _Entries(spots)

    def each(self) -> Iterator[_Spot]:
        """The items of a list."""
        value = self.node.value
        if not isinstance(value, tuple):
            self.refuse("a list")
            return
        for at, node in enumerate(value):
            yield _Spot(node, (*self.place, at), self.faults)

    def text(self) -> str | None:
        value = self.node.value
        if isinstance(value, str):
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        self.refuse("text", "; put it in quotes to make it text" if is_number else "")
        return None

    def count(self) -> int | None:
        value = self.node.value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.refuse("a whole number from 0 on")
        return None

    def positive(self) -> int | None:
        value = self.node.value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        self.refuse("a whole number from 1 on")
        return None

    def seconds(self) -> float | None:
        value = self.node.value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_DELAY_S:
            return float(value)
        self.refuse(f"seconds from 0 to {MAX_DELAY_S}")
        return None

    def dollars(self) -> Decimal | None:
        try:
            value = Decimal(str(self.node.value))
        except InvalidOperation:
            value = Decimal(-1)
        if value.is_finite() and value >= 0:
            return value
        self.refuse('US dollars such as "0.0021"')
        return None

    def one_of(self, known: Sequence[Value]) -> Value | None:
        for value in known:
            if value == self.node.value:
                return value
        names = [str(value) for value in known]
        close = near(self.node.value, names) if isinstance(self.node.value, str) else ""
        self.refuse(f"one of {', '.join(names)}", close)
        return None


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a mapping."""

    spots: Mapping[str, _Spot]

    def read(self, key: str, reader: Callable[[_Spot], Value | None]) -> Value | None:
        """What the reader makes of an entry; None where there is none."""
        spot = self.spots.get(key)
        return None if spot is None else reader(spot)

    def is_null(self, key: str) -> bool:
        return key in self.spots and self.spots[key].node.value is None


def _answers(root: _Spot) -> Iterator[Answer]:
    entries = root.entries(("answers",), "answers")
    for spot in entries.spots["answers"].each() if "answers" in entries.spots else ():
        yield _answer(spot)


def _answer(spot: _Spot) -> Answer:
    entries = spot.entries(_ANSWER)
    if {"text", "json"} <= set(entries.spots):
        wrong = entries.spots["json"]
        wrong.faults.add(wrong.node.line, wrong.place, "`text` stands here already; leave one of the two out")
    usage = None if entries.is_null("usage") else entries.read("usage", _usage) or ScriptedUsage()
    answer = Answer(
        when=entries.read("when", _when) or When(),
        text=entries.read("text", _Spot.text) or entries.read("json", _json) or "",
        thought=entries.read("thought", _Spot.text) or "",
        calls=entries.read("calls", lambda calls: tuple(map(_call, calls.each()))) or (),
        finish=entries.read("finish", _finish),
        usage=usage,
        fault=entries.read("fault", _fault),
        times=entries.read("times", _Spot.positive),
    )
    return replace(
        answer,
        chunk_chars=entries.read("chunk_chars", _Spot.positive) or CHUNK_CHARS,
        delay_s=entries.read("delay_s", _Spot.seconds) or 0.0,
        chunk_delay_s=entries.read("chunk_delay_s", _Spot.seconds) or 0.0,
    )


def _json(spot: _Spot) -> str:
    return json.dumps(spot.node.plain(), ensure_ascii=False)


def _when(spot: _Spot) -> When:
    if isinstance(spot.node.value, str):
        return When(user=Text(holds=spot.node.value))
    entries = spot.entries(("user", "tool_result", "system", "model", "turn", "round", "tools"))
    return When(
        user=entries.read("user", _match),
        tool_result=entries.read("tool_result", _match),
        system=entries.read("system", _match),
        model=entries.read("model", _Spot.text),
        turn=entries.read("turn", _Spot.count),
        round=entries.read("round", _Spot.count),
        tools=entries.read("tools", lambda names: tuple(name.text() or "" for name in names.each())) or (),
    )


def _match(spot: _Spot) -> Text:
    if not isinstance(spot.node.value, dict):
        return Text(holds=spot.text())
    entries = spot.entries(("holds", "is", "pattern"))
    return Text(entries.read("holds", _Spot.text), entries.read("is", _Spot.text), entries.read("pattern", _pattern))


def _pattern(spot: _Spot) -> Linear | None:
    source = spot.text()
    try:
        return linear(source) if source is not None else None
    except ValueError as error:
        spot.faults.add(spot.node.line, spot.place, f"this pattern is not taken: {error}")
        return None


def _call(spot: _Spot) -> ScriptedCall:
    entries = spot.entries(("name", "arguments", "raw", "id"), "name")
    return ScriptedCall(
        entries.read("name", _Spot.text) or "",
        entries.read("arguments", _arguments) or {},
        entries.read("raw", _Spot.text),
        entries.read("id", _Spot.text),
    )


def _arguments(spot: _Spot) -> Mapping[str, Any] | None:
    plain = spot.node.plain()
    if isinstance(plain, dict):
        return plain
    spot.refuse("a mapping", "; `raw` takes text that is no JSON object")
    return None


def _usage(spot: _Spot) -> ScriptedUsage:
    entries = spot.entries(("input_tokens", "output_tokens", "cost_usd"))
    return ScriptedUsage(
        entries.read("input_tokens", _Spot.count),
        entries.read("output_tokens", _Spot.count),
        entries.read("cost_usd", _Spot.dollars),
    )


def _fault(spot: _Spot) -> ScriptedFault | None:
    if not isinstance(spot.node.value, dict):
        kind = _kind(spot)
        return ScriptedFault(kind) if kind else None
    entries = spot.entries(("kind", "message", "retry_after_s", "after_chars"), "kind")
    kind = entries.read("kind", _kind)
    fault = ScriptedFault(
        kind or "rejected",
        entries.read("message", _Spot.text),
        entries.read("retry_after_s", _Spot.seconds),
        entries.read("after_chars", _Spot.count),
    )
    return fault if kind else None


def _kind(spot: _Spot) -> FaultKind | None:
    value = spot.node.value
    if isinstance(value, int) and not isinstance(value, bool):
        if value not in _STATUSES:
            spot.refuse(f"one of the statuses {', '.join(map(str, sorted(_STATUSES)))}")
        return _STATUSES.get(value)
    return spot.one_of(_KINDS)


def _finish(spot: _Spot) -> FinishReason | None:
    reasons: tuple[FinishReason, ...] = get_args(FinishReason)
    return spot.one_of(reasons)
