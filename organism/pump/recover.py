"""Recover: fold the log into a state and begin a new life on it (G8), at start and after a lost commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from organism.events.vocabulary import AgentResumed, Declared, OrganismStarted
from organism.log.log import EventLog
from organism.model.thread import Message
from organism.pump.decide import control, ending
from organism.pump.decide.decision import Decision, State
from organism.pump.state import Folded, dump, load
from organism.pump.writer import Writer
from organism.views.views import Query

SNAPSHOT: Final = "folded/1"
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


async def fold(log: EventLog) -> Folded:
    """The state at the head: the newest snapshot and what came after it."""
    snapshot = await log.load_snapshot(SNAPSHOT)
    state = load(snapshot[1]) if snapshot is not None else Folded()
    begun_at = state.routing.position
    await log.fold(begun_at, state.apply)
    if state.routing.position - begun_at > SNAPSHOT_EVENTS:
        await log.save_snapshot(SNAPSHOT, state.routing.position, dump(state))
    return state


async def begin_life(writer: Writer, life: Life, *, clean: bool | None = None) -> None:
    """Record the new life and start what may start. ``clean`` overrides what the log says of the stop."""
    state = writer.state
    before = await writer.views.rows("agents", Query(limit=MANY))  # the listeners of earlier lives
    removed = sorted({row["name"] for row in orjson.loads(before.rows)} - {each.name for each in life.listeners})
    decision = state.decide(None)
    decision.add(
        OrganismStarted(
            life.name,
            life.version,
            life.config,
            life.listeners,
            life=state.routing.life + 1,
            clean=state.routing.clean if clean is None else clean,
            removed=tuple(removed),
        )
    )
    forget_pauses(decision, removed)
    if state.routing.short_lives >= CRASH_LOOP_LIVES:
        control.pause_organism(decision, by="crash_loop")
    for message in sorted(state.routing.messages.values(), key=lambda each: each.position):
        _requeue(decision, message)
    await writer.commit(decision)
    for thread in [thread for thread in state.routing.threads.values() if thread.open == 0]:
        await writer.commit(state.decide(thread))


def forget_pauses(decision: Decision, removed: Iterable[str]) -> None:
    """A listener that is gone is not paused any more: one of its name that comes later is another."""
    for name in removed:
        if name in decision.state.routing.paused_agents:
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
    state.routing.position, state.routing.last_at = log.head, log.last_at
    await log.save_snapshot(SNAPSHOT, log.head, dump(state.folded))
