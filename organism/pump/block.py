"""A block: a message or a thought that is shown while its text comes.

Who listens to the feed hears each piece at once, as soon as the block's start is on disk. The log gets the text
gathered: once a second, and the rest at the block's end, or when the handling is over.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

import orjson

from organism.model.events import Content, Event
from organism.model.thread import Message
from organism.pump.feed import Delta, Feed
from organism.pump.timers import Timers
from organism.pump.unit import Decision, State, Tell
from organism.pump.veil import Veil

GATHER_US: Final = 1_000_000
MOST_CHARACTERS: Final = 16_384
"""What comes faster is written before its second is over, so that no memory holds more of it."""


class Room(Protocol):
    """What a block asks of the pump."""

    feed: Feed
    state: State
    timers: Timers

    def write(self, decision: Decision, tell: Tell | None = None) -> None:
        """Append the decision; ``tell`` is called once it is on disk."""


class Teller(Protocol):
    """The handling that shows it."""

    message: Message
    dead: bool

    @property
    def pump(self) -> Room:
        """Where it runs."""

    def decide(self) -> Decision:
        """Begin a decision of the handling."""


class Block:
    """One block of a handling. ``length`` counts its characters; so many of them are ``appended`` to the log.

    Nothing more comes of one that ``is_over``: it has ended, or was cut.
    """

    __slots__ = (
        "_begun", "_is_due", "_known", "_run", "_text", "_veil", "appended", "id", "is_over", "kind", "length", "start",
    )  # fmt: skip

    def __init__(self, run: Teller, kind: str, block_id: str) -> None:
        self._run = run
        self.kind = kind
        self.id = block_id
        self.start = 0
        self.length = self.appended = self._known = 0
        self._text = ""
        self._veil = Veil(run.pump.feed.redactor)
        self._begun: Event | None = None
        self._is_due = self.is_over = False

    def begin(self, decision: Decision, content: Content | None = None) -> None:
        """It begins with this decision; ``on_disk`` tells when that is on disk."""
        self._begun = self._add(decision, "start", content)

    def on_disk(self, unit: Decision) -> None:
        """Its start is in the log: from here on it is heard."""
        if self._run.dead or self.is_over or self._begun is None or unit.failed is not None:
            return
        self.start = self._begun.position
        feed = self._run.pump.feed
        feed.begin(self)
        if (said := self.said()).text:
            feed.tell(said)

    def add(self, text: str) -> None:
        """The next piece of its text."""
        self._take(self._veil.take(text))

    def _take(self, text: str) -> None:
        if not text:
            return
        offset = self.length
        self._text += text
        self.length += len(text)
        if self.start:
            self._run.pump.feed.tell(self._delta(offset, text))
        if self.length - self.appended >= MOST_CHARACTERS:
            self.due()
        elif not self._is_due:
            self._is_due = True
            self._run.pump.timers.add(self._run.pump.state.now() + GATHER_US, self)

    def due(self) -> None:
        """A second is over, or much has come: what was gathered goes to the log."""
        self._is_due = False
        if self._run.dead or self.is_over or self.appended == self.length:
            return
        decision = self._run.decide()
        self.write(decision)
        self._run.pump.write(decision, partial(self._written, self.appended))

    def write(self, decision: Decision) -> None:
        """Add what was gathered."""
        if self.appended == self.length:
            return
        text = self._text[self.appended - self.length :]
        entry = {"id": self.id, "delta": text, "offset": self.appended}
        content = Content(self._run.message.thread.id, orjson.dumps(entry))
        self._add(decision, "delta", content, offset=self.appended, length=len(text))
        self.appended = self.length

    def end(self, decision: Decision, content: Content | None = None) -> None:
        """All of it has come."""
        self.cut(decision)
        self._add(decision, "end", content)

    def cut(self, decision: Decision) -> None:
        """No more of it comes: what there is is written. It may begin again, or end when the run does."""
        self._take(self._veil.rest())
        self.write(decision)
        self.drop()

    def drop(self) -> None:
        """Nobody hears more of it."""
        self.is_over = True
        self._run.pump.feed.end(self)

    def said(self) -> Delta:
        """See ``Speaker``."""
        return self._delta(self._known, self._text)

    def _written(self, upto: int, unit: Decision) -> None:
        if unit.failed is None:
            self._text = self._text[upto - self._known :]
            self._known = upto

    def _delta(self, offset: int, text: str) -> Delta:
        message = self._run.message
        return Delta(message.thread.id, message.id, message.to, self.kind, self.id, self.start, offset, text)

    def _add(self, decision: Decision, part: str, content: Content | None, **more: int) -> Event:
        message = self._run.message
        data = {"message": message.id, "agent": message.to, "id": self.id, **more}
        return decision.add(f"run_{self.kind}_{part}", data, content, message.thread.id)
