"""Mailboxes: who may start next. What a process alone knows; after a restart it is made anew from the fold.

A *line* is the messages of one thread for one agent: one at a time, in order of position. A *mailbox* is an agent's
lines and takes turns between those that are ready, so a thread with ten thousand messages waiting delays another by
one handling. Handlings that waited in a step go on before anything new starts.

Nothing here reads a clock, awaits or logs: the pump asks ``starts()`` at each decision and records what it answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from organism.model.thread import Message, Thread

SUSPECT_DEATHS: Final = 2
"""A message that ran at this many deaths of the process runs alone among its like (G8)."""


class Line:
    """One thread's messages for one agent. ``busy`` is the message whose handler holds the line now."""

    __slots__ = ("box", "busy", "head", "ready", "tail", "thread", "waiters")

    def __init__(self, box: Mailbox, thread: Thread) -> None:
        self.box = box
        self.thread = thread
        self.head: Message | None = None
        self.tail: Message | None = None
        self.busy: Message | None = None
        self.waiters = 0
        self.ready = False

    def may_start(self) -> bool:
        """Whether its head could start if there were a slot."""
        head = self.head
        return (
            head is not None
            and self.busy is None
            and not head.next_at
            and not self.thread.paused
            and not head.is_indeterminate()
        )

    def __iter__(self) -> Iterator[Message]:
        message = self.head
        while message is not None:
            yield message
            message = message.next


class Mailbox:
    """An agent's lines. ``waiting`` counts messages that wait for a start, ``running`` the slots taken."""

    __slots__ = ("going_on", "limit", "lines", "listed", "name", "paused", "ring", "running", "waiting")

    def __init__(self, name: str, limit: int, *, paused: bool) -> None:
        self.name = name
        self.limit = limit
        self.paused = paused
        self.waiting = 0
        self.running = 0
        self.lines: dict[str, Line] = {}
        self.ring: deque[Line] = deque()
        self.going_on: deque[Message] = deque()
        self.listed = False


