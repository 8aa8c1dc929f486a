"""A gateway at work without a pump: a purse that it reserves from, scripted models, and a clock that its waits turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from organism.agents.attempts import Timing
from organism.agents.gateway import Gateway
from organism.agents.providers import Provider
from organism.agents.providers.scripted import Answer, Scripted, ScriptedFault, ScriptedUsage
from organism.agents.registry import ModelRegistry
from organism.config.settings import Model, Price
from organism.events.record import Record
from organism.events.vocabulary import ModelCalled, Root
from organism.model.completion import ModelRequest, Part
from organism.model.principal import Principal
from organism.model.redact import Redactor
from organism.model.thread import Message
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.decide.spend import ModelCall, Outcome
from organism.pump.prompt import PromptMessage
from organism.pump.rules import Rules
from organism.pump.run.model_call import StreamPart
from tests.log.engines import turn
from tests.pump.purse import Purse

PRICE = Price(Decimal("0.5"), Decimal("1.5"))
HELLO = ({"role": "user", "content": "Hello!"},)


def model(**keys: Any) -> Model:
    """A model of the configuration, scripted and priced."""
    return Model(**{"provider": "scripted", "model": "real", "price": PRICE, **keys})


def says(text: str = "Hello, Dan.", *, tokens: tuple[int, int] | None = (10, 5), **more: Any) -> Answer:
    """An answer whose provider counts so many tokens; None: it counts none."""
    usage = None if tokens is None else ScriptedUsage(*tokens, more.pop("cost_usd", None))
    return Answer(text=text, usage=usage, **more)


def fails(kind: Any, times: int | None = 1, **more: Any) -> Answer:
    """An answer that fails."""
    return Answer(text=more.pop("text", ""), fault=ScriptedFault(kind, **more), times=times)


class Listening:
    """A scripted model that keeps what it was asked, and knows when it was closed."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self.requests: list[ModelRequest] = []
        self.is_closed = False
        self.gate: asyncio.Event | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """See ``Provider``."""
        assert not self.is_closed
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        async for part in self._inner.stream(request):
            yield part

    async def close(self) -> None:
        """See ``Provider``."""
        self.is_closed = True


@dataclass
class Done:
    """What became of a call."""

    outcome: Outcome
    parts: list[StreamPart]
    records: list[Record[Any]]

    @property
    def text(self) -> str:
        assert self.outcome.completion is not None, self.outcome.error
        return self.outcome.completion.text

    @property
    def called(self) -> ModelCalled:
        """What was recorded of the call."""
        return next(record.event for record in self.records if isinstance(record.event, ModelCalled))


class Desk:
    """One tenant's gateway."""

    def __init__(self, rules: Rules, models: Mapping[str, tuple[Model, list[Answer]]], **terms: Any) -> None:
        self.purse = Purse(rules, terms.get("budget"))
        self.redactor: Redactor = terms.get("redactor") or Redactor()
        self.principals: dict[str, Principal] = terms.get("principals", {})
        self.waits: list[float] = []
        self.providers: dict[str, Listening] = {}
        self._answers = {name: answers for name, (_, answers) in models.items()}
        self.registry = ModelRegistry(self._made)
        self.models = {name: each for name, (each, _) in models.items()}
        timing = Timing(lambda: self.purse.at, lambda: 0.5, self.sleep)
        self.gateway = Gateway(self.registry, self.redactor, timing, self.principals.get)

    async def open(self) -> Desk:
        """Serve the models."""
        await self.registry.take(self.registry.prepared(self.models))
        return self

    def _made(self, name: str, _: Model) -> Provider:
        self.providers[name] = Listening(Scripted(self._answers[name], name, self.sleep))
        return self.providers[name]

    async def sleep(self, seconds: float) -> None:
        """Time goes by at once."""
        self.waits.append(seconds)
        self.purse.at += int(seconds * 1_000_000)
        await turn()

    def begun(self, agent: str = "ada", thread: str = "t", root: Root | None = None) -> Message:
        """A handling that may call."""
        message = self.purse.begun(thread, agent)
        if root is not None:
            message.correlation = message.id
            message.thread.begin_chain(message.id, root, ())
        return message

    async def complete(self, message: Message, step: int = 1, messages: Any = HELLO, **options: Any) -> Done:
        """Prepare, reserve, call and settle, as a pump does. Raises ``CompleteError`` if the call is refused."""
        call = self.call_of(message, step, messages, **options)
        await self.gateway.prepare(call)
        self.reserved(call)
        parts: list[StreamPart] = []
        outcome = await self.gateway.call(call, parts.append)
        return Done(outcome, parts, self.settle(call, outcome))

    def call_of(self, message: Message, step: int = 1, messages: Any = HELLO, **options: Any) -> ModelCall:
        """A call of the handling."""
        named: Any = {"model": "m", **options}
        prompt = list(map(PromptMessage.of, messages))
        return ModelCall(message, self.purse.rules.listeners[message.to], step, prompt, named)

    def reserve(self, message: Message, step: int = 1, messages: Any = HELLO, **options: Any) -> ModelCall:
        """A call of the handling that is reserved. Raises ``CompleteError``, and nothing was added."""
        return self.reserved(self.call_of(message, step, messages, **options))

    def reserved(self, call: ModelCall) -> ModelCall:
        """The unit that begins the call. Raises ``CompleteError``, and nothing was added."""
        decision = Decision.on(self.purse.state, call.message.thread, call.message)
        try:
            self.gateway.reserve(decision, call)
        finally:
            self.purse.take(decision)
        return call

    def settle(self, call: ModelCall, outcome: Outcome) -> list[Record[Any]]:
        """The unit that records its answer."""
        decision = Decision.on(self.purse.state, call.message.thread, call.message)
        spend.settle(decision, call, outcome)
        return self.purse.take(decision).records
