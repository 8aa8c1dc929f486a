"""The pump: the one file that knows all the stops, and the only road between listeners.

    inject ─▶ validate ─▶ log ─▶ route ─▶ actor ─▶ respond ─▶ log ─▶ push

Everything is decided on the folded state and written as a unit; what it makes possible begins when the unit is on disk.
What is due when is in the folded state too, so that a restart finds it again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Final

import structlog

from organism.config.tracebacks import lines_of_function, text_of
from organism.events import vocabulary as events
from organism.log.log import EventLog
from organism.model.thread import Message, Thread
from organism.pump.decide import ending, gates
from organism.pump.decide.decision import Decision
from organism.pump.decide.ending import Failure
from organism.pump.decide.respond import Outbox
from organism.pump.run import handler
from organism.pump.run.branches import TaskNumbering
from organism.pump.run.handler import Responses
from organism.pump.run.handling import Handling, Wakeups
from organism.pump.run.mailboxes import Mailboxes
from organism.pump.run.steps import Services
from organism.pump.state import Due, Retry, State
from organism.pump.writer import Callbacks, Writer
from organism.views.views import ViewStore

TICK_SECONDS: Final = 0.05
LOOK_FOR_STUCK_US: Final = 1_000_000
STUCK_US: Final = 3_000_000
STUCK: Final = "Stuck: The handler waits, but for nothing that can still come. The lines say where its tasks wait."
DECIDED_AT_ONCE: Final = 32
"""How many answers of handlers are decided in one iteration of the loop; sockets get their turn before the next."""
TIMED_OUT: Final = events.StepError("timeout", "There was no answer in time.")

logger = structlog.get_logger("organism")


def log_failure(message: Message, failure: Failure, *, is_tried_again: bool) -> None:
    """Log it for the operator. What failed with another's failure, which is logged already, is one line."""
    is_final = not (is_tried_again or failure.root)
    log = logger.error if is_final else logger.warning
    log(
        "handler_failed",
        agent=message.to,
        thread_id=message.thread.id,
        message_id=message.id,
        attempt=message.starts,
        is_tried_again=is_tried_again,
        error=failure.text,
        **({"next": f"organism reload; organism dead-letters replay {message.id}"} if is_final else {}),
        **({"root": failure.root} if failure.root else {"traceback": text_of(failure.traceback)}),
    )


