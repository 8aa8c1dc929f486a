"""The parts of a model's answer as they come: redacted, passed on at once, and added up to a completion.

No viewer, log entry or handler gets a live secret of this installation from here.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, Literal

import orjson

from organism.agents.providers.messages import tokens_of, tokens_of_call
from organism.model.completion import Completion, Finish, FinishReason, Part, TextDelta, ThoughtDelta, ToolCall, Usage
from organism.model.money import is_amount
from organism.model.redact import Redactor
from organism.pump.models import Anew, Told
from organism.pump.spend import Cost
from organism.pump.stream import SecretFilter

CHARS_PER_TOKEN_AT_MOST: Final = 16
"""No readable text has more; an answer that is longer than that for its tokens is cut off."""
MOST_TOKENS: Final = 1_000_000_000
"""Larger counts of a provider are taken for this."""

Kind = Literal["text", "thought"]


class AnswerBuffer:
    """The answer of the current attempt. ``most_tokens`` were reserved for it; far beyond them it is cut off."""

    def __init__(self, redactor: Redactor, most_tokens: int, tell: Callable[[Told], None]) -> None:
        self._redactor = redactor
        self._most_tokens = most_tokens
        self._tell = tell
        self._has_emitted = False
        self.begin()

    def begin(self) -> None:
        """An attempt begins; the parts of the one before are dropped."""
        if self._has_emitted:
            self._tell(Anew())
        self._has_emitted = False
        self._filters: dict[str, SecretFilter] = {kind: SecretFilter(self._redactor) for kind in ("text", "thought")}
        self._texts: dict[str, list[str]] = {"text": [], "thought": []}
        self._kind: Kind = "text"
        self._calls: list[ToolCall] = []
        self._chars = 0
        self._usage: Usage | None = None
        self.finish: FinishReason | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self._chars or self._calls)

    def add(self, part: Part) -> bool:
        """Add the next part; gives whether the answer is complete."""
        if isinstance(part, TextDelta):
            self._add_text("text", part.text)
        elif isinstance(part, ThoughtDelta):
            self._add_text("thought", part.text)
        elif isinstance(part, ToolCall):
            self._flush()
            self._calls.append(self._cleared(part))
            self._emit(self._calls[-1])
        elif isinstance(part, Usage):
            self._usage = part
            self._emit(part)
        else:
            self._end(part.reason)
        if self._chars > self._most_tokens * CHARS_PER_TOKEN_AT_MOST:
            self._end("length")
        return self.finish is not None

    def _add_text(self, kind: Kind, text: str) -> None:
        if not text:
            return
        if kind != self._kind:
            self._flush()
            self._kind = kind
        self._chars += len(text)
        self._emit_text(self._filters[kind].take(text))

    def _flush(self) -> None:
        self._emit_text(self._filters[self._kind].rest())

    def _emit_text(self, text: str) -> None:
        if text:
            self._texts[self._kind].append(text)
            self._emit(TextDelta(text) if self._kind == "text" else ThoughtDelta(text))

    def _emit(self, part: Part) -> None:
        self._has_emitted = True
        self._tell(part)

    def _end(self, reason: FinishReason) -> None:
        if self.finish is None:
            self._flush()
            self.finish = reason
            self._emit(Finish(reason))

    def _cleared(self, call: ToolCall) -> ToolCall:
        redactor = self._redactor
        given = call.input
        if given is not None:
            given = orjson.loads(redactor.kept(orjson.dumps(given)))
        raw = None if call.raw is None else redactor.masked(call.raw)
        return ToolCall(redactor.masked(call.id), redactor.masked(call.name), given, raw)

    def tokens(self, prompt: int) -> tuple[int, int]:
        """Those of the prompt and of the answer, as the provider counted them or as estimated here."""
        if self._usage is not None:
            return _believed(self._usage.input_tokens), _believed(self._usage.output_tokens)
        written = sum(tokens_of("".join(said)) for said in self._texts.values())
        return prompt, written + sum(map(tokens_of_call, self._calls))

    @property
    def upstream_usd(self) -> Decimal | None:
        """The cost that the provider names, if that is a possible amount."""
        said = None if self._usage is None else self._usage.cost_usd
        return said if said is not None and is_amount(said) else None

    def completion(self, model: str, cost: Cost) -> Completion:
        return Completion(
            model=model,
            text="".join(self._texts["text"]),
            thought="".join(self._texts["thought"]),
            tool_calls=tuple(self._calls),
            finish=self.finish or "stop",
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            cost_usd=cost.cost_usd,
            cost_source=cost.cost_source,
            served_by=cost.provider,
        )


def _believed(count: int) -> int:
    return max(0, min(count, MOST_TOKENS))
