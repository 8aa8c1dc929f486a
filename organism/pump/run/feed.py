"""The feed: text of open blocks, published before it is in the log. A missed piece is read from the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model.redact import Redactor
from organism.model.run import RunEntry
from organism.model.unseen import Unseen
from organism.views.run import kind_of


class Delta(NamedTuple):
    """A piece of a block's text: ``start`` is the block's position, ``offset`` counts the characters before it."""

    thread: str
    message: str
    agent: str
    kind: str
    id: str
    start: int
    offset: int
    text: str

    @property
    def block(self) -> tuple[str, str, str]:
        """The block that it is a piece of."""
        return self.message, self.kind, self.id

    @property
    def end(self) -> int:
        """How many characters of the block there are up to its end."""
        return self.offset + len(self.text)

    def after(self, offset: int) -> Delta:
        """The part of it after so many characters of the block."""
        unseen = Unseen(offset)
        text = unseen.take(self.text, self.offset)
        return self._replace(offset=unseen.offset - len(text), text=text)

    @property
    def entry(self) -> RunEntry:
        """The piece as an entry of the run."""
        data = {"id": self.id, "delta": self.text, "offset": self.offset}
        return {"type": f"{self.kind}_delta", "data": data}


OnDelta = Callable[[Delta], None]


class Feed(Entity):
    """The open blocks, and who subscribes to their text. ``redactor`` knows what must not be shown."""

    redactor: Redactor = field(default_factory=Redactor)
    _blocks: dict[object, Callable[[], Delta]] = field(default_factory=dict)
    _subscribers: dict[OnDelta, None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many subscribers there are."""
        return len(self._subscribers)

    def subscribe(self, on_delta: OnDelta) -> None:
        """Call ``on_delta`` with each piece from now on."""
        self._subscribers[on_delta] = None

    def unsubscribe(self, on_delta: OnDelta) -> None:
        """Stop calling ``on_delta``."""
        self._subscribers.pop(on_delta, None)

    def begin(self, block: object, unlogged: Callable[[], Delta]) -> None:
        """A block's start is on disk; ``unlogged`` gives the text of it that is not known to be in the log."""
        self._blocks[block] = unlogged

    def end(self, block: object) -> None:
        """The rest of the block comes by the log alone."""
        self._blocks.pop(block, None)

    def publish(self, delta: Delta) -> None:
        """Give a new piece of a block's text to all subscribers."""
        for on_delta in tuple(self._subscribers):
            on_delta(delta)

    def unlogged(self) -> list[Delta]:
        """The text of all open blocks that is not known to be in the log."""
        return [delta for unlogged in self._blocks.values() if (delta := unlogged()).text]


class LiveText(Entity):
    """Orders the feed's pieces among events read up to ``position``: early ones wait, those after a gap are dropped."""

    position: int
    _blocks: dict[tuple[str, str, str], Delta] = field(default_factory=dict)
    _early: list[Delta] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether it needs the events that are read."""
        return bool(self._blocks or self._early)

    def take(self, delta: Delta) -> Delta | None:
        """Take a piece; gives the part of it that is new and follows without a gap."""
        known = self._blocks.get(delta.block)
        if known is None or known.start != delta.start:
            if delta.start > self.position:
                self._early.append(delta)
                return None
            if known is not None and known.start > delta.start:
                return None
            known = delta._replace(text="")
        is_new = delta.offset <= known.end < delta.end
        new = delta.after(known.end) if is_new else delta._replace(text="")
        self._blocks[delta.block] = known._replace(text=known.text + new.text)
        return new if is_new else None

    def read(self, record: Record[events.RunEvent]) -> list[Delta]:
        """Take an event of a run from the log; gives the pieces that waited for it."""
        self.position = record.position
        event, block = record.event, _block_of(record)
        if isinstance(event, events.RunMessageStart | events.RunThoughtStart):
            _, kind, block_id = block
            first = Delta(record.thread or "", event.message, event.agent, kind, block_id, record.position, 0, "")
            self._blocks[block] = first
            early, self._early = self._early, []
            return [new for delta in early if (new := self.take(delta)) is not None]
        if isinstance(event, events.RunDelta) and block in self._blocks:
            known, upto = self._blocks[block], event.offset + event.length
            self._blocks[block] = known.after(upto)
        elif isinstance(event, events.RunMessageEnd | events.RunThoughtEnd):
            self._blocks.pop(block, None)
        elif isinstance(event, events.RunDone):
            self._blocks = {each: known for each, known in self._blocks.items() if each[0] != event.message}
        return []

    def received(self, record: Record[events.RunDelta]) -> int:
        """How many characters of the block of a logged delta came before it, from the feed or the log."""
        block = self._blocks.get(_block_of(record))
        return block.end if block is not None else 0

    def unread(self) -> list[Delta]:
        """The text of open blocks that was taken from the feed and not read from the log yet."""
        return [known for known in self._blocks.values() if known.text]


def _block_of(record: Record[events.RunEvent]) -> tuple[str, str, str]:
    """The ``Delta.block`` of its pieces."""
    return record.event.message, kind_of(record).partition("_")[0], record.event.id or ""