class Mailboxes:
    """All mailboxes of a tenant and the slots they share."""

    __slots__ = ("_ready", "boxes", "going_on", "limit", "paused", "running", "suspect")

    def __init__(self, limit: int) -> None:
        self.boxes: dict[str, Mailbox] = {}
        self.limit = limit
        self.running = 0
        self.paused = False
        self.suspect: Message | None = None
        self._ready: deque[Mailbox] = deque()
        self.going_on = 0

    def box(self, name: str, limit: int = 1, *, paused: bool = False) -> Mailbox:
        """The agent's mailbox, made on first use."""
        found = self.boxes.get(name)
        if found is None:
            found = self.boxes[name] = Mailbox(name, limit, paused=paused)
        return found

    def put(self, message: Message) -> None:
        """A message waits for its start, at the end of its line."""
        box = self.boxes[message.to]
        thread = message.thread
        line = box.lines.get(thread.id)
        if line is None:
            line = box.lines[thread.id] = Line(box, thread)
        message.line = line
        message.next = None
        if line.tail is None:
            line.head = line.tail = message
        else:
            line.tail.next = message
            line.tail = message
        box.waiting += 1
        if not line.ready and line.busy is None:
            self._offer(line)

    def put_back(self, message: Message) -> None:
        """A message that ran waits again, at the head of its line: for its retry, or for its start after a death."""
        line: Line = message.line
        message.next = line.head
        line.head = message
        if line.tail is None:
            line.tail = message
        line.box.waiting += 1

    def starts(self) -> list[Message]:
        """The messages to start now, one from each agent in turn; each has its slot and its line from here on."""
        found: list[Message] = []
        ready = self._ready
        while ready and self.running < self.limit and not self.paused:
            box = ready.popleft()
            message = self._next_of(box)
            if message is None:
                box.listed = False
            else:
                found.append(message)
                if box.ring or box.going_on:
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
            if line.may_start() and self._may_run(line.head):
                return self._take(line)
        return None

    def _may_run(self, message: Message | None) -> bool:
        return message is None or message.deaths < SUSPECT_DEATHS or self.suspect is None

    def _take(self, line: Line) -> Message:
        message = line.head
        assert message is not None, "a line that may start has a head"  # noqa: S101 - narrows the type
        line.head = message.next
        if line.head is None:
            line.tail = None
        message.next = None
        line.busy = message
        box = line.box
        box.waiting -= 1
        box.running += 1
        self.running += 1
        if message.deaths >= SUSPECT_DEATHS:
            self.suspect = message
        return message

    def release(self, message: Message) -> None:
        """The message's handling is over: its slot and its line are free."""
        if self.suspect is message:
            self.suspect = None
            self._offer_suspects()
        self._free(message)

    def wait(self, message: Message) -> None:
        """The handler waits in a step: its slot is free and its line open, but the line is kept for it."""
        message.line.waiters += 1
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
        elif line.waiters == 0:
            line.box.lines.pop(line.thread.id, None)
        self._list(line.box)

    def go_on(self, message: Message) -> None:
        """The step is over: the handler wants its slot and its line again, before anything new."""
        box: Mailbox = message.line.box
        box.going_on.append(message)
        self.going_on += 1
        self._list(box)

    def forget_wait(self, message: Message) -> None:
        """The handler that waited in a step will not go on: it was killed or cancelled."""
        if self.suspect is message:
            self.suspect = None
            self._offer_suspects()
        line: Line = message.line
        line.waiters -= 1
        if message in line.box.going_on:
            line.box.going_on.remove(message)
            self.going_on -= 1
        self._drop_if_empty(line)

    def goers(self) -> list[Message]:
        """The handlings that may go on now; each has its slot and its line from here on."""
        found: list[Message] = []
        if not self.going_on or self.paused:
            return found
        for box in tuple(self._ready):
            if box.going_on and not box.paused:
                self._go_on_from(box, found)
        return found

    def _go_on_from(self, box: Mailbox, found: list[Message]) -> None:
        for _ in range(len(box.going_on)):
            if self.running >= self.limit or box.running >= box.limit:
                return
            message = box.going_on.popleft()
            line: Line = message.line
            if line.busy is not None or line.thread.paused:
                box.going_on.append(message)
                continue
            line.busy = message
            line.waiters -= 1
            self.going_on -= 1
            box.running += 1
            self.running += 1
            found.append(message)

    def wake(self, message: Message) -> None:
        """The line of a waiting message may have become ready.

        Its retry is due, its effect resolved, its thread resumed.
        """
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

    def remove(self, message: Message) -> None:
        """Take a waiting message out of its line: it was dropped or parked."""
        line: Line = message.line
        previous: Message | None = None
        for waiting in line:
            if waiting is message:
                self._unlink(line, previous, message)
                break
            previous = waiting
        self._drop_if_empty(line)
        self._offer(line)

    def _unlink(self, line: Line, previous: Message | None, message: Message) -> None:
        if previous is None:
            line.head = message.next
        else:
            previous.next = message.next
        if line.tail is message:
            line.tail = previous
        line.box.waiting -= 1

    def _drop_if_empty(self, line: Line) -> None:
        if line.head is None and line.busy is None and line.waiters == 0:
            line.box.lines.pop(line.thread.id, None)

    def clear_thread(self, thread: Thread) -> None:
        """Forget the waiting messages of a killed thread."""
        for box in self.boxes.values():
            line = box.lines.get(thread.id)
            if line is not None:
                box.waiting -= sum(1 for _ in line)
                line.head = line.tail = None
                self._drop_if_empty(line)

    def _offer(self, line: Line) -> None:
        if not line.ready and line.head is not None:
            line.ready = True
            line.box.ring.append(line)
        self._list(line.box)

    def _offer_suspects(self) -> None:
        suspects: Iterable[Line] = (
            line
            for box in self.boxes.values()
            for line in box.lines.values()
            if line.head is not None and line.head.deaths >= SUSPECT_DEATHS
        )
        for line in tuple(suspects):
            self._offer(line)

    def _list(self, box: Mailbox) -> None:
        if not box.listed and (box.ring or box.going_on):
            box.listed = True
            self._ready.append(box)
