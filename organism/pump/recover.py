"""Recover: fold the log into a state and begin a new life on it (G8), at start and after a lost commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import replace

from organism.events.vocabulary import (
    After,
    AgentResumed,
    Declared,
    OrganismPaused,
    OrganismStarted,
    StepEffect,
    StepError,
    StepKind,
)
from organism.log.log import EventLog
from organism.model.thread import NOBODY, Call, Message, Shown, Step, Thread
from organism.pump.decide import ending
from organism.pump.decide.decision import Decision
from organism.pump.state import DUE_KEPT, FoldedState, State
from organism.pump.writer import Writer
from organism.views.views import Query

SNAPSHOT: Final = "folded/2"
"""The name of the fold's snapshots: another one whenever their shape changes."""
CRASH_LOOP_LIVES: Final = 5
MANY: Final = 100_000
SNAPSHOT_EVENTS: Final = 20_000
"""A fold of more events than this leaves a snapshot behind."""


@dataclass(frozen=True, slots=True)
class Life:
    """What ``organism_started`` says of a new life: the organism's name, its configuration and listeners."""

    name: str
    version: str
    config: str
    listeners: tuple[Declared, ...]


async def fold(log: EventLog) -> FoldedState:
    """The state at the head: the newest snapshot and what came after it."""
    snapshot = await log.load_snapshot(SNAPSHOT)
    state = load(snapshot[1]) if snapshot is not None else FoldedState()
    begun_at = state.position
    await log.fold(begun_at, state.apply)
    if state.position - begun_at > SNAPSHOT_EVENTS:
        await log.save_snapshot(SNAPSHOT, state.position, dump(state))
    return state


async def begin_life(writer: Writer, life: Life, *, clean: bool | None = None) -> None:
    """Record the new life and start what may start. ``clean`` overrides what the log says of the stop."""
    state = writer.state
    before = await writer.views.rows("agents", Query(limit=MANY))  # the listeners of earlier lives
    removed = sorted({row["name"] for row in orjson.loads(before.rows)} - {each.name for each in life.listeners})
    decision = Decision.on(state, None)
    decision.add(
        OrganismStarted(
            life.name,
            life.version,
            life.config,
            life.listeners,
            life=state.folded.life + 1,
            clean=state.folded.clean if clean is None else clean,
            removed=tuple(removed),
        )
    )
    forget_pauses(decision, removed)
    if state.folded.short_lives >= CRASH_LOOP_LIVES and not state.folded.paused:
        decision.add(OrganismPaused("crash_loop"))
    for message in sorted(state.folded.messages.values(), key=lambda each: each.position):
        _requeue(decision, message)
    await writer.commit(decision)
    for thread in [thread for thread in state.folded.threads.values() if thread.open == 0]:
        await writer.commit(Decision.on(state, thread))


def forget_pauses(decision: Decision, removed: Iterable[str]) -> None:
    """A listener that is gone is not paused any more: one of its name that comes later is another."""
    for name in removed:
        if name in decision.state.folded.paused_agents:
            decision.add(AgentResumed(name, "removal"))


def _requeue(decision: Decision, message: Message) -> None:
    """An open message waits in its line again, or is a dead letter if it died with the process too often."""
    state = decision.state
    is_indeterminate = decision.find_unknown(message)
    if message.deaths >= state.rules.retry.attempts and not is_indeterminate:
        reason = f"It ran at {message.deaths} deaths of the process, which is all that retry.attempts allows."
        ending.dead(decision, message, "killed_process", reason)
        return
    decision.queue(message)


async def leave_snapshot(log: EventLog, state: State) -> None:
    """Leave a snapshot of a state with nothing on its way to the log."""
    state.folded.position, state.folded.last_at = log.head, log.last_at
    await log.save_snapshot(SNAPSHOT, log.head, dump(state.folded))


# -- the snapshot. Messages, steps and calls lead to each other: they are saved by their names, one record each. A field
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

    state: FoldedState
    paused_agents: list[str]
    messages: list[SavedMessage]
    calls: list[SavedCall]


_DECODER: Final = msgspec.json.Decoder(Snapshot)


def dump(state: FoldedState) -> bytes:
    """The state as bytes."""
    calls: dict[str, SavedCall] = {}
    snapshot = Snapshot(
        replace(state, messages={}, paused_agents=set(), due=[], due_room=DUE_KEPT),
        sorted(state.paused_agents),
        [_saved(message, calls) for message in state.messages.values()],
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


def load(body: bytes) -> FoldedState:
    """The state again."""
    snapshot = _DECODER.decode(body)
    state = snapshot.state
    state.paused_agents = set(snapshot.paused_agents)
    for saved in snapshot.messages:
        state.messages[saved.id] = message = Message(
            **_shared(saved, Message),
            thread=state.threads[saved.thread_id],
            authors=frozenset(saved.author_names),
            read=frozenset(saved.read_names),
        )
        message.steps = {step.number: Step(message, **_shared(step, Step)) for step in saved.saved_steps} or None
    calls = {call.id: Call(call.id, call.caller, None) for call in snapshot.calls}
    for named in snapshot.calls:
        call = calls[named.id]
        call.parent = calls[named.parent_id] if named.parent_id is not None else None
        call.step, call.ask = _step(state, named.step_name), _step(state, named.ask_name)
    for saved in snapshot.messages:
        message = state.messages[saved.id]
        message.call = calls[saved.call_id] if saved.call_id is not None else None
        message.step, message.ask = _step(state, saved.step_name), _step(state, saved.ask_name)
    state.schedule_all()
    return state


def _step(state: FoldedState, name: StepName | None) -> Step | None:
    """The step of that name; one whose message has ended is closed, and stays known as an ask."""
    return None if name is None else state.step(*name) or _closed(*name)


def _closed(message_id: str, number: int) -> Step:
    gone = Message(message_id, "", "", "", 0, False, NOBODY, Thread(""), 0, "", None)  # noqa: FBT003 - its fields
    return Step(gone, number, "ask", "", ok=False)
