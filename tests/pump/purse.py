"""Decisions on spending without a pump: a state with agents and threads, calls that are reserved and settled in it."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from organism.bootstrap import payload_check
from organism.codec import Codec, PayloadLimits
from organism.config.load import load
from organism.config.settings import Budget, Price, Spend
from organism.config.tenant import TenantConfig, plain
from organism.events.record import Record
from organism.events.vocabulary import (
    BudgetSettled,
    MessageHandled,
    MessageSent,
    MessageStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadReopened,
)
from organism.model.completion import Completion
from organism.model.ids import Ids
from organism.model.thread import Message
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.decide.spend import Cost, ModelCall, Outcome
from organism.pump.rules import Rules, payload_classes
from organism.pump.state import FoldedState, State
from tests.flows.world import World

NOON = 1_768_176_000_000_000
"""2026-01-12T00:00:00Z and twelve hours less: the middle of a day of UTC."""
PRICE = Price(Decimal("0.5"), Decimal("1.5"))
ANSWERED = Completion(model="m")


def rules_of(folder: Path, listeners: dict[str, dict[str, Any]], **top: Any) -> Rules:
    """The rules of an organism whose handlers do nothing."""
    source = "async def idle(payload: Ask, metadata: HandlerMetadata):\n    return None\n"
    play = World(folder, source, {name: {"handler": "idle", **keys} for name, keys in listeners.items()}, **top)
    settings = load(play.config, check_payload=payload_check())
    return Rules(settings, Codec.of(payload_classes(settings), PayloadLimits(settings.limits.max_payload_bytes)), 1)


class Purse:
    """A state, and every event that was decided on it, at a time that tests turn."""

    def __init__(self, rules: Rules, tenant: Budget | None = None) -> None:
        self.rules = rules
        self.tenant = tenant or Budget()
        self.at = NOON
        self.records: list[Record[Any]] = []
        self._numbers = count(1)
        self.state = self._state(FoldedState())

    def _state(self, folded: FoldedState) -> State:
        chance = random.Random(1)
        return State(
            folded, self.rules, Ids(chance.randbytes, lambda: self.at // 1000), lambda: self.at, self._defaults
        )

    def _defaults(self) -> dict[str, Any]:
        return {"budget": plain(TenantConfig(budget=self.tenant))["budget"]}

    def restart(self, folded: FoldedState) -> None:
        """Go on from another state."""
        self.state = self._state(folded)

    def take(self, decision: Decision) -> Decision:
        """What was decided is in the log."""
        for record in decision.records:
            record.position = len(self.records) + 1
            self.records.append(record)
        return decision

    def begun(self, thread: str, agent: str) -> Message:
        """A handling that has begun, in a thread that is active from now on."""
        message_id = f"msg-{next(self._numbers)}"
        active = self.state.folded.threads.get(thread)
        decision = Decision.on(self.state, active)
        if active is None:
            own = [record.event for record in self.records if record.thread == thread]
            tokens = sum(event.tokens for event in own if isinstance(event, BudgetSettled))
            decision.open_thread(thread, ThreadReopened(tokens=tokens) if own else ThreadCreated())
        decision.add(MessageSent(message_id, "console", agent, "Ask", depth=1, token=""))
        decision.add(MessageStarted(message_id, agent, attempt=1, deadline=0, version=""), thread=thread)
        self.take(decision)
        return self.state.folded.messages[message_id]

    def end(self, message: Message) -> None:
        """The handling is over, and its thread if nothing else is open in it."""
        decision = Decision.on(self.state, message.thread, message)
        spend.settle_lost(decision, message)
        decision.add(MessageHandled(message.id, message.to, "done", duration=0))
        if not self.state.folded.open_in(message.thread):
            decision.add(ThreadCompleted())
        self.take(decision)

    def call(self, message: Message, step: int) -> ModelCall:
        """One call of the handling."""
        return ModelCall(message, self.rules.listeners[message.to], step, (), {})

    def reserve(self, call: ModelCall, **need: Any) -> spend.Need:
        """Reserve it. Raises ``CompleteError``, and nothing was added."""
        asked = spend.Need(**{**NEED, **need})
        decision = Decision.on(self.state, call.message.thread, call.message)
        fitted = spend.fitted(asked, spend.bounds(decision, call))
        spend.reserve(decision, call, fitted)
        self.take(decision)
        return fitted

    def settle(self, call: ModelCall, prompt: int, answer: int, us: int = 0) -> Decision:
        """It went well and used so many tokens."""
        decision = Decision.on(self.state, call.message.thread, call.message)
        used = Cost("m", "scripted", prompt, answer, spend.cost(PRICE, prompt, answer), "price")
        spend.settle(decision, call, Outcome(ANSWERED, None, 1, us, used))
        return self.take(decision)

    def lose(self, message: Message, step: int) -> Decision:
        """Its process died."""
        decision = Decision.on(self.state, message.thread, message)
        spend.settle_lost(decision, message, step)
        return self.take(decision)


NEED: dict[str, Any] = {
    "model": "m",
    "provider": "scripted",
    "price": PRICE,
    "input_tokens": 100,
    "output_tokens": 100,
    "seconds": 10.0,
    "is_asked": True,
}


def most(**bounds: Any) -> Spend:
    """A budget in one or more dimensions."""
    return Spend(**bounds)
