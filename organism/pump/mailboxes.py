"""Mailboxes: who may start next, as ``resumed()`` and ``starts()`` say at each decision. The fold makes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import field

from organism.events.entity import Entity
from organism.model.thread import Message, Thread

SUSPECT_DEATHS: Final = 2
"""A message that was running in this many crashes runs alone among its like (G8)."""


class Reserved(Entity):
    """A line's ``busy`` while its handler waits for a model: it has no slot, and no other message starts."""

    message: Message


class Line(Entity):
    """One thread's messages for one agent, handled one at a time in the order of their positions."""

    box: Mailbox
    thread: Thread
    head: Message | None = None
    tail: Message | None = None
    busy: Message | Reserved | None = None  # whose handler holds the line
    waiters: int = 0  # handlers that wait in a step
    ready: bool = False  # it is in its mailbox's ring

    def may_start(self) -> bool:
        """Whether its head could start if there were a slot."""
        head = self.head
        if head is None or self.busy is not None:
            return False
        return not head.next_at and not self.thread.paused and not head.is_indeterminate()

    def is_reserved_for(self, message: Message) -> bool:
        """Whether it stays shut until this message's handler comes back."""
        return type(self.busy) is Reserved and self.busy.message is message

    def push(self, message: Message) -> None:
        """Wait at the end."""
        message.line = self
        message.next = None
        if self.tail is None:
            self.head = message
        else:
            self.tail.next = message
        self.tail = message
        self.box.waiting += 1

    def push_front(self, message: Message) -> None:
        """Wait at the head again."""
        message.next = self.head
        self.head = message
        if self.tail is None:
            self.tail = message
        self.box.waiting += 1

    def pop(self) -> Message:
        """Take the head, which there must be; it holds the line from here on."""
        message = self.head
        assert message is not None, "a line that may start has a head"  # noqa: S101 - narrows the type
        self.head = message.next
        if self.head is None:
            self.tail = None
        message.next = None
        self.busy = message
        self.box.waiting -= 1
        return message

    def clear(self) -> None:
        """Forget all that wait."""
        while self.head is not None:
            self.head = self.head.next
            self.box.waiting -= 1
        self.tail = None

    def drop_if_empty(self) -> None:
        """A line that no message stands in, holds or comes back to is forgotten."""
        if self.head is None and self.busy is None and self.waiters == 0:
            self.box.lines.pop(self.thread.id, None)


class Mailbox(Entity):
    """An agent's lines, which take turns."""

    name: str
    limit: int
    paused: bool
    waiting: int = 0  # messages that wait for a start
    running: int = 0  # slots that are taken
    lines: dict[str, Line] = field(default_factory=dict)
    ring: deque[Line] = field(default_factory=deque)  # those that may be ready
    resuming: deque[Message] = field(default_factory=deque)  # whose handlers want to go on
    listed: bool = False  # it is among the ``ready``

    def line(self, thread: Thread) -> Line:
        """The thread's line, made on first use."""
        found = self.lines.get(thread.id)
        if found is None:
            found = self.lines[thread.id] = Line(self, thread)
        return found


