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
    one filled up is forgotten, unless it is not yet on the disk, where ``look_up(stream)`` finds it. A stream above
    ``greatest`` was never written: ids rise with time, so most new threads need no look-up.
    """

    __slots__ = ("_look_up", "_old", "_young", "committed", "greatest")

    def __init__(self, look_up: Callable[[str], int]) -> None:
        self._look_up = look_up
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self.greatest = ""
        self.committed = 0
        """Every event up to this position is on the disk, where it can be looked up."""

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
        self.greatest = max(self.greatest, stream)
        if len(self._young) > GENERATION_STREAMS:
            kept = {stream: head for stream, head in self._old.items() if head > self.committed}
            self._old = kept | self._young
            self._young = {}

    def forget(self) -> None:
        """A commit failed: what is remembered may rest on it."""
        self._young, self._old = {}, {}
