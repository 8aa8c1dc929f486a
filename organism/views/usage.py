"""What models cost: calls, tokens, money and time, of the tenant, each agent, each thread, each hour and day (of UTC).

It is counted by ``model_called`` and ``texts_embedded``, failed calls included: what they used is spent. ``models``
divides the same by the model that answered and the provider that served it. ``model_seconds`` is the time of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Actor, Record
from organism.model import words
from organism.model.completion import CostSource
from organism.model.money import plain
from organism.model.times import iso
from organism.views.views import Keys, PrivateFields, ReadModel, Stored, fold_each

TOTAL: Final = "total"
HOUR_CHARS: Final = len("2026-01-15T10")
DAY_CHARS: Final = len("2026-01-15")
_SOURCES: Final[tuple[CostSource, ...]] = ("zero", "upstream", "price")


def dearer(source: CostSource, other: CostSource) -> CostSource:
    """The source of a sum: our price if any part of it is, else the provider's own figure, if anything cost."""
    return max(source, other, key=_SOURCES.index)


def _accounts(record: Record[events.ModelCalled | events.TextsEmbedded]) -> Sequence[str]:
    """A kind and a name, which has no space before it. Embeddings are no agent's and of no thread."""
    at, event = iso(record.at), record.event
    spans = f"hour {at[:HOUR_CHARS]}", f"day {at[:DAY_CHARS]}"
    callers = (f"agent {event.agent}", f"thread {record.thread}") if isinstance(event, events.ModelCalled) else ()
    return (TOTAL, *callers, *spans)


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
    """Calls of models, of the tenant or of the thread, agent, hour or day of this name."""

    kind: str = TOTAL
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


class _Sum(PrivateFields):
    us: int = 0
    source: CostSource = "zero"


def _used(
    key: str, row: Stored[Account, _Sum] | None, record: Record[events.ModelCalled | events.TextsEmbedded]
) -> Stored[Account, _Sum]:
    if row is None:
        kind, _, name = key.partition(" ")
        row = Stored(Account(kind, name), _Sum())
    event, account, private = record.event, row.public, row.private
    _count(account, event)
    account.failed_calls += event.error is not None
    private.us += event.duration
    account.model_seconds = private.us / 1_000_000
    account.last_called = iso(record.at)
    private.source = dearer(private.source, event.cost_source)
    _count(_of_model(account.models, event.model, event.provider), event)
    return row


def _of_model(models: list[ModelUsage], model: str, served_by: str) -> ModelUsage:
    for each in models:
        if each.model == model and each.served_by == served_by:
            return each
    models.append(ModelUsage(model, served_by))
    return models[-1]


def _count(counted: Account | ModelUsage, event: events.ModelCalled | events.TextsEmbedded) -> None:
    output_tokens = event.output_tokens if isinstance(event, events.ModelCalled) else 0
    counted.calls += 1
    counted.input_tokens += event.input_tokens
    counted.output_tokens += output_tokens
    counted.tokens += event.input_tokens + output_tokens
    counted.cost_usd = plain(Decimal(counted.cost_usd) + Decimal(event.cost_usd))


_USAGE_KEYS: Final[Mapping[type[events.Event], Keys]] = {events.ModelCalled: _accounts, events.TextsEmbedded: _accounts}

USAGE: ReadModel[Stored[Account, _Sum]] = ReadModel(
    name="usage",
    version=3,
    types=_USAGE_KEYS,
    fold=fold_each(_USAGE_KEYS, _used),
    row=Account,
    private=_Sum,
    columns={"kind": "TEXT", "name": "TEXT"},
    indexes=(("kind", "name"),),
)


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