class Mailboxes(Entity):
    """All mailboxes of a tenant, and the slots that their handlers share."""

    limit: int
    boxes: dict[str, Mailbox] = field(default_factory=dict)
    running: int = 0
    resuming: int = 0  # handlers that want to go on, which they do before anything new starts
    paused: bool = False
    suspect: Message | None = None  # the one that runs now
    ready: deque[Mailbox] = field(default_factory=deque)  # those that may have something to do
    fair_share: Callable[[Mailboxes], None] | None = None  # sets ``limit`` at each decision, if tenants share the slots
    is_leaving: bool = False  # only handlers whose line is reserved get a slot
    served: int = 0  # the turn in which the tenant last got a slot

    def box(self, name: str, limit: int = 1, *, paused: bool = False) -> Mailbox:
        """The agent's mailbox, made on first use."""
        found = self.boxes.get(name)
        if found is None:
            found = self.boxes[name] = Mailbox(name, limit, paused)
        return found

    def put(self, message: Message) -> None:
        """A message waits for its start, at the end of its line."""
        line = self.boxes[message.to].line(message.thread)
        line.push(message)
        if not line.ready and line.busy is None:
            self._offer(line)

    def starts(self) -> list[Message]:
        """The messages to start now, one from each agent in turn; each has its slot and its line from here on."""
        found: list[Message] = []
        ready = self.ready
        while ready and self.running < self.limit and not self.paused:
            box = ready.popleft()
            message = self._next_of(box)
            if message is not None:
                found.append(message)
            if message is not None and (box.ring or box.resuming):
                ready.append(box)
            else:
                box.listed = False
        return found

    def _next_of(self, box: Mailbox) -> Message | None:
        """Start one message of the box, if a slot is free and a line ready. Lines that can't start leave the ring."""
        ring = box.ring
        while ring and box.running < box.limit and not box.paused:
            line = ring.popleft()
            line.ready = False
            if line.may_start() and self._may_run(line.head):
                message = line.pop()
                box.running += 1
                self.running += 1
                if message.deaths >= SUSPECT_DEATHS:
                    self.suspect = message
                return message
        return None

    def _may_run(self, message: Message | None) -> bool:
        """Whether no other suspect runs, if it is one."""
        return message is None or message.deaths < SUSPECT_DEATHS or self.suspect is None

    def release(self, message: Message) -> None:
        """The message's handling is over: its slot and its line are free."""
        self._clear_suspicion(message)
        self._free(message)

    def _free(self, message: Message) -> None:
        line: Line = message.line
        if line.busy is not message:
            return
        line.busy = None
        line.box.running -= 1
        self.running -= 1
        if line.head is not None:
            self._offer(line)
        else:
            line.drop_if_empty()
            self._list(line.box)

    def wait(self, message: Message, *, reserves_line: bool = False) -> None:
        """The handler waits in a step, and comes back: its slot is free, and its line too unless that is reserved."""
        line: Line = message.line
        line.waiters += 1
        self._clear_suspicion(message)
        if not reserves_line:
            self._free(message)
        else:
            line.busy = Reserved(message)
            line.box.running -= 1
            self.running -= 1
            self._list(line.box)

    def open_line(self, message: Message) -> None:
        """The line is not reserved for this handler any more, if it was."""
        line: Line = message.line
        if line.is_reserved_for(message):
            line.busy = None
            self._offer(line)

    def resume(self, message: Message) -> None:
        """The step is over: the handler wants its slot and its line again, before anything new."""
        box: Mailbox = message.line.box
        box.resuming.append(message)
        self.resuming += 1
        self._list(box)

    def forget_wait(self, message: Message) -> None:
        """The handler that waited in a step will not go on: it was killed or cancelled."""
        self._clear_suspicion(message)
        self.open_line(message)
        line: Line = message.line
        line.waiters -= 1
        if message in line.box.resuming:
            line.box.resuming.remove(message)
            self.resuming -= 1
        line.drop_if_empty()

    def resumed(self) -> list[Message]:
        """The messages whose handlers may go on now; each has its slot and its line from here on."""
        found: list[Message] = []
        if not self.resuming or self.paused:
            return found
        for box in tuple(self.ready):
            if box.resuming and not box.paused:
                self._resume_from(box, found)
        return found

    def _resume_from(self, box: Mailbox, found: list[Message]) -> None:
        for _ in range(len(box.resuming)):
            has_room = self.running < self.limit and box.running < box.limit
            if not has_room and not self.is_leaving:
                return
            message = box.resuming.popleft()
            line: Line = message.line
            may_go = line.is_reserved_for(message) or (has_room and line.busy is None)
            if not may_go or line.thread.paused or not self._may_run(message):
                box.resuming.append(message)
                continue
            if message.deaths >= SUSPECT_DEATHS:
                self.suspect = message
            line.busy = message
            line.waiters -= 1
            self.resuming -= 1
            box.running += 1
            self.running += 1
            found.append(message)

    def wake(self, message: Message) -> None:
        """The line of a waiting message may have become ready: its retry is due, or its effect resolved."""
        self._offer(message.line)

    def wake_thread(self, thread: Thread) -> None:
        """A thread was resumed."""
        for box in self.boxes.values():
            line = box.lines.get(thread.id)
            if line is not None:
                self._offer(line)

    def wake_agent(self, name: str) -> None:
        """An agent was resumed, or got more slots."""
        self._list(self.boxes[name])

    def clear_thread(self, thread: Thread) -> None:
        """Forget the waiting messages of a killed thread."""
        for box in self.boxes.values():
            line = box.lines.get(thread.id)
            if line is not None:
                line.clear()
                line.drop_if_empty()

    def _clear_suspicion(self, message: Message) -> None:
        """The suspect runs no code of its own any more: the next one may run."""
        if self.suspect is not message:
            return
        self.suspect = None
        for box in self.boxes.values():
            if box.resuming:
                self._list(box)
            for line in tuple(box.lines.values()):
                if line.head is not None and line.head.deaths >= SUSPECT_DEATHS:
                    self._offer(line)

    def _offer(self, line: Line) -> None:
        """The line may be ready: put it into its mailbox's ring."""
        if not line.ready and line.head is not None:
            line.ready = True
            line.box.ring.append(line)
        self._list(line.box)

    def _list(self, box: Mailbox) -> None:
        """The mailbox may have something to do."""
        if not box.listed and (box.ring or box.resuming):
            box.listed = True
            self.ready.append(box)
