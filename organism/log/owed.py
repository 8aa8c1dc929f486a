"""What is committed and not folded into rows yet, in order."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from organism.log.batch import Batch
from organism.log.encode import unfold
from organism.log.upcast import Upcaster
from organism.model.events import Event

ALL: Final = sys.maxsize
UNPACK_UNITS: Final = 128
"""So many rows of the log become events at a time."""


class Owed:
    """The events after ``position`` up to ``head``.

    What next to nobody will ask for is packed: its units are kept as their rows of the log. Events take ten times the
    room, and would push what is needed out of the processor's cache, only to be freed.
    """

    __slots__ = ("_events", "_packed", "_upcaster", "head", "position")

    def __init__(self, position: int) -> None:
        self.position = self.head = position
        self._events: list[Event] = []
        self._packed: list[tuple[int, bytes]] = []
        self._upcaster = Upcaster()

    def count(self) -> int:
        """How many events."""
        return self.head - self.position

    def add(self, events: Sequence[Event]) -> None:
        """These are owed too."""
        if events:
            self._unpack(ALL)
            self._events += events
            self.head = events[-1].position

    def pack(self, batch: Batch) -> None:
        """These are owed too, and it is likely that they will be passed by."""
        self._packed += zip(batch.firsts, batch.bodies, strict=True)
        self.head = batch.last

    def take(self, most: int) -> list[Event]:
        """The first ``most``, or all: they are owed no more."""
        self._unpack(most)
        taken, self._events = self._events, []
        if len(taken) > most:
            taken, self._events = taken[:most], taken[most:]
        if taken:
            self.position = taken[-1].position
        return taken

    def pass_by(self, position: int) -> None:
        """What lies up to there is owed no more."""
        del self._events[: position - self.position]
        gone = bisect_right(self._packed, position, key=itemgetter(0))
        ends = self._packed[gone][0] - 1 if gone < len(self._packed) else self.head
        if gone and ends > position:  # the last of them goes on beyond it
            gone -= 1
        del self._packed[:gone]
        self.position = position
        self.head = max(self.head, position)

    def _unpack(self, most: int) -> None:
        """Make events of what is packed, until there are ``most`` or all."""
        while self._packed and len(self._events) < most:
            rows, self._packed = self._packed[:UNPACK_UNITS], self._packed[UNPACK_UNITS:]
            known = self._events[-1].position if self._events else self.position
            self._events += unfold(rows, known, self._upcaster)[0]
