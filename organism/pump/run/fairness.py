"""Fairness: tenants share the process's slots. The next goes to who holds the fewest, then waits longest (S4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count

from msgspec import field

from organism.events.entity import Entity
from organism.pump.run.mailboxes import Mailboxes


class FairShare(Entity):
    """Divides ``limit`` slots among the tenants that joined: each takes its slots in its own decisions."""

    _limit: int = 0
    _tenants: dict[Mailboxes, Callable[[], None]] = field(default_factory=dict)
    _turns: count[int] = field(default_factory=partial(count, 1))
    _will_look: bool = False

    def join(self, boxes: Mailboxes, start: Callable[[], None]) -> None:
        """The tenant takes its slots from here. ``start`` makes a decision that starts what has room."""
        self._tenants[boxes] = start
        self._divide()

    def leave(self, boxes: Mailboxes) -> None:
        """The tenant starts nothing more, and what it holds is free for others; whose model has spoken goes on."""
        boxes.fair_share, boxes.limit, boxes.is_leaving = None, 0, True
        if self._tenants.pop(boxes, None) is not None:
            self._divide()

    def resize(self, limit: int) -> None:
        """So many slots from now on; what runs beyond that runs to its end."""
        self._limit = limit
        self._divide()

    def measure(self, boxes: Mailboxes) -> None:
        """Set ``limit``: how many slots the tenant may hold when the decision at hand is made."""
        others = [each for each in self._tenants if each is not boxes]
        free = self._limit - boxes.running - sum(each.running for each in others)
        waiting = [each for each in others if wants_slots(each)]
        if waiting:
            free = self._part(boxes, min(waiting, key=_turn), free)
            self._look_soon()
        boxes.limit = boxes.running + free

    def _part(self, boxes: Mailboxes, rival: Mailboxes, free: int) -> int:
        """How many of the free slots are for this tenant, if that rival is the next of the others."""
        if free <= 0 or not wants_slots(boxes) or _turn(rival) < _turn(boxes):
            return 0
        boxes.served = next(self._turns)
        return min(free, max(1, rival.running - boxes.running))

    def _divide(self) -> None:
        """Measure each from now on, unless there is only one, who has all."""
        is_shared = len(self._tenants) > 1
        for boxes in self._tenants:
            boxes.fair_share, boxes.limit = self.measure if is_shared else None, self._limit
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._will_look:
            self._will_look = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Give away what is free. The next tenant takes a slot, or finds that it had no use for one."""
        self._will_look = False
        while self._limit > sum(each.running for each in self._tenants):
            waiting = [each for each in self._tenants if wants_slots(each)]
            if not waiting:
                return
            self._tenants[min(waiting, key=_turn)]()


def wants_slots(boxes: Mailboxes) -> bool:
    """Between decisions: whether something could start, or go on, if it had a slot."""
    return bool(boxes.ready) and not boxes.routing.paused


def _turn(boxes: Mailboxes) -> tuple[int, int]:
    """Who is next: the lowest."""
    return boxes.running, boxes.served
