"""Mailboxes: who may start next. What a process alone knows; after a restart it is made anew from the fold.

Handlers that waited in a step go on before anything new starts. Nothing here reads a clock, awaits or logs: the pump
asks
``goers()`` and ``starts()`` at each decision and records what they answer.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from organism.model.thread import Message, Thread
from organism.pump.mailbox import Kept, Line, Mailbox

SUSPECT_DEATHS: Final = 2
"""A message that ran at this many deaths of the process runs alone among its like (G8)."""


class Divider(Protocol):
    """Who divides slots among several tenants."""

    def measure(self, boxes: Mailboxes) -> None:
        """Set ``limit``: how many slots the tenant may hold when the decision at hand is made."""


class Slots:
    """The slots that all handlers share. ``suspect`` is the one suspect that runs now.

    ``share`` sets ``limit`` anew at each decision while other tenants have slots of the same; ``served`` is its note of
    when the tenant last got one. ``is_leaving``: no more slots are given, but to handlers that kept their line.
    """

    __slots__ = ("boxes", "is_leaving", "limit", "ready", "running", "served", "share", "suspect")

    def __init__(self, limit: int) -> None:
        self.boxes: dict[str, Mailbox] = {}
        self.limit = limit
        self.running = 0
        self.suspect: Message | None = None
        self.ready: deque[Mailbox] = deque()
        self.share: Divider | None = None
        self.is_leaving = False
        self.served = 0

    def may_run(self, message: Message | None) -> bool:
        """Whether a suspect that runs does not keep this one from it."""
        return message is None or message.deaths < SUSPECT_DEATHS or self.suspect is None

    def take(self, line: Line) -> Message:
        """The line's head gets a slot, and the line."""
        message = line.pop()
        line.box.running += 1
        self.running += 1
        if message.deaths >= SUSPECT_DEATHS:
            self.suspect = message
        return message

    def free(self, message: Message) -> None:
        """Slot and line of the message are free, if it holds them."""
        line: Line = message.line
        if line.busy is not message:
            return
        line.busy = None
        line.box.running -= 1
        self.running -= 1
        if line.head is not None:
            self.offer(line)
        else:
            line.drop_if_empty()
            self.list(line.box)

    def open_line(self, message: Message) -> None:
        """The handler does not keep its line any more, if it did."""
        line: Line = message.line
        if line.is_kept_for(message):
            line.busy = None
            self.offer(line)

    def clear_suspicion(self, message: Message) -> None:
        """The suspect runs no code of its own any more: the next one may run."""
        if self.suspect is not message:
            return
        self.suspect = None
        for box in self.boxes.values():
            if box.going_on:
                self.list(box)
            for line in tuple(box.lines.values()):
                if line.head is not None and line.head.deaths >= SUSPECT_DEATHS:
                    self.offer(line)

    def offer(self, line: Line) -> None:
        """The line may be ready: put it into its mailbox's ring."""
        if not line.ready and line.head is not None:
            line.ready = True
            line.box.ring.append(line)
        self.list(line.box)

    def list(self, box: Mailbox) -> None:
        """The mailbox may have something to do."""
        if not box.listed and (box.ring or box.going_on):
            box.listed = True
            self.ready.append(box)


class Mailboxes(Slots):
    """All mailboxes of a tenant. ``going_on`` counts the handlers that want to go on."""

    __slots__ = ("going_on", "paused")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.paused = False
        self.going_on = 0

    def box(self, name: str, limit: int = 1, *, paused: bool = False) -> Mailbox:
        """The agent's mailbox, made on first use."""
        found = self.boxes.get(name)
        if found is None:
            found = self.boxes[name] = Mailbox(name, limit, paused=paused)
        return found

    def put(self, message: Message) -> None:
        """A message waits for its start, at the end of its line."""
        line = self.boxes[message.to].line(message.thread)
        line.push(message)
        if not line.ready and line.busy is None:
            self.offer(line)

    def starts(self) -> list[Message]:
        """The messages to start now, one from each agent in turn; each has its slot and its line from here on."""
        found: list[Message] = []
        ready = self.ready
        while ready and self.running < self.limit and not self.paused:
            box = ready.popleft()
            message = self._next_of(box)
            if message is not None:
                found.append(message)
            if message is not None and (box.ring or box.going_on):
                ready.append(box)
            else:
                box.listed = False
        return found

    def _next_of(self, box: Mailbox) -> Message | None:
        """Start one message of the box, if it has a free slot and a ready line.

        A line that can't start leaves the ring; whatever makes it ready again offers it again.
        """
        ring = box.ring
        while ring and box.running < box.limit and not box.paused:
            line = ring.popleft()
            line.ready = False
            if line.may_start() and self.may_run(line.head):
                return self.take(line)
        return None

    def release(self, message: Message) -> None:
        """The message's handling is over: its slot and its line are free."""
        self.clear_suspicion(message)
        self.free(message)

    def wait(self, message: Message, *, keeps_line: bool = False) -> None:
        """The handler waits in a step, and comes back: its slot is free, and its line open unless it keeps that."""
        line: Line = message.line
        line.waiters += 1
        self.clear_suspicion(message)
        if not keeps_line:
            self.free(message)
        else:
            line.busy = Kept(message)
            line.box.running -= 1
            self.running -= 1
            self.list(line.box)

    def go_on(self, message: Message) -> None:
        """The step is over: the handler wants its slot and its line again, before anything new."""
        box: Mailbox = message.line.box
        box.going_on.append(message)
        self.going_on += 1
        self.list(box)

    def forget_wait(self, message: Message) -> None:
        """The handler that waited in a step will not go on: it was killed or cancelled."""
        self.clear_suspicion(message)
        self.open_line(message)
        line: Line = message.line
        line.waiters -= 1
        if message in line.box.going_on:
            line.box.going_on.remove(message)
            self.going_on -= 1
        line.drop_if_empty()

    def goers(self) -> list[Message]:
        """The handlings that may go on now; each has its slot and its line from here on."""
        found: list[Message] = []
        if not self.going_on or self.paused:
            return found
        for box in tuple(self.ready):
            if box.going_on and not box.paused:
                self._go_on_from(box, found)
        return found

    def _go_on_from(self, box: Mailbox, found: list[Message]) -> None:
        for _ in range(len(box.going_on)):
            has_room = self.running < self.limit and box.running < box.limit
            if not has_room and not self.is_leaving:
                return
            message = box.going_on.popleft()
            line: Line = message.line
            may_go = line.is_open_to(message) if has_room else line.is_kept_for(message)
            if not may_go or line.thread.paused or not self.may_run(message):
                box.going_on.append(message)
                continue
            if message.deaths >= SUSPECT_DEATHS:
                self.suspect = message
            line.busy = message
            line.waiters -= 1
            self.going_on -= 1
            box.running += 1
            self.running += 1
            found.append(message)

    def wake(self, message: Message) -> None:
        """The line of a waiting message may have become ready: its retry is due, or its effect resolved."""
        self.offer(message.line)

    def wake_thread(self, thread: Thread) -> None:
        """A thread was resumed."""
        for box in self.boxes.values():
            line = box.lines.get(thread.id)
            if line is not None:
                self.offer(line)

    def wake_agent(self, name: str) -> None:
        """An agent was resumed, or got more slots."""
        self.list(self.boxes[name])

    def clear_thread(self, thread: Thread) -> None:
        """Forget the waiting messages of a killed thread."""
        for box in self.boxes.values():
            line = box.lines.get(thread.id)
            if line is not None:
                line.clear()
                line.drop_if_empty()
