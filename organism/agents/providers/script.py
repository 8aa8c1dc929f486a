"""The script of a scripted model: what it answers to which call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from organism.agents.providers.messages import TurnState
from organism.model.completion import FinishReason, ModelRequest
from organism.model.linear import Linear, searchable

FaultKind = Literal["unauthorized", "rejected", "rate_limited", "unavailable", "timeout", "malformed", "hang", "cut"]

CHUNK_CHARS: Final = 20


@dataclass(frozen=True, slots=True)
class Text:
    """What a text must be like. ``holds`` ignores case, ``pattern`` is looked for anywhere; None asks nothing."""

    holds: str | None = None
    is_: str | None = None
    pattern: Linear | None = None

    def fits(self, text: str) -> bool:
        """Whether the text is so."""
        if self.is_ is not None and text.strip() != self.is_.strip():
            return False
        if self.holds is not None and self.holds.casefold() not in text.casefold():
            return False
        return self.pattern is None or self.pattern.search(searchable(text)) is not None


@dataclass(frozen=True, slots=True)
class When:
    """Which calls an answer is for. What is None (or empty) is not asked.

    ``user`` is the newest text of the user. Without ``tool_result`` it fits only while no tool result waits to be
    answered; with it, one of the waiting ones must fit.
    """

    user: Text | None = None
    tool_result: Text | None = None
    system: Text | None = None
    model: str | None = None
    turn: int | None = None
    round: int | None = None
    tools: tuple[str, ...] = ()

    def fits(self, request: ModelRequest, now: TurnState) -> bool:
        """Whether it is for this call."""
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
    arguments: Mapping[str, Any]
    raw: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """The usage to tell; what is None is estimated."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """How the call goes wrong: ``hang`` at its beginning, ``cut`` after so many characters (None: half of the text)."""

    kind: FaultKind
    message: str | None = None
    retry_after_s: float | None = None
    after_chars: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. ``times`` bounds how often it is given (None: always). ``usage`` None tells none at all."""

    when: When = When()
    text: str = ""
    thought: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: FinishReason | None = None
    usage: ScriptedUsage | None = ScriptedUsage()
    fault: ScriptedFault | None = None
    chunk_chars: int = CHUNK_CHARS
    delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    times: int | None = None
