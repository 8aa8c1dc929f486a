"""The part of a text that a reader has not seen: the one place where a text that comes in pieces is cut.

A piece may come twice, by the feed and by the log, and a reader may come back after a break. Each piece therefore says
how many characters of its block come before it.
"""

from __future__ import annotations

from msgspec import field

from organism.events.entity import Entity
from organism.model.run import RunEntry


class Unseen(Entity):
    """A block whose reader has seen its first ``offset`` characters."""

    offset: int = 0

    def take(self, text: str, offset: int | None = None) -> str:
        """The part of the piece that is new; the reader has seen it from now on.

        ``offset`` counts the characters of the block before the piece. Without it, all of the piece is new.
        """
        new = text if offset is None else text[max(0, self.offset - offset) :]
        self.offset += len(new)
        return new

    def take_delta(self, entry: RunEntry) -> RunEntry | None:
        """The part of a delta that is new, as a delta; None if nothing of it is."""
        data = entry["data"]
        new = self.take(data["delta"], data["offset"])
        if not new:
            return None
        return {"type": entry["type"], "data": {**data, "delta": new, "offset": self.offset - len(new)}}


class AppendOnly(Entity):
    """A block for a reader from whom text cannot be taken back.

    A block begins again when its model call is repeated. As long as its words are the same, the reader gets what
    goes beyond those that it has.
    """

    _before: str = ""  # what the reader had when the block began again
    _pieces: list[str] = field(default_factory=list)  # the block as it comes this time
    _unseen: Unseen = field(default_factory=Unseen)

    @property
    def text(self) -> str:
        """The block as it came this time."""
        return "".join(self._pieces)

    @property
    def is_empty(self) -> bool:
        """Whether the reader has nothing of the block."""
        return not (self._before or self._unseen.offset)

    @property
    def is_shorter(self) -> bool:
        """Whether the reader has more than the block came to this time."""
        return self._unseen.offset < len(self._before)

    def restart(self) -> None:
        """The block begins again."""
        self._before = self.text + self._before[self._unseen.offset :]
        self._pieces, self._unseen = [], Unseen()

    def take(self, text: str, offset: int | None = None) -> str | None:
        """What the reader gets of the next piece; None if the block now differs from what the reader has."""
        begin = self._unseen.offset
        new = self._unseen.take(text, offset)
        self._pieces.append(new)
        known = self._before[begin : begin + len(new)]
        return new[len(known) :] if new.startswith(known) else None