class Pump:
    """Runs one tenant's messages. ``handlings``: those under way, by message. ``on_broken``: fold the state again."""

    def __init__(
        self,
        log: EventLog,
        views: ViewStore,
        state: State,
        services: Services,
        on_broken: Callable[[BaseException], None],
    ) -> None:
        callbacks = Callbacks(self._schedule, self._act, on_broken)
        self.writer = writer = Writer(log, views, state, callbacks)
        self.mailboxes = Mailboxes(state.folded, state.rules.limits.max_concurrent_handlers)
        self.mailboxes.resize(state.rules.listeners)
        self.log, self.state = log, state
        self.write, self.commit, self.settled = writer.write, writer.commit, writer.settled
        self.wakeups = Wakeups()
        self.handlings: dict[str, Handling] = {}
        self._ended: deque[tuple[Context, Handling, Responses | Failure]] = deque()
        self._services = services
        self._ticked_at = self._stuck_looked_at = 0
        self._next_tick: asyncio.TimerHandle | None = None
        self._is_dropped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    def _schedule(self, decision: Decision) -> None:
        """A decision is made: add what may now resume and start."""
        boxes = self.mailboxes
        for arrival in decision.arrivals:
            boxes.put(arrival.message, arrival.payload, arrival.generation)
        for end in decision.recorded:
            handling = self.handlings.get(end.step.message.id)
            if handling is not None:
                handling.step_ended(end)
        boxes.follow(decision.records)
        if boxes.fair_share is not None:
            boxes.fair_share(boxes)
        if boxes.resuming:
            decision.resumed = boxes.resumed()
            for message in decision.resumed:
                self.handlings[message.id].granted()
        if boxes.ready:
            decision.starts = boxes.starts(decision.at)
            for message in decision.starts:
                decision.start(message)

    # -- log ─▶ actor

    def _act(self, unit: Decision) -> None:
        """The unit is on disk: stop, resume and start handlers."""
        for stop in unit.stops:
            stop()
        for arrival in unit.arrivals:
            arrival.on_disk()
        if unit.recorded or unit.resumed:
            self._go_on(unit)
        for message in unit.starts:
            self._start(message, unit.at)
        if self.state.folded.due:
            self._ensure_ticking()
        if unit.cause is None:
            self.wakeups.resumes.fire()
        if unit.on_written is not None:
            unit.on_written(unit)

    def _start(self, message: Message, at: int) -> None:
        state = self.state
        if self._is_dropped or message.id not in state.folded.messages:
            return
        listener = state.rules.listeners.get(message.to)
        if listener is None:  # a reload has removed it while the message waited
            decision = Decision.on(state, message.thread, message)
            gone = Failure("listener_gone", f"There is no listener named {message.to} any more.")
            ending.dead(decision, message, gone)
            self.write(decision)
            return
        queued, left_us = self.mailboxes.queued[message.id], int(listener.timeout_s * 1_000_000)
        handling = self.handlings[message.id] = Handling(
            *(self.writer, self.mailboxes, self.wakeups, queued, listener, state.rules, at, left_us, at),
            numbering=TaskNumbering.of(self._loop),  # again for each, since the host may set another task factory
            give_up=self._give_up,
        )
        running = handler.run(handling, self._services, self._finished)
        handling.task = task = self._loop.create_task(running, context=self._context.copy())
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)
        self._ensure_ticking()

    def _go_on(self, unit: Decision) -> None:
        """Give recorded steps to their handlers; resume those that have their slot again."""
        for end in unit.recorded:
            end.step.ended_at = end.record.position
            if end.content is not None:
                end.step.content_at = end.content.position
        for end in unit.recorded:
            if (handling := self.handlings.get(end.step.message.id)) is not None:
                handling.step_on_disk(end.step)
        for message in unit.resumed:
            if (handling := self.handlings.get(message.id)) is not None:
                handling.go_on()

    # -- actor ─▶ respond ─▶ log

    def _finished(self, handling: Handling, outcome: Responses | Failure) -> None:
        """The handler answered or failed: decide in the next iteration, with all that ended in this one."""
        if not self._ended:
            self._loop.call_soon(self._decide_ended, context=self._context)
        self._ended.append((copy_context(), handling, outcome))

    def _decide_ended(self) -> None:
        """Decide each answer in its handling's context: code of payload classes runs there."""
        try:
            for _ in range(min(len(self._ended), DECIDED_AT_ONCE)):
                context, handling, outcome = self._ended.popleft()
                context.run(self._decide, handling, outcome)
        except Exception as error:  # noqa: BLE001 - a fault of the pump itself: recorded, and the state is folded again
            self.writer.on_broken(error)
        finally:
            if self._ended:
                self._loop.call_soon(self._decide_ended, context=self._context)

    def _decide(self, handling: Handling, outcome: Responses | Failure) -> None:
        """Decide what the handler answered. Whatever it does after its end, or its handling's, has no effect."""
        if handling.dead:
            return
        if isinstance(outcome, Failure):
            self._failed(handling, outcome)
            return
        message = handling.message
        decision = Decision.on(self.state, message.thread, message)
        outbox = Outbox(decision, message, handling.listener, handling.rules)
        refused = outbox.encode_replies(outcome)
        if refused is not None:
            text = f"The answer of {message.to} cannot be sent: {refused.reason}"
            lines = lines_of_function(handling.listener.handler, handling.rules.settings.modules)
            self._failed(handling, Failure("wrong_return", text, is_final=True, traceback=lines))
            return
        outbox.respond(outcome)
        ending.finish(decision, message, handling.cut(decision))
        self.leave(handling)
        self.write(decision)
        handling.abandon()

    def _failed(self, handling: Handling, failure: Failure) -> None:
        """Retry later, or make a dead letter after the last attempt. An unknown effect first waits for an operator."""
        message = handling.message
        decision = Decision.on(self.state, message.thread, message)
        handling.cut(decision)
        has_attempts = not failure.is_final and message.failures + 1 < self.state.rules.retry.attempts
        is_tried_again = decision.find_unknown(message) or has_attempts
        log_failure(message, failure, is_tried_again=is_tried_again)
        (ending.retry if is_tried_again else ending.park)(decision, message, failure)
        self.leave(handling)
        self.write(decision)
        handling.abandon()

    def kill(self, decision: Decision, root: Thread) -> None:
        """End the thread and its descendants; once that is on disk, their handlers are cancelled."""
        threads = ending.tree(self.state, root)
        ids = {thread.id for thread in threads}
        for handling in self.handlings.values():
            if handling.message.thread.id in ids:
                handling.cut(decision)
        for message in ending.kill(decision, threads):
            running = self.handlings.get(message.id)
            if running is not None:  # else its start is not on disk yet, and will not happen
                decision.stops = (*decision.stops, running.cancel)
                self.leave(running)

    def leave(self, handling: Handling) -> None:
        """The handling is over."""
        handling.end()
        del self.handlings[handling.message.id]
        self.wakeups.slot_freed.fire()

    # -- what is due

    def _ensure_ticking(self) -> None:
        """Start the timer unless it runs."""
        if self._next_tick is None and not self._is_dropped:
            self._ticked_at = self.state.now()
            self._next_tick = self._loop.call_later(TICK_SECONDS, self._tick, context=self._context)

    def _tick(self) -> None:
        """Do what is due; fail handlers that ran too long, even those that swallow the cancellation."""
        self._next_tick = None
        now = self.state.now()
        passed_us, self._ticked_at = now - self._ticked_at, now
        while (due := self.state.folded.next_due(now)) is not None:
            self._do_due(due)
        for handling in tuple(self.handlings.values()):
            if handling.waits_for_thread or handling.is_paused():  # its running time stands still too
                handling.ran_at += passed_us
            elif handling.is_overdue(now):
                text = f"TimedOut: The handler ran longer than {handling.listener.timeout_s:g} s."
                self._give_up(handling, Failure("timeout", text, traceback=handling.lines()))
        if now - self._stuck_looked_at > LOOK_FOR_STUCK_US:
            self._stuck_looked_at = now
            self._end_stuck(now)
        if self.handlings or self.state.folded.due:
            self._ensure_ticking()

    def _end_stuck(self, now: int) -> None:
        """Fail handlers that wait for nothing that can still come."""
        for handling in tuple(self.handlings.values()):
            if not handling.is_stuck():
                handling.stuck_since = 0
            elif not handling.stuck_since:
                handling.stuck_since = now
            elif now - handling.stuck_since > STUCK_US:
                self._give_up(handling, Failure("stuck", STUCK, traceback=handling.lines()))

    def _give_up(self, handling: Handling, failure: Failure) -> None:
        """Fail the handler, whatever its code still does."""
        self._failed(handling, failure)
        handling.cancel()

    def _do_due(self, due: Due) -> None:
        """Start the message again, or end the ask or approval that was not answered in time."""
        message = self.state.folded.messages[due.message]
        decision = Decision.on(self.state, message.thread, message)
        if isinstance(due, Retry):
            self.mailboxes.wake(message.id)
        else:
            step = self.state.folded.step(due.message, due.step)
            assert step is not None  # noqa: S101 - it is due; narrows the type
            if step.kind == "approve":
                gates.expire(decision, step)
            else:
                decision.record(step, TIMED_OUT)
        self.write(decision)

    # -- the end

    def is_running(self) -> bool:
        """Whether any handler or its model call is running; handlers that wait for anything else do not count."""
        return any(handling.slot == "held" or handling.is_in_call() for handling in self.handlings.values())

    def drop_all(self) -> None:
        """The state was discarded, or the tenant stops: end all handlings and start no more."""
        self._is_dropped = True
        for handling in self.handlings.values():
            handling.end()
            handling.cancel()
        self.handlings.clear()
        self.wakeups.slot_freed.fire()
        if self._next_tick is not None:
            self._next_tick.cancel()
            self._next_tick = None
