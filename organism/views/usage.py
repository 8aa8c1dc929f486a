"""What models cost: calls, tokens, money and time, of the tenant, each agent, each thread, each hour and day (of UTC).

A call is a row, made by ``model_called`` or ``texts_embedded``, that never changes; what is shown is summed when it is
read. Failed calls are counted too: what they used is spent. ``models`` divides the same by the model that answered and
the provider that served it. ``model_seconds`` is the time of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Actor, Record
from organism.model import words
from organism.model.completion import CostSource
from organism.model.money import exact, plain
from organism.model.times import iso
from organism.views.views import Begin, Keys, ReadModel, fold_each

HOUR: Final = Begin("at", len("2026-01-15T10"))
DAY: Final = Begin("at", len("2026-01-15"))
_SOURCES: Final[tuple[CostSource, ...]] = ("zero", "upstream", "price")
_MICROS: Final = 1_000_000


def dearer(source: CostSource, other: CostSource) -> CostSource:
    """The source of a sum: our price if any part of it is, else the provider's own figure, if anything cost."""
    return max(source, other, key=_SOURCES.index)


class CountedCall(Entity, kw_only=True):
    """A call of a model. Embeddings are no agent's and of no thread.

    What it cost is in whole dollars, whole millionths of the rest, and millionths of those: sums of 64-bit integers are
    exact, and none of these can overflow.
    """

    position: int
    at: str
    agent: str | None
    thread_id: str | None
    model: str
    served_by: str
    failed: int
    input_tokens: int
    output_tokens: int
    duration: int
    usd: int
    usd_micros: int
    usd_picos: int
    cost_source: CostSource


def _counted(_key: str, _row: object, record: Record[events.ModelCalled | events.TextsEmbedded]) -> CountedCall:
    event = record.event
    called = event if isinstance(event, events.ModelCalled) else None
    micros, picos = divmod(int(exact(Decimal(event.cost_usd)).scaleb(12)), _MICROS)
    usd, micros = divmod(micros, _MICROS)
    return CountedCall(
        position=record.position,
        at=iso(record.at),
        agent=called.agent if called else None,
        thread_id=record.thread if called else None,
        model=event.model,
        served_by=event.provider,
        failed=int(event.error is not None),
        input_tokens=event.input_tokens,
        output_tokens=called.output_tokens if called else 0,
        duration=event.duration,
        usd=usd,
        usd_micros=micros,
        usd_picos=picos,
        cost_source=event.cost_source,
    )


def _position(record: Record[Any]) -> Sequence[str]:
    return (str(record.position),)


_CALL_KEYS: Final[Mapping[type[events.Event], Keys]] = {events.ModelCalled: _position, events.TextsEmbedded: _position}

_NUMBERS: Final = ("failed", "input_tokens", "output_tokens", "duration", "usd", "usd_micros", "usd_picos")

MODEL_CALLS: ReadModel[CountedCall] = ReadModel(
    name="model_calls",
    version=1,
    types=_CALL_KEYS,
    fold=fold_each(_CALL_KEYS, _counted),
    row=CountedCall,
    columns={
        "position": "INTEGER",
        **dict.fromkeys(("at", "agent", "thread_id", "model", "served_by", "cost_source"), "TEXT"),
        **dict.fromkeys(_NUMBERS, "INTEGER"),
    },
    indexes=(("thread_id",),),
    totals=(*(("sum", name) for name in _NUMBERS), ("max", "at")),
    is_final=True,
)


class Portion(NamedTuple):
    """What one model was called for by the agent, or in the thread, hour or day, of this name."""

    name: str | None
    model: str
    served_by: str
    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    duration: int
    usd: int
    usd_micros: int
    usd_picos: int
    last_called: str

    @property
    def cost(self) -> Decimal:
        return Decimal((self.usd * _MICROS + self.usd_micros) * _MICROS + self.usd_picos).scaleb(-12)


class ModelUsage(Entity):
    """What one model was called for."""

    model: words.ModelName
    served_by: words.ServedBy
    calls: words.Count = 0
    input_tokens: words.Count = 0
    output_tokens: words.Count = 0
    tokens: words.Count = 0
    cost_usd: words.Money = "0"


class Account(Entity):
    """Calls of models: all of them, or those of the thread, agent, hour or day of this name."""

    name: str = ""
    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens: int = 0
    cost_usd: str = "0"
    model_seconds: float = 0.0
    last_called: str | None = None
    models: list[ModelUsage] = field(default_factory=list)


def account(name: str, summed: Iterable[Portion]) -> Account:
    """The account that these make up; its models are in the order of their first calls, as the portions are."""
    made, duration = Account(name), 0
    for portion in summed:
        _count(made, portion)
        made.failed_calls += portion.failed_calls
        duration += portion.duration
        made.last_called = max(made.last_called or "", portion.last_called)
        _count(_of_model(made.models, portion.model, portion.served_by), portion)
    made.model_seconds = duration / 1_000_000
    return made


def accounts(summed: Iterable[Portion]) -> list[Account]:
    """An account for each name, in their order; embeddings have no agent's."""
    named: dict[str, list[Portion]] = {}
    for portion in summed:
        if portion.name is not None:
            named.setdefault(portion.name, []).append(portion)
    return [account(name, named[name]) for name in sorted(named)]


def _of_model(models: list[ModelUsage], model: str, served_by: str) -> ModelUsage:
    for each in models:
        if each.model == model and each.served_by == served_by:
            return each
    models.append(ModelUsage(model, served_by))
    return models[-1]


def _count(counted: Account | ModelUsage, portion: Portion) -> None:
    counted.calls += portion.calls
    counted.input_tokens += portion.input_tokens
    counted.output_tokens += portion.output_tokens
    counted.tokens += portion.input_tokens + portion.output_tokens
    counted.cost_usd = plain(Decimal(counted.cost_usd) + portion.cost)


class InnerCall(Entity):
    """A call that named the request in which it was made."""

    thread_id: str
    request_id: str | None
    parent_request: str
    principal: str | None
    position: int


def _inner(_key: str, _row: object, record: Record[events.MessageSent]) -> InnerCall:
    actor = record.actor or Actor()
    called = record.event.caller_request or ""
    return InnerCall(record.stream, actor.request_id, called, actor.principal, record.position)


_INNER_KEYS: Final[Mapping[type[events.Event], Keys]] = {
    events.MessageSent: lambda record: (record.event.message,) if record.event.caller_request else ()
}

INNER_CALLS: ReadModel[InnerCall] = ReadModel(
    name="inner_calls",
    version=1,
    types=_INNER_KEYS,
    fold=fold_each(_INNER_KEYS, _inner),
    row=InnerCall,
    columns={"parent_request": "TEXT", "principal": "TEXT", "position": "INTEGER"},
    indexes=(("parent_request", "principal", "position"),),
)
