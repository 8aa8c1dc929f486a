"""How much agents and edges do: counted while a viewer asks for it, and pushed at most once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from organism.events import vocabulary as events
from organism.events.record import Record
from organism.server.push.filter import FRAME_BYTES, Filter, Frame
from organism.server.push.frames import AgentRate, RatesShown, frame_of

RATES_SECONDS: Final = 1.0
ENTRY_BYTES: Final = 60
"""About what an agent or an edge takes in a frame."""

Edge = tuple[str, str]  # from, to


class Counts(NamedTuple):
    """What moved in so many seconds."""

    seconds: float
    handled: Counter[str]
    failed: Counter[str]
    sent: Counter[Edge]
    lost: Counter[Edge]

    @property
    def size_bytes(self) -> int:
        entries = len(self.handled) + len(self.failed) + len(self.sent) + len(self.lost)
        return FRAME_BYTES + ENTRY_BYTES * entries

    def frames(self, wanted: Filter) -> Sequence[Frame]:
        """The frame with what the filter's agents did, and what was sent to them and by them."""
        agents = [name for name in dict.fromkeys((*self.handled, *self.failed)) if _is_of((name,), wanted)]
        edges = [edge for edge in dict.fromkeys((*self.sent, *self.lost)) if _is_of(edge, wanted)]
        if not agents and not edges:
            return ()
        said = RatesShown(
            seconds=self.seconds,
            agents={name: AgentRate(self.handled[name], self.failed[name]) for name in agents},
            edges=[(*edge, self.sent[edge], self.lost[edge]) for edge in edges],
        )
        return (frame_of(said, None, ()),)


def _is_of(names: Iterable[str], wanted: Filter) -> bool:
    return wanted.agents is None or not wanted.agents.isdisjoint(names)


class Rates:
    """What moved since ``offer`` was last given something. Nothing is counted while nobody asks."""

    def __init__(self, now: Callable[[], int], offer: Callable[[Counts], None]) -> None:
        self._now, self._offer = now, offer
        self._asking: WeakSet[object] = WeakSet()
        self._has_moved = asyncio.Event()
        self._begin()

    def _begin(self) -> None:
        self._has_moved.clear()
        self._begun_us = 0
        self._handled, self._failed = Counter[str](), Counter[str]()
        self._sent, self._lost = Counter[Edge](), Counter[Edge]()

    def ask(self, viewer: object, wanted: Filter) -> None:
        """Count for this viewer as long as it exists, if its filter names ``rates``, else no more."""
        if wanted.events is not None and "rates" in wanted.events:
            self._asking.add(viewer)
        else:
            self._asking.discard(viewer)

    def count(self, records: Sequence[Record[Any]]) -> None:
        """Take what moved, if anyone asks."""
        if not self._asking:
            return
        for record in records:
            match record.event:
                case events.MessageSent() as event:
                    self._sent[event.sender, event.to] += 1
                case events.MessageHandled(outcome="done") as event:
                    self._handled[event.agent] += 1
                case events.MessageDead() as event:
                    self._failed[event.agent] += 1
                    self._lost[event.sender, event.agent] += 1
                case events.MessageRefused() as event:
                    self._lost[event.sender, event.to] += 1
                case _:
                    continue
            if not self._has_moved.is_set():
                self._begun_us = self._now()
                self._has_moved.set()

    async def follow(self) -> None:
        """Offer what moves from now on, a second after it began."""
        self._begin()
        while True:
            await self._has_moved.wait()
            await asyncio.sleep(RATES_SECONDS)
            counted = self._handled, self._failed, self._sent, self._lost
            self._offer(Counts((self._now() - self._begun_us) / 1_000_000, *counted))
            self._begin()
