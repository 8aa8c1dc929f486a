"""Mailboxes: which messages may start or resume next. They are filled from the folded state and known to no log."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, Never

from msgspec import field

from organism.config.settings import Listener
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model.thread import Message, Thread
from organism.pump.state import FoldedState

SUSPECT_DEATHS: Final = 2
"""A message that was running in this many crashes runs while no other such message does (G8)."""
DECODED_PER_MAILBOX: Final = 256
"""Decoded payloads kept in each mailbox; those of further messages are read from the log at their start."""


class Queued(Entity):
    """A message that waits in its line or is handled, and its payload as decoded under the rules ``generation``."""

    message: Message
    line: Line
    payload: Any = None
    generation: int = 0

    def is_suspect(self) -> bool:
        """Whether it may be the message that crashes the process."""
        return self.message.deaths >= SUSPECT_DEATHS


class Reserved(Entity):
    """A line's ``busy`` while its handler waits for a model: it has no slot, and no other message starts."""

    queued: Queued


class Line(Entity):
    """One thread's messages for one agent, handled one at a time in the order of their positions."""

    box: Mailbox
    thread: Thread
    waiting: deque[Queued] = field(default_factory=deque)
    busy: Queued | Reserved | None = None  # whose handler holds the line
    waiters: int = 0  # handlers that wait in a step
    ready: bool = False  # it is in its mailbox's ring

    def may_start(self, at: int) -> bool:
        """Whether its first message could start at that time if there were a slot."""
        if not self.waiting or self.busy is not None:
            return False
        first = self.waiting[0].message
        return first.next_at <= at and not self.thread.is_blocked and not first.is_indeterminate()

    def is_reserved_for(self, queued: Queued) -> bool:
        """Whether the line is blocked until this message's handler resumes."""
        return type(self.busy) is Reserved and self.busy.queued is queued

    def drop_if_empty(self) -> None:
        """Forget a line that no message waits in, holds or will resume in."""
        if not self.waiting and self.busy is None and self.waiters == 0:
            self.box.lines.pop(self.thread.id, None)


class Mailbox(Entity):
    """An agent's lines, which take turns."""

    name: str
    limit: int
    waiting: int = 0  # messages that wait for a start
    running: int = 0  # slots that are taken
    lines: dict[str, Line] = field(default_factory=dict)
    ring: deque[Line] = field(default_factory=deque)  # those that may be ready
    resuming: deque[Queued] = field(default_factory=deque)  # whose handlers want to go on
    listed: bool = False  # it is among the ``ready``

    def line(self, thread: Thread) -> Line:
        """The thread's line, made on first use."""
        found = self.lines.get(thread.id)
        if found is None:
            found = self.lines[thread.id] = Line(self, thread)
        return found


