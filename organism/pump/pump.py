"""The pump: the one file that knows all the stops, and the only road between listeners.

    inject ─▶ validate ─▶ log ─▶ route ─▶ actor ─▶ respond ─▶ log ─▶ push

Everything is decided on the folded state and written as a unit; what it makes possible begins when the unit is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import copy_context

from organism.log.log import EventLog
from organism.model.thread import Message, Thread
from organism.pump.decide import ending
from organism.pump.decide.decision import Decision, State
from organism.pump.decide.ending import Failure
from organism.pump.decide.respond import Outbox
from organism.pump.run import handler
from organism.pump.run.handler import Responses, Services
from organism.pump.run.handling import Handling, Signals
from organism.pump.run.mailboxes import Mailboxes
from organism.pump.run.replies import Collectors
from organism.pump.run.timers import Timers
from organism.pump.writer import Writer
from organism.views.views import ViewStore


class Pump:
    """Runs one tenant's messages. ``handlings`` are under way. ``on_broken``: the state must be folded again."""

    def __init__(
        self,
        log: EventLog,
        views: ViewStore,
        state: State,
        services: Services,
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self.writer = writer = Writer(log, views, state, on_broken)
        writer.on_made, writer.on_disk = self._schedule, self._act
        self.mailboxes = Mailboxes(state.routing, state.rules.limits.max_concurrent_handlers)
        self.mailboxes.resize(state.rules.listeners)
        self._timers = Timers(writer, self.mailboxes, self._tick)
        self.log, self.state = log, state
        self.write, self.commit, self.settled = writer.write, writer.commit, writer.settled
        self.signals = Signals()
        self.handlings: dict[str, Handling] = {}
        self._services = services
        self.endings: dict[str, list[asyncio.Future[bool]]] = {}
        self.collectors = Collectors()
        self._is_dropped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    def _schedule(self, decision: Decision) -> None:
        """A decision is made: what may go on and start with it."""
        boxes = self.mailboxes
        for arrival in decision.arrivals:
            boxes.put(arrival.message, arrival.payload, arrival.generation)
        for end in decision.recorded:
            handling = self.handlings.get(end.step.message.id)
            if handling is not None and handling.step_ended(end):
                decision.resumed = (*decision.resumed, end.step.message)
        boxes.follow(decision.records)
        if boxes.fair_share is not None:
            boxes.fair_share(boxes)
        if boxes.resuming:
            decision.resumed = (*decision.resumed, *boxes.resumed())
        if boxes.ready:
            decision.starts = boxes.starts(decision.at)
            for message in decision.starts:
                decision.start(message)

    # -- log ─▶ actor

    def _act(self, unit: Decision) -> None:
        """The unit is on disk: stop, resume and start handlers, tell who waits for it."""
        for stop in unit.stops:
            stop()
        for arrival in unit.arrivals:
            arrival.on_disk()
        if unit.recorded or unit.resumed:
            self._go_on(unit)
        for message in unit.starts:
            self._start(message, unit.at)
        if self.collectors:
            self.collectors.take(unit.records)
        if unit.ends:
            self.tell_ended(unit.ends)
        if self.state.routing.due:
            self._timers.ensure_ticking()
        if unit.cause is None:
            self.signals.resumes.fire()
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
            self.write(decision)
            return
        queued, left_us = self.mailboxes.queued[message.id], int(listener.timeout_s * 1_000_000)
        handling = self.handlings[message.id] = Handling(
            self.writer, self.mailboxes, self.signals, queued, listener, state.rules, at, left_us, at
        )
        running = handler.run(handling, self._services, self._finished)
        handling.task = task = self._loop.create_task(running, context=self._context.copy())
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
        self._timers.ensure_ticking()

    def _go_on(self, unit: Decision) -> None:
        """Hand recorded steps to their handlers; those that have their slot again go on."""
        for end in unit.recorded:
            if end.record is not None:
                end.step.content_at = end.record.position
        for end in unit.recorded:
            if (handling := self.handlings.get(end.step.message.id)) is not None:
                handling.step_on_disk(end.step)
        for message in unit.resumed:
            if (handling := self.handlings.get(message.id)) is not None:
                handling.go_on()

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
        ending.finish(decision, message, handling.cut(decision))
        self.leave(handling)
        self.write(decision)

    def _failed(self, handling: Handling, failure: Failure) -> None:
        """A new attempt later, or a dead letter if there were enough. An unknown effect waits for an operator first."""
        message = handling.message
        decision = self.state.decide(message.thread, message)
        handling.cut(decision)
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
        for handling in self.handlings.values():
            if handling.message.thread in threads:
                handling.cut(decision)
        for message in ending.kill(decision, threads):
            running = self.handlings.get(message.id)
            if running is not None:  # else its start is on its way to the disk: it will not begin
                decision.stops = (*decision.stops, running.cancel)
                self.leave(running)

    def leave(self, handling: Handling) -> None:
        """The handling is over."""
        handling.end()
        del self.handlings[handling.message.id]
        self.signals.rests.fire()

    def _tick(self, now: int, passed_us: int) -> bool:
        """Stop handlers that ran too long, also those that swallow the cancellation."""
        for handling in tuple(self.handlings.values()):
            if handling.is_paused():  # its running time stands still too
                handling.ran_at += passed_us
            elif handling.is_overdue(now):
                text = f"TimedOut: The handler ran longer than {handling.listener.timeout_s:g} s."
                self._failed(handling, Failure("timeout", text))
                handling.cancel()
        return bool(self.handlings)

    # -- the end

    def is_running(self) -> bool:
        """Whether a handler runs, or its model does; those that wait for anything else do not count."""
        return any(handling.has_slot or handling.is_in_call() for handling in self.handlings.values())

    def drop_all(self) -> None:
        """The state was given up, or the tenant stops: handlers do nothing more, and none starts from now on."""
        self._is_dropped = True
        for handling in self.handlings.values():
            handling.end()
            handling.cancel()
        self.handlings.clear()
        self.signals.rests.fire()
        self._timers.stop()
