"""The pump: the one file that knows all the stops, and the only road between listeners.

    inject ─▶ validate ─▶ log ─▶ route ─▶ actor ─▶ respond ─▶ log ─▶ push

Everything is decided on the folded state and written as a unit; what it makes possible begins when the unit is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from organism.errors import LogUnavailable, OrganismError
from organism.log.log import Log
from organism.model.events import Unit
from organism.model.handler import HandlerResponse
from organism.model.thread import Message, Thread
from organism.pump import actor, failing, runs
from organism.pump.feed import Feed
from organism.pump.models import Models, NoModels
from organism.pump.outgoing import Failure
from organism.pump.replies import Collectors
from organism.pump.respond import respond
from organism.pump.signal import Signal
from organism.pump.steps import Handling
from organism.pump.timers import Timers
from organism.pump.unit import Chance, Decision, State, Tell
from organism.pump.workers import Workers


class Pump:
    """Runs one tenant's messages.

    ``on_broken`` is told when the state can't be trusted any more and must be folded anew.
    """

    def __init__(self, log: Log, state: State, chance: Chance, on_broken: Callable[[BaseException], None]) -> None:
        self.log = log
        self.state = state
        self.chance = chance
        self.on_broken = on_broken
        self.models: Models = NoModels()
        self.feed = Feed()
        self.handlings: set[Handling] = set()
        self.timers = Timers(state.now, partial(failing.tick, self), lambda: bool(self.handlings))
        self.endings: dict[str, list[asyncio.Future[bool]]] = {}
        self.collectors = Collectors()
        self.outcome_of: actor.OutcomeOf = actor.outcome_of
        self.workers = Workers(partial(actor.run, self))
        self.decided = self.told = 0
        self.is_over = False
        self._loop = asyncio.get_running_loop()
        self.resumes = Signal()
        self.rests = Signal()
        self._settles = Signal()

    # -- log

    def write(self, decision: Decision, tell: Tell | None = None) -> None:
        """Close the decision and append it; ``tell`` is called once it is on disk."""
        decision.tell = tell
        decision.then = self._then
        decision.close()
        if not decision.events:
            self._act(decision)
            return
        try:
            if self.is_over:  # its state was given up, for one that the log gives anew
                raise LogUnavailable
            self.log.append(decision)
        except (OrganismError, TypeError) as error:  # a TypeError: what came from a handler is no JSON
            self._lost(decision, error)
            return
        self.decided += 1
        _note_heads(decision, self.state.routing.threads)

    async def commit(self, decision: Decision) -> Decision:
        """``write``, then wait until it is on disk. Cancelling the wait does not undo the unit."""
        done: asyncio.Future[Decision] = self._loop.create_future()
        self.write(decision, partial(_settle, done))
        return await done

    def _then(self, unit: Unit, error: Exception | None) -> None:
        assert isinstance(unit, Decision)  # noqa: S101 - the pump appends no other; narrows the type
        self.told += 1
        self._settles.fire()
        if error is None:
            actor.guarded(self._act, self._lost, unit)
        else:
            self._lost(unit, error)

    def _lost(self, unit: Decision, error: Exception) -> None:
        """The state and the log have parted, or what the unit makes possible went wrong: the state is folded anew."""
        self.on_broken(error)
        unit.failed = error
        if unit.tell is not None:
            unit.tell(unit)

    def _act(self, unit: Decision) -> None:
        """The unit is on disk: start, go on, tell."""
        for message, event in unit.sent:
            message.position = event.position
            message.digest = event.data["content"]
        if unit.over or unit.goers:
            _hand_over(unit)
        for message in unit.starts:
            self._begin(message, unit.at)
        if self.collectors:
            self.collectors.take(unit.events)
        if unit.ends:
            self.tell_ended(unit.ends)
        if unit.tell is not None:
            unit.tell(unit)

    def tell_ended(self, thread_ids: Iterable[str]) -> None:
        """Wake those who wait for the end of these threads."""
        for thread_id in thread_ids:
            for waiter in self.endings.pop(thread_id, ()):
                if not waiter.done():
                    waiter.set_result(True)

    # -- actor

    def _begin(self, message: Message, at: int) -> None:
        state = self.state
        if message.id not in state.routing.messages:
            return
        listener = state.rules.listeners.get(message.to)
        if listener is None:
            failing.gone(self, message)
            return
        handling = Handling(self, message, listener, at)
        message.handling = handling
        self.handlings.add(handling)
        self.workers.give(handling)
        if not self.timers.is_ticking:
            self.timers.ensure()

    # -- respond

    def finished(self, handling: Handling, responses: tuple[HandlerResponse, ...]) -> None:
        """The handler gave its answer."""
        if handling.diverged:
            self.park(handling, "replay_diverged", handling.diverged)
            return
        message = handling.message
        decision = self.state.decide(message.thread, message)
        respond(decision, handling, responses)
        if handling.story is not None or message.shown is not None:
            runs.finish(decision, handling)
        decision.handled(message, "done")
        self.leave(handling)
        self.write(decision)

    def failed(self, handling: Handling, failure: Failure) -> None:
        """The handler raised, or its time was over."""
        if handling.diverged:
            self.park(handling, "replay_diverged", handling.diverged)
        else:
            failing.failed(self, handling, failure)

    def park(self, handling: Handling, code: str, reason: str) -> None:
        """The handling failed for good: a dead letter."""
        failing.park(self, handling, code, reason)

    def leave(self, handling: Handling) -> None:
        """The handling is over: its slot and its line are free, and what its code still does comes to nothing."""
        handling.dead = True
        if handling.story is not None:
            handling.story.drop()
        self.handlings.discard(handling)
        message = handling.message
        message.handling = None
        if message.line.busy is message:  # it has its slot, or a unit on its way to the disk gives it
            self.state.boxes.release(message)
        else:
            self.state.boxes.forget_wait(message)
        self.rests.fire()

    # -- what steps and commands ask

    def is_paused(self, message: Message) -> bool:
        """Whether the message's agent, its thread or the organism is paused."""
        return self.state.routing.is_paused(message)

    async def settled(self) -> None:
        """Wait until all that is decided by now is on disk, or known to be lost."""
        decided = self.decided
        while self.told < decided:
            await self._settles.wait()

    def is_running(self) -> bool:
        """Whether a handler runs, or its model does; those that wait for anybody else do not count."""
        return any(handling.has_slot or handling.is_in_call() for handling in self.handlings)


def _note_heads(decision: Decision, threads: Mapping[str, Thread]) -> None:
    """The threads that are still active have moved on."""
    thread_id, thread = None, None
    for event in decision.events:
        if event.thread is not thread_id:
            thread_id = event.thread
            thread = threads.get(thread_id) if thread_id is not None else None
        if thread is not None:
            thread.head = event.position


def _hand_over(unit: Decision) -> None:
    """Steps that are over are told to their handlers; those that have their slot again go on."""
    for step, event in unit.results:
        step.content_at = event.position
    for step in unit.over:
        step.is_written = True
        if step.message.handling is not None:
            step.message.handling.committed(step)
    for message in unit.goers:
        if message.handling is not None:
            message.handling.go()


def _settle(done: asyncio.Future[Decision], unit: Decision) -> None:
    """The unit lets the future go, which holds the unit: a cycle for each injection would be left to the collector."""
    unit.tell = None
    if done.done():
        return
    if unit.failed is None:
        done.set_result(unit)
    else:
        done.set_exception(unit.failed)
