"""The pump: the one file that knows all the stops, and the only road between listeners.

    inject ─▶ validate ─▶ log ─▶ route ─▶ actor ─▶ respond ─▶ log ─▶ push

Everything is decided on the folded state and written as a unit; what it makes possible begins when the unit is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import copy_context
from random import Random

from organism.log.log import EventLog
from organism.model.thread import Message, Thread
from organism.pump.decide import ending
from organism.pump.decide.decision import Decision, State
from organism.pump.decide.ending import Failure
from organism.pump.decide.respond import Outbox
from organism.pump.run import handler as actor
from organism.pump.run.handler import Responses
from organism.pump.run.handling import Handling
from organism.pump.run.replies import Collectors
from organism.pump.run.timers import Timers
from organism.pump.run.writer import Runtime
from organism.views.views import ViewStore


class Pump:
    """Runs one tenant's messages. ``handlings`` are under way. ``on_broken``: the state must be folded again."""

    def __init__(
        self,
        log: EventLog,
        views: ViewStore,
        state: State,
        chance: Random,
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self.runtime = runtime = Runtime(log, views, state, chance, on_broken)
        runtime.on_disk = self._act
        runtime.outcome_of = actor.outcome_of
        self._timers = Timers(runtime, self._tick)
        self.log, self.views, self.state = log, views, state
        self.write, self.commit, self.settled = runtime.write, runtime.commit, runtime.settled
        self.handlings: set[Handling] = set()
        self.endings: dict[str, list[asyncio.Future[bool]]] = {}
        self.collectors = Collectors()
        self._is_dropped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    # -- log ─▶ actor

    def _act(self, unit: Decision) -> None:
        """The unit is on disk: stop, resume and start handlers, tell who waits for it."""
        for stop in unit.stops:
            stop()
        for message, record in unit.sent:
            message.position = record.position
            message.digest = record.digest
        if unit.recorded or unit.resumed:
            _go_on(unit)
        for message in unit.starts:
            self._start(message, unit.at)
        if self.collectors:
            self.collectors.take(unit.records)
        if unit.ends:
            self.tell_ended(unit.ends)
        if self.state.routing.due:
            self._timers.ensure_ticking()
        if unit.tell is not None:
            unit.tell(unit)

    def _start(self, message: Message, at: int) -> None:
        state = self.state
        if self._is_dropped or message.id not in state.routing.messages:
            return
        listener = state.rules.listeners.get(message.to)
        if listener is None:  # a reload has removed it while the message waited
            decision = state.decide(message.thread, message)
            ending.dead(decision, message, "listener_gone", f"There is no listener named {message.to} any more.")
            state.boxes.release(message)
            self.write(decision)
            return
        handling = message.handling = Handling.begun(self.runtime, message, listener, at)
        self.handlings.add(handling)
        running = actor.run(handling, self._finished)
        handling.task = task = self._loop.create_task(running, context=self._context.copy())
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
        self._timers.ensure_ticking()

    def tell_ended(self, thread_ids: Iterable[str]) -> None:
        """Wake those who wait for the end of these threads."""
        for thread_id in thread_ids:
            for waiter in self.endings.pop(thread_id, ()):
                if not waiter.done():
                    waiter.set_result(True)

    # -- actor ─▶ respond ─▶ log

    def _finished(self, handling: Handling, outcome: Responses | Failure) -> None:
        """The handler gave its answer, or failed. What a handler still does after its end comes to nothing."""
        if handling.dead:
            return
        if handling.diverged:
            self._failed(handling, Failure("replay_diverged", handling.diverged, is_final=True))
        elif isinstance(outcome, Failure):
            self._failed(handling, outcome)
        else:
            self._answered(handling, outcome)

    def _answered(self, handling: Handling, responses: Responses) -> None:
        message = handling.message
        decision = self.state.decide(message.thread, message)
        Outbox(decision, message, handling.listener, handling.rules).respond(responses)
        ending.finish(decision, message, handling.stream.cut(decision) if handling.stream is not None else "")
        self.leave(handling)
        self.write(decision)

    def _failed(self, handling: Handling, failure: Failure) -> None:
        """A new attempt later, or a dead letter if there were enough. An unknown effect waits for an operator first."""
        message = handling.message
        decision = self.state.decide(message.thread, message)
        if handling.stream is not None:
            handling.stream.cut(decision)
        if not failure.is_final and (
            decision.find_unknown(message) or message.failures + 1 < self.state.rules.retry.attempts
        ):
            ending.retry(decision, message, failure)
            self.leave(handling)
            self.write(decision)
        else:
            ending.park(decision, message, failure)
            self.leave(handling)
            self.write(decision)

    def kill(self, decision: Decision, root: Thread) -> None:
        """End the thread and those below it; once that is on disk, their handlers are cancelled."""
        threads = ending.tree(self.state, root)
        decision.ends = tuple(thread.id for thread in threads)
        for handling in self.handlings:
            if handling.stream is not None and handling.message.thread in threads:
                handling.stream.cut(decision)
        for message in ending.kill(decision, threads):
            handling = message.handling
            if handling is None:  # its start is on its way to the disk: it will not begin
                self.state.boxes.release(message)
            else:
                decision.stops = (*decision.stops, handling.task.cancel)
                self.leave(handling)

    def leave(self, handling: Handling) -> None:
        """The handling is over: its slot and its line are free."""
        handling.end()
        self.handlings.discard(handling)
        message = handling.message
        message.handling = None
        if message.line.busy is message:  # it has its slot, or a unit on its way to the disk gives it
            self.state.boxes.release(message)
        else:
            self.state.boxes.forget_wait(message)
        self.runtime.rests.fire()

    def _tick(self, now: int, passed_us: int) -> bool:
        """Stop handlers that ran too long, also those that swallow the cancellation."""
        for handling in tuple(self.handlings):
            if self.runtime.is_paused(handling.message):  # its running time stands still too
                handling.ran_at += passed_us
            elif handling.is_overdue(now):
                text = f"TimedOut: The handler ran longer than {handling.listener.timeout_s:g} s."
                self._failed(handling, Failure("timeout", text))
                if handling.task is not None:
                    handling.task.cancel()
        return bool(self.handlings)

    # -- the end

    def is_running(self) -> bool:
        """Whether a handler runs, or its model does; those that wait for anything else do not count."""
        return any(handling.has_slot or handling.is_in_call() for handling in self.handlings)

    def drop_all(self) -> None:
        """The state was given up, or the tenant stops: handlers do nothing more, and none starts from now on."""
        self._is_dropped = True
        for handling in self.handlings:
            handling.end()
            if handling.task is not None:
                handling.task.cancel()
        self.handlings.clear()
        self.runtime.rests.fire()
        self._timers.stop()


def _go_on(unit: Decision) -> None:
    """Hand recorded steps to their handlers; those that have their slot again go on."""
    for step, record in unit.results:
        step.content_at = record.position
    for step in unit.recorded:
        step.is_written = True
        if step.message.handling is not None:
            step.message.handling.step_on_disk(step)
    for message in unit.resumed:
        if message.handling is not None:
            message.handling.go_on()
