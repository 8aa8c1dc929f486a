"""Share: the slots of the process, divided fairly among the tenants that have work (S4).

A free slot goes to the tenant that has work waiting and holds the fewest; among equals to the one whose turn is longest
ago. So no tenant starves, each of them gets to an equal share as soon as others' handlings end, and no slot is idle
while anybody could use it. A tenant alone has all slots and is never measured.
"""

from __future__ import annotations

import asyncio
from itertools import count

from organism.pump.mailboxes import Mailboxes
from organism.pump.pump import Pump


class Share:
    """Divides ``limit`` slots among the pumps that joined.

    A tenant takes slots in its own decisions, each of which is measured first. If others wait meanwhile, the share
    looks at the end of the loop's turn what is free by then, and makes an empty decision in the name of who is next.
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._pumps: list[Pump] = []
        self._turns = count(1)
        self._will_look = False

    def join(self, pump: Pump) -> None:
        """The pump takes its slots from here, from its next decision on."""
        self._pumps.append(pump)
        self._divide()

    def leave(self, pump: Pump) -> None:
        """The pump starts nothing more, and what it holds is free for others; whose model has spoken goes on."""
        boxes = pump.state.boxes
        boxes.share, boxes.limit, boxes.is_leaving = None, 0, True
        if pump in self._pumps:
            self._pumps.remove(pump)
            self._divide()

    def resize(self, limit: int) -> None:
        """So many slots from now on; what runs beyond that runs to its end."""
        self._limit = limit
        self._divide()

    def measure(self, boxes: Mailboxes) -> None:
        """See ``Divider``."""
        others = [pump.state.boxes for pump in self._pumps if pump.state.boxes is not boxes]
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
        is_shared = len(self._pumps) > 1
        for pump in self._pumps:
            boxes = pump.state.boxes
            boxes.share, boxes.limit = self if is_shared else None, self._limit
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._will_look:
            self._will_look = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Give away what is free. Whoever is next takes a slot, or finds that it had no use for one."""
        self._will_look = False
        while self._free() > 0:
            waiting = [pump for pump in self._pumps if wants_slots(pump.state.boxes)]
            if not waiting:
                return
            pump = min(waiting, key=lambda each: _turn(each.state.boxes))
            pump.write(pump.state.decide(None))

    def _free(self) -> int:
        return self._limit - sum(pump.state.boxes.running for pump in self._pumps)


def wants_slots(boxes: Mailboxes) -> bool:
    """Between decisions: whether something could start, or go on, if it had a slot."""
    return bool(boxes.ready) and not boxes.paused


def _turn(boxes: Mailboxes) -> tuple[int, int]:
    """Who is next: the lowest."""
    return boxes.running, boxes.served
