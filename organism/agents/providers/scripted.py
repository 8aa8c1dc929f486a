"""A model that answers from a script: for tests of agents, ours and users' (docs/agents.md describes the file)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError

from organism.agents.providers import Fault, ProviderError
from organism.agents.providers.messages import SYSTEM_ROLES, text_of, tokens_of, tokens_of_call, tokens_of_request
from organism.config.check import Section, came, note
from organism.config.faults import Faults, read_text
from organism.config.yaml import Node, read_yaml
from organism.model.completion import (
    ChatMessage,
    Finish,
    FinishReason,
    ModelRequest,
    Part,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from organism.model.linear import Linear, linear, searchable

FaultKind = Literal[Fault, "hang", "cut"]

CHUNK_CHARS: Final = 20
SHOWN_CHARS: Final = 80
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
Sleep = Callable[[float], Awaitable[object]]


def _pattern(source: object) -> Linear:
    if not isinstance(source, str):
        raise ValueError(f"expected text, came {came(source)}")  # noqa: TRY004 - pydantic reports ValueErrors
    try:
        return linear(source)
    except ValueError as error:
        raise ValueError(f"this pattern is not taken: {error}") from error


class _CallState:
    """What conditions look at: the user's newest text and its number, the answers since, and open tool results."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self.system = self.user = ""
        self.turn = self.round = 0
        self.results: list[str] = []
        for message in messages:
            role, text = message.get("role"), text_of(message.get("content"))
            if role in SYSTEM_ROLES:
                self.system += f"{text}\n"
            elif role == "user":
                self.user, self.turn, self.round, self.results = text, self.turn + 1, 0, []
            elif role == "assistant":
                self.round, self.results = self.round + 1, []
            elif role == "tool":
                self.results.append(text)


@dataclass(frozen=True, slots=True)
class Text:
    """A condition on a text. ``holds`` ignores case, ``pattern`` is searched anywhere; None means any."""

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
    """Which calls an answer is for; None means any, but ``user`` alone wants no open tool result."""

    user: Text | None = None
    tool_result: Text | None = None
    system: Text | None = None
    model: str | None = None
    turn: Count | None = None
    round: Count | None = None
    tools: tuple[str, ...] = ()

    def fits(self, request: ModelRequest, now: _CallState) -> bool:
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


