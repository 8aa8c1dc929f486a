"""Recover: fold the log into a state and begin a new life on it (G8), at start and after a lost commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from organism.events import vocabulary as events
from organism.events.record import Actor, Record
from organism.log.log import EventLog
from organism.model.thread import NO_AUTHORS, Call, Message, PlainMessage, PlainStep, Step, Thread
from organism.pump.decide import ending, spend
from organism.pump.decide.decision import Decision
from organism.pump.decide.ending import Failure
from organism.pump.state import DUE_KEPT, FoldedState, State
from organism.pump.writer import Writer
from organism.views.organism import AGENTS, Agent
from organism.views.views import Query, all_rows

SNAPSHOT: Final = "folded/9"
"""The name of the fold's snapshots: another one whenever their shape changes."""
CRASH_LOOP_LIVES: Final = 5
SNAPSHOT_EVENTS: Final = 20_000
"""A fold of more events than this leaves a snapshot behind."""


@dataclass(frozen=True, slots=True)
class Life:
    """What ``organism_started`` says of a new life: the organism's name, its configuration and listeners."""

    name: str
    version: str
    config: str
    listeners: tuple[events.Declared, ...]


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
    before = await all_rows(writer.views, AGENTS.name, Query(), Agent)  # the listeners of earlier lives
    removed = sorted({row.name for row in before} - {each.name for each in life.listeners})
    decision = Decision.on(state, None)
    decision.add(
        events.OrganismStarted(
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
    spend.settle_lost_embeddings(decision)
    if state.folded.short_lives >= CRASH_LOOP_LIVES and not state.folded.paused:
        decision.add(events.OrganismPaused("crash_loop"))
    for message in sorted(state.folded.messages.values(), key=lambda each: each.position):
        _requeue(decision, message)
    await writer.commit(decision)
    for session_id in tuple(state.folded.unerased):  # a crash came between its deletion and the erasure
        await erase_session(writer, session_id)
    for thread in [thread for thread in state.folded.threads.values() if not state.folded.open_in(thread)]:
        await writer.commit(Decision.on(state, thread))


async def erase_session(writer: Writer, session_id: str, actor: Actor | None = None) -> int:
    """Erase the contents of a deleted session; gives the position of the event that says so."""
    position = await writer.log.erase(session_id, writer.state.now(), actor)
    writer.state.folded.fold(Record(events.ContentErased(session_id)))
    return position


def forget_pauses(decision: Decision, removed: Iterable[str]) -> None:
    """End the pauses of removed listeners: a later one of the same name is another."""
    for name in removed:
        if name in decision.state.folded.paused_agents:
            decision.add(events.AgentResumed(name, "removal"))


def _requeue(decision: Decision, message: Message) -> None:
    """Queue an open message again, or make it a dead letter if the process died with it too often."""
    state = decision.state
    is_indeterminate = decision.find_unknown(message)
    if message.deaths >= state.rules.retry.attempts and not is_indeterminate:
        reason = f"It ran at {message.deaths} deaths of the process, which is all that retry.attempts allows."
        ending.dead(decision, message, Failure("killed_process", reason))
        return
    decision.queue(message)


async def leave_snapshot(log: EventLog, state: State) -> None:
    """Save a snapshot of a state whose decisions are all on disk."""
    state.folded.position, state.folded.last_at = log.head, log.last_at
    await log.save_snapshot(SNAPSHOT, log.head, dump(state.folded))


# -- the snapshot: messages, steps and calls lead to each other, so each is saved once and names the others

StepName = tuple[str, int]
"""A message and the number of its step."""


class SavedCall(Struct):
    """A call, named by its request."""

    id: str
    caller: str
    parent_id: str | None
    step: StepName | None
    ask: StepName | None


class SavedMessage(Struct):
    """An open message, its steps, and what it leads to."""

    message: PlainMessage
    steps: list[PlainStep]
    thread_id: str
    call_id: str | None
    step: StepName | None
    ask: StepName | None


class Snapshot(Struct):
    """The state, with its open messages apart; what is due follows from the messages."""

    state: FoldedState
    messages: list[SavedMessage]
    calls: list[SavedCall]


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODER: Final = msgspec.json.Decoder(Snapshot)


def dump(state: FoldedState) -> bytes:
    """The state as bytes."""
    calls: dict[str, SavedCall] = {}
    messages = [_saved(message, calls) for message in state.messages.values()]
    return _ENCODER.encode(
        Snapshot(
            replace(state, messages={}, by_thread={}, children={}, by_session={}, due=[], due_room=DUE_KEPT),
            messages,
            list(calls.values()),
        )
    )


def _saved(message: Message, calls: dict[str, SavedCall]) -> SavedMessage:
    """The message; the calls that it stands in join those that are saved."""
    call = message.call
    while call is not None and call.id not in calls:
        parent_id = call.parent.id if call.parent is not None else None
        calls[call.id] = SavedCall(call.id, call.caller, parent_id, _name(call.step), _name(call.ask))
        call = call.parent
    return SavedMessage(
        msgspec.convert(message, PlainMessage, from_attributes=True),
        [msgspec.convert(step, PlainStep, from_attributes=True) for step in (message.steps or {}).values()],
        message.thread.id,
        message.call.id if message.call is not None else None,
        _name(message.step),
        _name(message.ask),
    )


def _name(step: Step | None) -> StepName | None:
    return (step.message.id, step.number) if step is not None else None


def load(body: bytes) -> FoldedState:
    """The state again."""
    snapshot = _DECODER.decode(body)
    state = snapshot.state
    for thread in tuple(state.threads.values()):
        state.begin_thread(thread)
    for saved in snapshot.messages:
        message = Message(**asdict(saved.message), thread=state.threads[saved.thread_id])
        message.steps = {step.number: Step(**asdict(step), message=message) for step in saved.steps} or None
        state.begin(message)
    calls = {saved.id: Call(saved.id, saved.caller, None) for saved in snapshot.calls}
    for named in snapshot.calls:
        call = calls[named.id]
        call.parent = calls[named.parent_id] if named.parent_id is not None else None
        call.step, call.ask = _step(state, named.step), _step(state, named.ask)
    for saved, message in zip(snapshot.messages, state.messages.values(), strict=True):
        message.call = calls[saved.call_id] if saved.call_id is not None else None
        message.step, message.ask = _step(state, saved.step), _step(state, saved.ask)
    state.schedule_all()
    return state


def _step(state: FoldedState, name: StepName | None) -> Step | None:
    """The step of that name; a closed ask in its place if its message has ended."""
    return None if name is None else state.step(*name) or _closed(*name)


def _closed(message_id: str, number: int) -> Step:
    gone = Message(message_id, "", "", "", 0, False, NO_AUTHORS, 0, "", None, thread=Thread(""))  # noqa: FBT003 - its fields
    return Step(number, "ask", "", ok=False, message=gone)
