"""The head of each stream, for ``expect``: in memory for those written lately, looked up for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from organism.errors import StalePosition
from organism.model.events import Unit

GENERATION_STREAMS: Final = 4096


class Heads:
    """Stream → position of its last event, those on their way to the disk included.

    Two generations of at most ``GENERATION_STREAMS`` each bound the memory: what was not touched while the younger
    one filled up is let go, unless it is not yet in the index that ``look_up(stream)`` reads. A stream above
    ``greatest`` was never indexed: ids rise with time, so most new threads need no look-up.
    """

    __slots__ = ("_look_up", "_old", "_young", "greatest", "indexed")

    def __init__(self, look_up: Callable[[str], int]) -> None:
        self._look_up = look_up
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self.greatest = ""
        self.indexed = 0
        """Every event up to this position is in the index."""

    def check(self, expect: Mapping[str, int | Unit]) -> None:
        """Raise ``StalePosition`` if any stream has moved on since."""
        for stream, seen in expect.items():
            head = self.of(stream)
            if head == seen:
                continue
            first, last = (seen.first, seen.last) if isinstance(seen, Unit) else (seen, seen)
            if not first <= head <= last:
                raise StalePosition(
                    f"The decision rests on position {last} of stream {stream!r}, which is at {head} by now."
                )

    def of(self, stream: str) -> int:
        """The position of the stream's last event; 0 for a stream that does not exist."""
        head = self._young.get(stream)
        if head is None:
            head = self._old.get(stream)
            if head is None:
                head = 0 if stream > self.greatest else self._look_up(stream)
            self.put(stream, head)
        return head

    def put(self, stream: str, position: int) -> None:
        """The stream's last event is at ``position`` now."""
        self._young[stream] = position
        if len(self._young) > GENERATION_STREAMS:
            self._turn()

    def update(self, heads: Mapping[str, int]) -> None:
        """``put`` for each of them."""
        for stream, position in heads.items():
            self.put(stream, position)

    def known(self, stream: str) -> int | None:
        """What is in memory of the stream's head; None if nothing is."""
        head = self._young.get(stream)
        return self._old.get(stream) if head is None else head

    def restore(self, before: Mapping[str, int | None]) -> None:
        """The streams are where they were (``known``) before a batch that is not on the disk."""
        for stream, head in before.items():
            if head is None:
                self._young.pop(stream, None)
                self._old.pop(stream, None)
            else:
                self.put(stream, head)

    def _turn(self) -> None:
        kept = {stream: head for stream, head in self._old.items() if head > self.indexed}
        self._old = kept | self._young
        self._young = {}
