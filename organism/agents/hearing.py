"""Hearing: the parts of an answer as they come → what is told of it at once, and the completion that they add up to.

What passes on lost this installation's live secrets: nothing is said aloud, kept or given to a handler that holds one.
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
"""No text that people can read has as many for each token: what goes on beyond is no answer."""
MOST_TOKENS: Final = 1_000_000_000
"""No count beyond this is believed."""

Kind = Literal["text", "thought"]


class Hearing:
    """Hears one attempt after the other. ``most_tokens`` is what was reserved for the answer.

    A model that writes on far beyond it is cut off.
    """

    def __init__(self, redactor: Redactor, most_tokens: int, tell: Callable[[Told], None]) -> None:
        self._redactor = redactor
        self._most_tokens = most_tokens
        self._tell = tell
        self._is_told = False
        self.begin()

    def begin(self) -> None:
        """An attempt begins; of one before it nothing counts."""
        if self._is_told:
            self._tell(Anew())
        self._is_told = False
        self._filters: dict[str, SecretFilter] = {kind: SecretFilter(self._redactor) for kind in ("text", "thought")}
        self._said: dict[str, list[str]] = {"text": [], "thought": []}
        self._speaks: Kind = "text"
        self._calls: list[ToolCall] = []
        self._chars = 0
        self._usage: Usage | None = None
        self.finish: FinishReason | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self._chars or self._calls)

    def take(self, part: Part) -> bool:
        """The next part; gives whether there is enough."""
        if isinstance(part, TextDelta):
            self._hear("text", part.text)
        elif isinstance(part, ThoughtDelta):
            self._hear("thought", part.text)
        elif isinstance(part, ToolCall):
            self._flush()
            self._calls.append(self._cleared(part))
            self._pass_on(self._calls[-1])
        elif isinstance(part, Usage):
            self._usage = part
            self._pass_on(part)
        else:
            self._end(part.reason)
        if self._chars > self._most_tokens * CHARS_PER_TOKEN_AT_MOST:
            self._end("length")
        return self.finish is not None

    def _hear(self, kind: Kind, text: str) -> None:
        if not text:
            return
        if kind != self._speaks:
            self._flush()
            self._speaks = kind
        self._chars += len(text)
        self._say(self._filters[kind].take(text))

    def _flush(self) -> None:
        self._say(self._filters[self._speaks].rest())

    def _say(self, text: str) -> None:
        if text:
            self._said[self._speaks].append(text)
            self._pass_on(TextDelta(text) if self._speaks == "text" else ThoughtDelta(text))

    def _pass_on(self, part: Part) -> None:
        self._is_told = True
        self._tell(part)

    def _end(self, reason: FinishReason) -> None:
        if self.finish is None:
            self._flush()
            self.finish = reason
            self._pass_on(Finish(reason))

    def _cleared(self, call: ToolCall) -> ToolCall:
        redactor = self._redactor
        given = call.input
        if given is not None:
            given = orjson.loads(redactor.kept(orjson.dumps(given)))
        raw = None if call.raw is None else redactor.masked(call.raw)
        return ToolCall(redactor.masked(call.id), redactor.masked(call.name), given, raw)

    def tokens(self, prompt: int) -> tuple[int, int]:
        """Those of the prompt and of the answer: as the provider counted them, else as they are estimated here."""
        if self._usage is not None:
            return _believed(self._usage.input_tokens), _believed(self._usage.output_tokens)
        written = sum(tokens_of("".join(said)) for said in self._said.values())
        return prompt, written + sum(map(tokens_of_call, self._calls))

    @property
    def upstream_usd(self) -> Decimal | None:
        """What the provider itself says that it costs, if that can be."""
        said = None if self._usage is None else self._usage.cost_usd
        return said if said is not None and is_amount(said) else None

    def completion(self, model: str, cost: Cost) -> Completion:
        return Completion(
            model=model,
            text="".join(self._said["text"]),
            thought="".join(self._said["thought"]),
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