class Mailboxes(Entity):
    """All mailboxes of a tenant, and the slots that their handlers share."""

    folded: FoldedState
    limit: int
    boxes: dict[str, Mailbox] = field(default_factory=dict)
    queued: dict[str, Queued] = field(default_factory=dict)  # by message
    running: int = 0
    resuming: int = 0  # handlers that want to go on, which they do before anything new starts
    suspect: Queued | None = None  # the one that runs now
    ready: deque[Mailbox] = field(default_factory=deque)  # those that may have something to do
    fair_share: Callable[[Mailboxes], None] | None = None  # sets ``limit`` at each decision, if tenants share the slots
    is_leaving: bool = False  # only handlers whose line is reserved get a slot
    served: int = 0  # the turn in which the tenant last got a slot

    def box(self, name: str, limit: int = 1) -> Mailbox:
        """The agent's mailbox, made on first use."""
        found = self.boxes.get(name)
        if found is None:
            found = self.boxes[name] = Mailbox(name, limit)
        return found

    def resize(self, listeners: Mapping[str, Listener]) -> None:
        """The listeners of a configuration have mailboxes, with as many slots as it says."""
        for listener in listeners.values():
            box = self.box(listener.name)
            box.limit = listener.max_concurrent
            self._list(box)

    def waiting(self, name: str) -> int:
        """How many messages wait for a start in the agent's mailbox."""
        return self.boxes[name].waiting

    def put(self, message: Message, payload: Any = None, generation: int = 0) -> None:
        """Queue a message at the end of its line; its payload is kept if there is room."""
        box = self.box(message.to)
        line = box.line(message.thread)
        queued = self.queued[message.id] = Queued(message, line)
        if box.waiting < DECODED_PER_MAILBOX:
            queued.payload, queued.generation = payload, generation
        line.waiting.append(queued)
        box.waiting += 1
        if not line.ready and line.busy is None:
            self._offer(line)

    def follow(self, records: Sequence[Record[events.Event]]) -> None:
        """Follow a decision: handlings have ended, and lines may go on."""
        for record in records:
            act = _FOLLOWED.get(type(record.event))
            if act is not None:
                act(self, record)  # type: ignore[arg-type]  # the one of the event's own class

    def ended(self, record: Record[events.MessageHandled | events.MessageDead]) -> None:
        """A handling is over, or will not begin: free its slot and its line."""
        queued = self.queued.pop(record.event.message, None)
        if queued is not None:
            self._leave(queued)

    def retried(self, record: Record[events.MessageRetried]) -> None:
        """A message failed: queue it for its next attempt, at the front of its line."""
        failed = self.queued.pop(record.event.message)
        self._leave(failed)
        line = failed.line.box.line(failed.message.thread)
        self.queued[failed.message.id] = queued = Queued(failed.message, line)
        line.waiting.appendleft(queued)
        line.box.waiting += 1

    def effect_resolved(self, record: Record[events.StepResolved]) -> None:
        """Its message may start again."""
        self.wake(record.event.message)

    def agent_resumed(self, record: Record[events.AgentResumed]) -> None:
        """Its lines may go on."""
        self._list(self.box(record.event.agent))

    def thread_resumed(self, record: Record[events.ThreadResumed]) -> None:
        """Its lines may go on."""
        self._offer_lines(record.thread or "")

    def turn_ended(self, record: Record[events.TurnEnded]) -> None:
        """The lines of the next turn may go on."""
        session = self.folded.sessions.get(record.thread or "")
        if session is not None:
            self._offer_lines(session.turns[0])

    def _offer_lines(self, thread_id: str) -> None:
        for line in self._lines(thread_id):
            self._offer(line)

    def thread_killed(self, record: Record[events.ThreadKilled]) -> None:
        """Forget the waiting messages of the thread."""
        self._forget(record.thread or "")

    def turn_appended(self, record: Record[events.TurnAppended]) -> None:
        """Forget the message of the turn that waited."""
        self._forget(record.event.source)

    def _forget(self, thread_id: str) -> None:
        for line in self._lines(thread_id):
            for queued in line.waiting:
                del self.queued[queued.message.id]
            line.box.waiting -= len(line.waiting)
            line.waiting.clear()
            line.drop_if_empty()

    def _lines(self, thread_id: str) -> list[Line]:
        """The thread's lines."""
        found = (box.lines.get(thread_id) for box in self.boxes.values())
        return [line for line in found if line is not None]

    def starts(self, at: int) -> list[Message]:
        """The messages to start now, one from each agent in turn; each has its slot and its line from here on."""
        found: list[Message] = []
        ready = self.ready
        while ready and self.running < self.limit and not self.folded.paused:
            box = ready.popleft()
            queued = self._next_of(box, at)
            if queued is not None:
                found.append(queued.message)
            if queued is not None and (box.ring or box.resuming):
                ready.append(box)
            else:
                box.listed = False
        return found

    def _next_of(self, box: Mailbox, at: int) -> Queued | None:
        """Start one message of the box, if a slot is free and a line ready. Lines that cannot start leave the ring."""
        ring = box.ring
        while ring and box.running < box.limit and box.name not in self.folded.paused_agents:
            line = ring.popleft()
            line.ready = False
            if line.may_start(at) and self._may_run(line.waiting[0]):
                queued = line.busy = line.waiting.popleft()
                box.waiting -= 1
                box.running += 1
                self.running += 1
                if queued.is_suspect():
                    self.suspect = queued
                return queued
        return None

    def _may_run(self, queued: Queued) -> bool:
        """Whether no other suspect runs, if it is one."""
        return not queued.is_suspect() or self.suspect is None

    def _leave(self, queued: Queued) -> None:
        line = queued.line
        self._clear_suspicion(queued)
        if line.busy is queued:  # it has its slot, or a unit on its way to the disk gives it
            self._free(queued)
            return
        self.open_line(queued)
        line.waiters -= 1
        if queued in line.box.resuming:
            line.box.resuming.remove(queued)
            self.resuming -= 1
        line.drop_if_empty()

    def _free(self, queued: Queued) -> None:
        line = queued.line
        if line.busy is not queued:
            return
        line.busy = None
        line.box.running -= 1
        self.running -= 1
        if line.waiting:
            self._offer(line)
        else:
            line.drop_if_empty()
            self._list(line.box)

    def wait(self, queued: Queued, *, reserves_line: bool = False) -> None:
        """The handler waits in a step: free its slot, and its line too unless that is reserved for it."""
        line = queued.line
        line.waiters += 1
        self._clear_suspicion(queued)
        if not reserves_line:
            self._free(queued)
        else:
            line.busy = Reserved(queued)
            line.box.running -= 1
            self.running -= 1
            self._list(line.box)

    def open_line(self, queued: Queued) -> None:
        """Reserve the line no longer for this handler."""
        line = queued.line
        if line.is_reserved_for(queued):
            line.busy = None
            self._offer(line)

    def resume(self, queued: Queued) -> None:
        """The step is over: the handler wants its slot and its line back before anything new starts."""
        box = queued.line.box
        box.resuming.append(queued)
        self.resuming += 1
        self._list(box)

    def knows(self, queued: Queued) -> bool:
        """Whether the handler has its slot, or waits for it."""
        return queued.line.busy is queued or queued in queued.line.box.resuming

    def resumed(self) -> list[Message]:
        """The messages whose handlers may resume now; each has its slot and its line from here on."""
        found: list[Message] = []
        if not self.resuming or self.folded.paused:
            return found
        for box in tuple(self.ready):
            if box.resuming and box.name not in self.folded.paused_agents:
                self._resume_from(box, found)
        return found

    def _resume_from(self, box: Mailbox, found: list[Message]) -> None:
        for _ in range(len(box.resuming)):
            has_room = self.running < self.limit and box.running < box.limit
            if not has_room and not self.is_leaving:
                return
            queued = box.resuming.popleft()
            line = queued.line
            may_go = line.is_reserved_for(queued) or (has_room and line.busy is None)
            if not may_go or line.thread.paused or not self._may_run(queued):
                box.resuming.append(queued)
                continue
            if queued.is_suspect():
                self.suspect = queued
            line.busy = queued
            line.waiters -= 1
            self.resuming -= 1
            box.running += 1
            self.running += 1
            found.append(queued.message)

    def wake(self, message_id: str) -> None:
        """The line of a waiting message may have become ready: its retry is due, or its effect resolved."""
        self._offer(self.queued[message_id].line)

    def _clear_suspicion(self, queued: Queued) -> None:
        """The suspect runs no code of its own any more: the next suspect may run."""
        if self.suspect is not queued:
            return
        self.suspect = None
        for box in self.boxes.values():
            if box.resuming:
                self._list(box)
            for line in tuple(box.lines.values()):
                if line.waiting and line.waiting[0].is_suspect():
                    self._offer(line)

    def _offer(self, line: Line) -> None:
        """The line may be ready: put it into its mailbox's ring."""
        if not line.ready and line.waiting:
            line.ready = True
            line.box.ring.append(line)
        self._list(line.box)

    def _list(self, box: Mailbox) -> None:
        """The mailbox may have something to do."""
        if not box.listed and (box.ring or box.resuming):
            box.listed = True
            self.ready.append(box)


