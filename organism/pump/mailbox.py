"""A mailbox: an agent's lines, and the handlers of it that want to go on.

A *line* is the messages of one thread for one agent: one at a time, in order of position. A mailbox takes turns between
those that are ready, so a thread with ten thousand messages waiting delays another by one handling.
"""

from __future__ import annotations

from collections import deque

from organism.model.thread import Message, Thread


class Kept:
    """A line's ``busy`` while its handler waits for a model: without a slot, and nobody else comes to the line."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message


class Line:
    """One thread's messages for one agent.

    ``busy`` is the message whose handler holds the line now; ``waiters`` counts the handlers that wait in a step and
    come back to it. ``ready`` says that it stands in its mailbox's ring.
    """

    __slots__ = ("box", "busy", "head", "ready", "tail", "thread", "waiters")

    def __init__(self, box: Mailbox, thread: Thread) -> None:
        self.box = box
        self.thread = thread
        self.head: Message | None = None
        self.tail: Message | None = None
        self.busy: Message | Kept | None = None
        self.waiters = 0
        self.ready = False

    def may_start(self) -> bool:
        """Whether its head could start if there were a slot."""
        head = self.head
        if head is None or self.busy is not None:
            return False
        return not head.next_at and not self.thread.paused and not head.is_indeterminate()

    def is_open_to(self, message: Message) -> bool:
        """Whether a handler that waited in a step may come back to it."""
        return self.busy is None or self.is_kept_for(message)

    def is_kept_for(self, message: Message) -> bool:
        """Whether it stays shut until this message's handler comes back."""
        return type(self.busy) is Kept and self.busy.message is message

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
        """A line that nobody stands in, holds or comes back to is forgotten."""
        if self.head is None and self.busy is None and self.waiters == 0:
            self.box.lines.pop(self.thread.id, None)


class Mailbox:
    """An agent's lines. ``waiting`` counts messages that wait for a start, ``running`` the slots taken.

    ``ring`` holds the lines that may be ready, ``going_on`` the messages whose handlers want to go on; ``listed`` says
    that it stands in the list of mailboxes that may have something to do.
    """

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

    def line(self, thread: Thread) -> Line:
        """The thread's line, made on first use."""
        found = self.lines.get(thread.id)
        if found is None:
            found = self.lines[thread.id] = Line(self, thread)
        return found
