"""What decisions rest on, folded from the log: what is routed, spent and confirmed; and its snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from organism.events.entity import Entity
from organism.events.record import Record
from organism.events.vocabulary import (
    After,
    BudgetReserved,
    BudgetSettled,
    ConfirmRedeemed,
    ConfirmRequested,
    Event,
    StepEffect,
    StepError,
    StepKind,
    ThreadReopened,
)
from organism.model.thread import NOBODY, Call, Message, Shown, Step, Thread
from organism.pump import routing
from organism.pump.confirmations import Confirms
from organism.pump.routing import DUE_KEPT, Routing
from organism.pump.spending import Spending


class Folded(Entity):
    """Routing, spending and confirmations. Only ``fold`` and the pump's decisions change it."""

    routing: Routing = field(default_factory=Routing)
    spend: Spending = field(default_factory=Spending)
    confirms: Confirms = field(default_factory=Confirms)

    def apply(self, record: Record[Event]) -> None:
        """Take one record of the log."""
        self.fold(record)
        routing = self.routing
        routing.position, routing.last_at = record.position, record.at
        if record.thread in routing.threads:
            routing.threads[record.thread].head = record.position

    def fold(self, record: Record[Event]) -> None:
        """Take one record, which may have no position yet."""
        route = routing.FOLDS.get(type(record.event))
        if route is not None:
            route(self.routing, record)
        fold = FOLDS.get(type(record.event))
        if fold is not None:
            fold(self, record)


def _reserved(state: Folded, record: Record[BudgetReserved]) -> None:
    if state.spend.is_full():
        state.spend.forget(state.routing.messages, state.routing.threads)
    state.spend.reserved(record)


FOLDS: Final[Mapping[type[Event], Callable[[Folded, Record[Any]], None]]] = {
    BudgetReserved: _reserved,
    BudgetSettled: lambda state, record: state.spend.settled(record),
    ConfirmRequested: lambda state, record: state.confirms.requested(record),
    ConfirmRedeemed: lambda state, record: state.confirms.redeemed(record),
    ThreadReopened: lambda state, record: state.spend.thread_reopened(record),
}
"""The fold of each event that changes more than the routing."""

# The snapshot. Messages, steps and calls lead to each other: they are saved by their names, one record each. A field
# that has the name of an entity's is a copy of it.

StepName = tuple[str, int]
"""A message and the number of its step."""


class SavedStep(Struct):
    """A step of the message that it is saved with."""

    number: int
    kind: StepKind
    input: str
    ok: bool | None
    error: StepError | None
    content_at: int
    open: int
    effect: StepEffect
    key: str
    approval: str
    expires: int
    stopped_at: int
    unknown: bool


class SavedCall(Struct):
    """A call, named by its request."""

    id: str
    caller: str
    parent_id: str | None
    step_name: StepName | None
    ask_name: StepName | None


class SavedMessage(Struct):
    """An open message."""

    id: str
    sender: str
    to: str
    type: str
    depth: int
    reply: bool
    position: int
    digest: str
    correlation: str | None
    starts: int
    failures: int
    deaths: int
    running: bool
    next_at: int
    after: After
    shown: Shown | None
    author_names: list[str]
    read_names: list[str]
    thread_id: str
    call_id: str | None
    step_name: StepName | None
    ask_name: StepName | None
    saved_steps: list[SavedStep]


class Snapshot(Struct):
    """The state, with its open messages and paused agents apart; what is due follows from the messages."""

    state: Folded
    paused_agents: list[str]
    messages: list[SavedMessage]
    calls: list[SavedCall]


_DECODER: Final = msgspec.json.Decoder(Snapshot)


def dump(state: Folded) -> bytes:
    """The state as bytes."""
    calls: dict[str, SavedCall] = {}
    routing = state.routing
    snapshot = Snapshot(
        replace(state, routing=replace(routing, messages={}, paused_agents=set(), due=[], due_room=DUE_KEPT)),
        sorted(routing.paused_agents),
        [_saved(message, calls) for message in routing.messages.values()],
        list(calls.values()),
    )
    return msgspec.json.encode(snapshot)


def _shared(source: Struct, target: type[Struct]) -> dict[str, Any]:
    """The values of the fields that both have."""
    return {name: getattr(source, name) for name in source.__struct_fields__ if name in target.__struct_fields__}


def _saved(message: Message, calls: dict[str, SavedCall]) -> SavedMessage:
    """The message; the calls that it stands in join those that are saved."""
    call = message.call
    while call is not None and call.id not in calls:
        parent_id = call.parent.id if call.parent is not None else None
        calls[call.id] = SavedCall(call.id, call.caller, parent_id, _name(call.step), _name(call.ask))
        call = call.parent
    return SavedMessage(
        **_shared(message, SavedMessage),
        author_names=sorted(message.authors),
        read_names=sorted(message.read),
        thread_id=message.thread.id,
        call_id=message.call.id if message.call is not None else None,
        step_name=_name(message.step),
        ask_name=_name(message.ask),
        saved_steps=[SavedStep(**_shared(step, SavedStep)) for step in (message.steps or {}).values()],
    )


def _name(step: Step | None) -> StepName | None:
    return (step.message.id, step.number) if step is not None else None


def load(body: bytes) -> Folded:
    """The state again."""
    snapshot = _DECODER.decode(body)
    state = snapshot.state
    routing = state.routing
    routing.paused_agents = set(snapshot.paused_agents)
    for saved in snapshot.messages:
        routing.messages[saved.id] = message = Message(
            **_shared(saved, Message),
            thread=routing.threads[saved.thread_id],
            authors=frozenset(saved.author_names),
            read=frozenset(saved.read_names),
        )
        message.steps = {step.number: Step(message, **_shared(step, Step)) for step in saved.saved_steps} or None
    calls = {call.id: Call(call.id, call.caller, None) for call in snapshot.calls}
    for named in snapshot.calls:
        call = calls[named.id]
        call.parent = calls[named.parent_id] if named.parent_id is not None else None
        call.step, call.ask = _step(routing, named.step_name), _step(routing, named.ask_name)
    for saved in snapshot.messages:
        message = routing.messages[saved.id]
        message.call = calls[saved.call_id] if saved.call_id is not None else None
        message.step, message.ask = _step(routing, saved.step_name), _step(routing, saved.ask_name)
    routing.schedule_all()
    return state


def _step(routing: Routing, name: StepName | None) -> Step | None:
    """The step of that name; one whose message has ended is closed, and stays known as an ask."""
    return None if name is None else routing.step(*name) or _closed(*name)


def _closed(message_id: str, number: int) -> Step:
    gone = Message(message_id, "", "", "", 0, False, NOBODY, Thread(""), 0, "", None)  # noqa: FBT003 - its fields
    return Step(gone, number, "ask", "", ok=False)