_FOLLOWED: Final[Mapping[type[events.Event], Callable[[Mailboxes, Record[Never]], None]]] = {
    events.MessageHandled: Mailboxes.ended,
    events.MessageDead: Mailboxes.ended,
    events.MessageRetried: Mailboxes.retried,
    events.StepResolved: Mailboxes.effect_resolved,
    events.AgentResumed: Mailboxes.agent_resumed,
    events.ThreadResumed: Mailboxes.thread_resumed,
    events.ThreadKilled: Mailboxes.thread_killed,
    events.TurnEnded: Mailboxes.turn_ended,
    events.TurnAppended: Mailboxes.turn_appended,
}
"""What frees slots and lines."""


# -- fairness between tenants (S4)


class FairShare(Entity):
    """Divides ``limit`` slots among the tenants that joined: each takes its slots in its own decisions."""

    _limit: int = 0
    _tenants: dict[Mailboxes, Callable[[], None]] = field(default_factory=dict)
    _turns: count[int] = field(default_factory=partial(count, 1))
    _will_look: bool = False

    def join(self, boxes: Mailboxes, start: Callable[[], None]) -> None:
        """The tenant takes its slots from here. ``start`` makes a decision that starts what has room."""
        self._tenants[boxes] = start
        self._divide()

    def leave(self, boxes: Mailboxes) -> None:
        """The tenant starts nothing more and its slots go to others; only handlers whose model has answered resume."""
        boxes.fair_share, boxes.limit, boxes.is_leaving = None, 0, True
        if self._tenants.pop(boxes, None) is not None:
            self._divide()

    def resize(self, limit: int) -> None:
        """Change the number of slots; handlers above it run to their end."""
        self._limit = limit
        self._divide()

    def measure(self, boxes: Mailboxes) -> None:
        """Set ``limit``: how many slots the tenant may hold when the decision at hand is made."""
        others = [each for each in self._tenants if each is not boxes]
        free = self._limit - boxes.running - sum(each.running for each in others)
        waiting = [each for each in others if wants_slots(each)]
        if waiting:
            free = self._part(boxes, min(waiting, key=_turn), free)
            self._look_soon()
        boxes.limit = boxes.running + free

    def _part(self, boxes: Mailboxes, rival: Mailboxes, free: int) -> int:
        """How many of the free slots are for this tenant, if ``rival`` is the next of the others."""
        if free <= 0 or not wants_slots(boxes) or _turn(rival) < _turn(boxes):
            return 0
        boxes.served = next(self._turns)
        return min(free, max(1, rival.running - boxes.running))

    def _divide(self) -> None:
        """Measure each tenant from now on, unless there is only one: that has all slots."""
        is_shared = len(self._tenants) > 1
        for boxes in self._tenants:
            boxes.fair_share, boxes.limit = self.measure if is_shared else None, self._limit
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._will_look:
            self._will_look = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Give away free slots. The next tenant takes one, or finds that it needs none."""
        self._will_look = False
        while self._limit > sum(each.running for each in self._tenants):
            waiting = [each for each in self._tenants if wants_slots(each)]
            if not waiting:
                return
            self._tenants[min(waiting, key=_turn)]()


def wants_slots(boxes: Mailboxes) -> bool:
    """Between decisions: whether something could start, or go on, if it had a slot."""
    return bool(boxes.ready) and not boxes.folded.paused


def _turn(boxes: Mailboxes) -> tuple[int, int]:
    """The tenant with the lowest turn is next."""
    return boxes.running, boxes.served
