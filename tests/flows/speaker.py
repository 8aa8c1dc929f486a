"""Models of the tests' own: they say what a test has them say, when it says so, and count how often they were asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from decimal import Decimal

from organism.bootstrap import Parts
from organism.config.settings import Price
from organism.events.vocabulary import StepError
from organism.model.completion import CompleteError, Completion, FinishReason, TextDelta, ThoughtDelta, ToolCall
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.decide.spend import Cost, ModelCall, Outcome
from organism.pump.run.model_call import AnswerRestarted, StreamPart
from tests.flows.stage import messages_of

PRICE = Price(Decimal(1), Decimal(2))
NEED = spend.Need("m", "scripted", PRICE, 100, 200, 10.0, is_asked=True)
USED = Cost("m", "scripted", 10, 20, spend.cost(PRICE, 10, 20), "price")

OnPart = Callable[[StreamPart], None]


class Speaker:
    """The twin of ``Models``. ``calls`` are the keys of the calls that were made, in order.

    What the last message of a call says decides what is answered: words separated by spaces, each sent as one piece.
    ``~word`` is thought, ``@gate`` waits until the test opens the gate, ``<<`` begins again, ``!code`` is an error,
    ``?name`` calls a tool of that name; ``=`` ends the pieces: what follows is the answer's whole text.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.heard: list[ModelCall] = []
        self.refuses: CompleteError | None = None
        self._gates: dict[str, asyncio.Event] = {}
        self._came: dict[str, asyncio.Event] = {}

    def parts(self, seed: int = 1) -> Parts:
        """What to start an organism with, that they speak in."""
        return Parts(chance=random.Random(seed), models=lambda _: self)

    def open(self, gate: str) -> None:
        """Let the calls that wait there go on."""
        self._gates.setdefault(gate, asyncio.Event()).set()

    async def at(self, gate: str) -> None:
        """Wait until a call has come to this gate."""
        await self._came.setdefault(gate, asyncio.Event()).wait()

    # -- Models

    async def prepare(self, call: ModelCall) -> None:
        """See ``Models``."""

    def reserve(self, decision: Decision, call: ModelCall) -> None:
        """See ``Models``."""
        if self.refuses is not None:
            raise self.refuses
        spend.reserve(decision, call, NEED)

    async def call(self, call: ModelCall, on_part: OnPart) -> Outcome:
        """See ``Models``."""
        self.calls.append(f"{call.message.id}/{call.step}")
        self.heard.append(call)
        text = thought = ""
        error: StepError | None = None
        calls: list[ToolCall] = []
        words = str(messages_of(call)[-1]["content"]).split(" ")
        while words:
            word = words.pop(0)
            await self.pause()
            if word.startswith("@"):
                self._came.setdefault(word[1:], asyncio.Event()).set()
                await self._gates.setdefault(word[1:], asyncio.Event()).wait()
            elif word.startswith("!"):
                error = StepError(word[1:], "It did not work.")
                break
            elif word.startswith("?"):
                calls.append(ToolCall(f"call-{len(calls) + 1}", word[1:], {"text": word[1:]}))
            elif word.startswith("~"):
                thought += word[1:]
                on_part(ThoughtDelta(word[1:]))
            elif word == "<<":
                text = ""
                on_part(AnswerRestarted())
            elif word == "=":
                text, words = " ".join(words), []
            else:
                text += word
                on_part(TextDelta(word))
        if error is not None:
            return Outcome(None, error, 1, 1000, USED)
        finish: FinishReason = "tool_calls" if calls else "stop"
        completion = Completion("m", text, thought, tuple(calls), finish, 10, 20, USED.cost_usd, "price")
        return Outcome(completion, None, 1, 1000, USED)

    async def pause(self) -> None:
        """Before each word: none."""
