"""The script of a scripted model: what it answers to which call, in code or read from a YAML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError

from organism.agents.providers.messages import TurnState
from organism.config.check import came, note
from organism.config.faults import Faults
from organism.config.text import read_text
from organism.config.yaml import Node, read_yaml
from organism.model.completion import FinishReason, ModelRequest
from organism.model.linear import Linear, linear, searchable

FaultKind = Literal["unauthorized", "rejected", "rate_limited", "unavailable", "timeout", "malformed", "hang", "cut"]

CHUNK_CHARS: Final = 20
MAX_DELAY_S: Final = 3600
STATUSES: Final[Mapping[int, FaultKind]] = {
    **dict.fromkeys((401, 403), "unauthorized"),
    **dict.fromkeys((400, 404, 413, 422), "rejected"),
    429: "rate_limited",
    **dict.fromkeys((500, 502, 503, 529), "unavailable"),
    **dict.fromkeys((408, 504), "timeout"),
}

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, le=MAX_DELAY_S)]


def _pattern(source: object) -> Linear:
    if not isinstance(source, str):
        raise ValueError(f"expected text, came {came(source)}")  # noqa: TRY004 - pydantic reports ValueErrors
    try:
        return linear(source)
    except ValueError as error:
        raise ValueError(f"this pattern is not taken: {error}") from error


@dataclass(frozen=True, slots=True)
class Text:
    """A condition on a text. ``holds`` ignores case, ``pattern`` is searched anywhere; None asks nothing."""

    holds: str | None = None
    is_: Annotated[str | None, Field(alias="is")] = None
    pattern: Annotated[Linear | None, PlainValidator(_pattern)] = None

    def fits(self, text: str) -> bool:
        if self.is_ is not None and text.strip() != self.is_.strip():
            return False
        if self.holds is not None and self.holds.casefold() not in text.casefold():
            return False
        return self.pattern is None or self.pattern.search(searchable(text)) is not None


@dataclass(frozen=True, slots=True)
class When:
    """Which calls an answer is for; None (or empty) asks nothing.

    ``user`` is the newest text of the user. Without ``tool_result`` it fits only while no tool result is unanswered;
    with it, one of the unanswered ones must fit.
    """

    user: Text | None = None
    tool_result: Text | None = None
    system: Text | None = None
    model: str | None = None
    turn: Count | None = None
    round: Count | None = None
    tools: tuple[str, ...] = ()

    def fits(self, request: ModelRequest, now: TurnState) -> bool:
        if self.tool_result is not None:
            if not any(self.tool_result.fits(result) for result in now.results):
                return False
        elif self.user is not None and now.results:
            return False
        texts = ((self.user, now.user), (self.system, now.system))
        values = ((self.model, request.model), (self.turn, now.turn), (self.round, now.round))
        return (
            all(wanted is None or wanted.fits(text) for wanted, text in texts)
            and all(wanted is None or wanted == value for wanted, value in values)
            and {tool.name for tool in request.tools}.issuperset(self.tools)
        )


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call to make; with ``raw`` its arguments are that text instead of ``arguments``."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """The usage to report; None is estimated."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Annotated[Decimal, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """How the call goes wrong: ``hang`` at its beginning, ``cut`` after so many characters (None: half of the text)."""

    kind: FaultKind
    message: str | None = None
    retry_after_s: Seconds | None = None
    after_chars: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. ``times`` bounds how often it is given (None: always). ``usage`` None reports none."""

    when: When = When()
    text: str = ""
    thought: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: FinishReason | None = None
    usage: ScriptedUsage | None = ScriptedUsage()
    fault: ScriptedFault | None = None
    chunk_chars: Positive = CHUNK_CHARS
    delay_s: Seconds = 0.0
    chunk_delay_s: Seconds = 0.0
    times: Positive | None = None


_ADAPTER: Final = TypeAdapter(tuple[Answer], config=ConfigDict(extra="forbid", strict=True))


def read_script(path: Path) -> tuple[Answer, ...]:
    """The answers of a file. Raises ``ConfigInvalid`` with every fault, each with its line and key."""
    faults = Faults(path.name)
    text = read_text(path, faults, if_missing="name a YAML file with `answers`", if_large="split the script")
    faults.refuse_if_any()
    root = read_yaml(text, faults, "a mapping with `answers`")
    answers = _answers(root, faults) if root is not None else ()
    faults.refuse_if_any()
    return answers


def _answers(root: Node, faults: Faults) -> tuple[Answer, ...]:
    if not isinstance(root.value, dict) or root.value.keys() != {"answers"}:
        faults.add(root.line, (), "expected a mapping with the one key `answers`")
        return ()
    listed = root.value["answers"]
    if not isinstance(listed.value, tuple):
        faults.add(listed.line, ("answers",), f"expected a list, came {came(listed.plain())}")
        return ()
    answers = (_answer(node, at, faults) for at, node in enumerate(listed.value))
    return tuple(answer for answer in answers if answer is not None)


def _answer(node: Node, at: int, faults: Faults) -> Answer | None:
    plain = node.plain()
    if isinstance(plain, dict):
        if {"text", "json"} <= plain.keys():
            faults.add(
                node.nearest(("json",)).line,
                ("answers", at, "json"),
                "`text` stands here already; leave one of the two out",
            )
        plain = _in_full(plain)
    try:
        (answer,) = _ADAPTER.validate_json(json.dumps([plain]))
    except ValidationError as error:
        note(Answer, error, node, ("answers", at), faults)
        return None
    return answer


def _in_full(plain: dict[str, Any]) -> dict[str, Any]:
    """An answer without the short forms that a file may use."""
    if "json" in plain:
        plain["text"] = json.dumps(plain.pop("json"), ensure_ascii=False)
    if isinstance(plain.get("when"), str):
        plain["when"] = {"user": plain["when"]}
    if isinstance(when := plain.get("when"), dict):
        texts = when.keys() & {"user", "tool_result", "system"}
        when.update({key: {"holds": when[key]} for key in texts if not isinstance(when[key], dict)})
    if isinstance(plain.get("fault"), str | int):
        plain["fault"] = {"kind": plain["fault"]}
    if isinstance(fault := plain.get("fault"), dict) and isinstance(fault.get("kind"), int):
        fault["kind"] = STATUSES.get(fault["kind"], fault["kind"])
    return plain