class Scripted:
    """Answers with the script's first answer that fits and is not used up. Its errors quote the user."""

    def __init__(self, answers: Sequence[Answer], name: str = "the script", sleep: Sleep = asyncio.sleep) -> None:
        self._answers = tuple(answers)
        self._name = name
        self._sleep = sleep
        self._given = [0] * len(self._answers)

    @classmethod
    def read(cls, path: Path, sleep: Sleep = asyncio.sleep) -> Scripted:
        """Raises ``ConfigInvalid`` with every fault of the file, each with its line and key."""
        return cls(_read(path), path.name, sleep)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """See ``Provider``."""
        answer, left_s = self._answer(request), request.timeout_s
        fault, text = answer.fault, answer.text

        async def wait(seconds: float) -> None:
            nonlocal left_s
            if seconds > 0:
                await self._sleep(min(seconds, left_s))
                left_s -= seconds
            if left_s < 0:
                raise ProviderError("timeout", f"The model did not answer within {request.timeout_s:g} s.")

        await wait(answer.delay_s)
        if fault is not None and fault.kind == "cut":
            text = text[: len(text) // 2 if fault.after_chars is None else fault.after_chars]
        elif fault is not None:
            await wait(left_s if fault.kind == "hang" else 0)
            raise _error(fault)
        for number, part in enumerate(_deltas(answer, text)):
            await wait(answer.chunk_delay_s if number else 0)
            yield part
        if fault is not None:
            raise _error(fault)
        calls = [_call(call, f"call_{len(request.messages)}_{at}") for at, call in enumerate(answer.calls, 1)]
        for call in calls:
            yield call
        if answer.usage is not None:
            yield _usage(request, answer, answer.usage, calls)
        yield Finish(answer.finish or ("tool_calls" if calls else "stop"))

    async def close(self) -> None:
        """See ``Provider``: nothing is open."""

    def _answer(self, request: ModelRequest) -> Answer:
        now = _CallState(request.messages)
        for at, answer in enumerate(self._answers):
            if (answer.times is None or self._given[at] < answer.times) and answer.when.fits(request, now):
                self._given[at] += 1
                return answer
        used_up = sum(1 for answer, given in zip(self._answers, self._given, strict=True) if given == answer.times)
        raise ProviderError("rejected", _unanswered(self._name, request, now, used_up))


def _deltas(answer: Answer, answered: str) -> Iterator[Part]:
    for kind, text in ((ThoughtDelta, answer.thought), (TextDelta, answered)):
        for at in range(0, len(text), answer.chunk_chars):
            yield kind(text[at : at + answer.chunk_chars])


def _error(fault: ScriptedFault) -> ProviderError:
    if fault.kind == "cut":
        return ProviderError("unavailable", fault.message or "The stream broke off in the middle.", fault.retry_after_s)
    kind: Fault = "timeout" if fault.kind == "hang" else fault.kind
    return ProviderError(kind, fault.message or f"The script says: {fault.kind}.", fault.retry_after_s)


def _call(call: ScriptedCall, id_: str) -> ToolCall:
    arguments = dict(call.arguments) if call.raw is None else None
    return ToolCall(call.id or id_, call.name, arguments, call.raw)


def _usage(request: ModelRequest, answer: Answer, usage: ScriptedUsage, calls: Sequence[ToolCall]) -> Usage:
    written = tokens_of(answer.thought) + tokens_of(answer.text) + sum(map(tokens_of_call, calls))
    return Usage(
        tokens_of_request(request) if usage.input_tokens is None else usage.input_tokens,
        written if usage.output_tokens is None else usage.output_tokens,
        usage.cost_usd,
    )


def _unanswered(name: str, request: ModelRequest, now: _CallState, used_up: int) -> str:
    came = [f"model {request.model}", f"turn {now.turn}", f"round {now.round}", f"user said {_short(now.user)}"]
    came += [f"a tool answered {_short(result)}" for result in now.results]
    came += [f"tools {', '.join(tool.name for tool in request.tools)}"] if request.tools else []
    used = f" {used_up} of its answers were given as often as `times` allows." if used_up else ""
    return f"{name} has no answer for this call: {'; '.join(came)}.{used} Add an answer whose `when` fits."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= SHOWN_CHARS else f"“{line[: SHOWN_CHARS - 1]}…”"


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_ADAPTER: Final = TypeAdapter(tuple[Answer], config=ConfigDict(extra="forbid", strict=True))


def _read(path: Path) -> list[Answer]:
    faults = Faults(path.name)
    text = read_text(path, faults, if_missing="name a YAML file with `answers`", if_large="split the script")
    faults.refuse_if_any()
    root = read_yaml(text, faults, "a mapping with `answers`")
    answers = [_read_answer(node, at, faults) for at, node in enumerate(_listed(root, faults))]
    faults.refuse_if_any()
    return [answer for answer in answers if answer is not None]


def _listed(root: Node | None, faults: Faults) -> tuple[Node, ...]:
    if root is None:
        return ()
    if not isinstance(root.value, dict) or root.value.keys() != {"answers"}:
        faults.add(root.line, (), "expected a mapping with the one key `answers`")
        return ()
    listed = root.value["answers"]
    if not isinstance(listed.value, tuple):
        faults.add(listed.line, ("answers",), f"expected a list, came {came(listed.plain())}")
        return ()
    return listed.value


def _read_answer(node: Node, at: int, faults: Faults) -> Answer | None:
    plain, place = node.plain(), ("answers", at)
    if isinstance(plain, dict):
        if {"text", "json"} <= plain.keys():
            line = node.nearest(("json",)).line
            faults.add(line, (*place, "json"), "`text` stands here already; leave one of the two out")
        plain = _in_full(plain)
    try:
        (answer,) = _ADAPTER.validate_json(json.dumps([plain]))
    except ValidationError as error:
        note(Answer, error, Section(node, place, faults))
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
