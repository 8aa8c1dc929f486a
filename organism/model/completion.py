"""A model call and its result: the vocabulary of ``metadata.complete``, the gateway and the providers.

A provider yields the ``Part``s of an answer as they arrive: deltas of text and thought, whole tool calls, ``Usage`` at
most once, and one ``Finish`` last. A ``Completion`` is their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal, TypedDict

from organism.model.tool import ToolSpec

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "refusal"]
WITHHELD: Final = frozenset({"content_filter", "refusal"})
"""The answer is not whole: the provider withheld the rest, or the model refused to give it."""
CostSource = Literal["upstream", "price", "zero"]
CompleteCode = Literal[
    "model_not_in_allowlist", "recursion_depth_exceeded", "rate_limit_exceeded", "budget_exhausted", "leak_refused",
    "context_length_exceeded", "upstream_refused", "upstream_error", "upstream_timeout",
]  # fmt: skip

ChatMessage = Mapping[str, Any]
"""A message as OpenAI-compatible servers take it: ``role``, ``content``, ``tool_calls``, ``tool_call_id``."""


class CompleteOptions(TypedDict, total=False):
    """The options of ``complete``.

    ``model`` is a name of ``models`` in organism.yaml; without it the listener's own is called. ``block`` is the id of
    the run's message under which the text is shown while it arrives; without it the text is shown once it is complete.
    ``parameters`` are others of the chat completions API, in its words: ``stop``, ``seed``, ``tool_choice`` …
    """

    model: str
    tools: tuple[ToolSpec, ...]
    response_format: Mapping[str, Any] | None
    temperature: float
    max_tokens: int | None
    parameters: Mapping[str, Any]
    block: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A call for a provider: ``model`` is the provider's own name, ``timeout_s`` bounds the whole call.

    Of the ``parameters`` a provider takes those that its API has.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    response_format: Mapping[str, Any] | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    timeout_s: float = 120.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def to(self, model: str, timeout_s: float) -> ModelRequest:
        """The same request to another model, with another timeout."""
        return replace(self, model=model, timeout_s=timeout_s)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next characters of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """The next characters of the model's visible reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model asks for; ``input`` is None if its arguments, ``raw``, are no JSON object."""

    id: str
    name: str
    input: Mapping[str, Any] | None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that the call used; ``cost_usd`` is the provider's own figure, if it gives one."""

    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The last part: why the model stopped."""

    reason: FinishReason


Part = TextDelta | ThoughtDelta | ToolCall | Usage | Finish


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer: ``model`` is its name after fallbacks, ``served_by`` its provider."""

    model: str
    text: str = ""
    thought: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    cost_source: CostSource = "zero"
    served_by: str = ""

    @property
    def used(self) -> dict[str, int | str]:
        """The data of the run's ``usage`` entry."""
        total = self.input_tokens + self.output_tokens
        counts = {"input": self.input_tokens, "output": self.output_tokens, "total": total}
        return {**counts, "model": self.model, "served_by": self.served_by}


def whole_characters(text: str) -> str:
    """The text with surrogate halves joined; unpaired ones become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def added_up(parts: Iterable[Part], **fields: Any) -> Completion:
    """The sum of an answer's parts; ``fields`` override it and add what the parts do not contain."""
    texts: dict[type, list[str]] = {TextDelta: [], ThoughtDelta: []}
    calls: list[ToolCall] = []
    for part in parts:
        if isinstance(part, TextDelta | ThoughtDelta):
            texts[type(part)].append(part.text)
        elif isinstance(part, ToolCall):
            calls.append(part)
        elif isinstance(part, Usage):
            fields = {"input_tokens": part.input_tokens, "output_tokens": part.output_tokens, **fields}
        else:
            fields = {"finish": part.reason, **fields}
    text, thought = (whole_characters("".join(pieces)) for pieces in texts.values())
    return Completion(**{"model": "", "text": text, "thought": thought, "tool_calls": tuple(calls), **fields})


class CompleteError(Exception):
    """A model call failed; ``code`` is one of the API's error codes.

    ``is_final``: the same call would fail again, however long one waits. ``retry_after_s`` is how long the provider
    asks to wait, if it says so.
    """

    def __init__(
        self, code: CompleteCode, message: str, *, is_final: bool = False, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.is_final = is_final
        self.retry_after_s = retry_after_s

    @property
    def entry(self) -> dict[str, Any]:
        """The data of the run's ``error`` entry."""
        final = {"isFinal": True} if self.is_final else {}
        wait = {} if self.retry_after_s is None else {"retryAfterSeconds": self.retry_after_s}
        return {"code": self.code, "message": self.message, **final, **wait}


def completed(recorded: Mapping[str, Any], text: str) -> Completion:
    """The completion that was recorded as this JSON, with its text."""
    fields = {name: value for name, value in recorded.items() if name != "shown"}
    calls = tuple(ToolCall(**call) for call in recorded["tool_calls"])
    return Completion(**{**fields, "text": text, "tool_calls": calls, "cost_usd": Decimal(recorded["cost_usd"])})


@dataclass
class ChatCompletionRequest:
    """A call of the chat completions API.

    ``request`` is JSON text: ``messages``, and if they were given the caller's own ``tools``, ``response_format``,
    ``temperature``, ``max_tokens`` and further ``parameters``. ``server_tools`` are offered to the model too.
    """

    model: str
    request: str
    server_tools: list[str] = field(default_factory=list)
    has_charter: bool = True


@dataclass
class ChatCompletion:
    """The model's last text; all that it said and called stands in the run."""

    text: str
