"""Logs of many threads, told by chance: what the past is read from, in tests of viewers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from organism.log.log import EventFilter, Log
from organism.log.memory import MemoryLog
from organism.log.sqlite import SqliteLog
from organism.model.events import Content, Event, Unit
from organism.projections import marks, messages, threads
from organism.server.frames import Folded, Frame
from organism.server.push import Filter
from tests.log.engines import START_US, FixedClock

MODELS = (messages.MODEL, threads.MODEL, marks.MODEL)
NAMES = ("ann", "bob", "cid", "dan")
ALL_OF_IT = 1 << 20


async def in_memory(_: Path) -> Log:
    """A log in memory."""
    return await MemoryLog.open(MODELS)


async def on_disk(place: Path) -> Log:
    """A log on a disk."""
    return await SqliteLog.open(place, MODELS, FixedClock())


class Teller:
    """Tells a log unit by unit. Threads ``t0`` … are begun, talk, fail, end, go on, pause and are killed."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log = log
        self._chance = random.Random(seed)
        self._active: set[str] = set()
        self._ended: set[str] = set()
        self._paused: set[str] = set()
        self._count = 0

    async def tell(self, units: int) -> int:
        """So many units; gives the head."""
        made = [self._unit() for _ in range(units)]
        for unit in made[:-1]:
            self.log.append(unit)
        return await self.log.commit(made[-1])

    def _unit(self) -> Unit:
        self._count += 1
        moves = [self._begin, self._talk, self._talk, self._trouble, self._end, self._pause, self._organism]
        thread, events = self._chance.choice(moves)()
        return Unit(thread, events, START_US + self._count, {})

    def _begin(self) -> tuple[str | None, list[Event]]:
        thread = f"t{len(self._active) + len(self._ended)}"
        self._active.add(thread)
        return thread, [Event("thread_created", {}), self._sent(thread)]

    def _talk(self) -> tuple[str | None, list[Event]]:
        thread = self._one(self._active)
        if thread is None:
            return self._begin()
        return thread, [self._sent(thread) for _ in range(self._chance.randint(1, 3))]

    def _trouble(self) -> tuple[str | None, list[Event]]:
        thread = self._one(self._active)
        if thread is None:
            return self._begin()
        agent, message = self._chance.choice(NAMES), f"m{self._count}"
        kinds: dict[str, dict[str, Any]] = {
            "message_retried": {"attempt": 1, "error": "no", "next_at": START_US},
            "message_failed": {"attempt": 3, "error": "no"},
            "message_discarded": {"failed": True},
            "approval_expired": {"approval": f"a{self._count}"},
            "step_started": {"step": 1, "unknown": True},
        }
        kind, data = self._chance.choice(list(kinds.items()))
        return thread, [Event(kind, {"message": message, "agent": agent, **data})]

    def _end(self) -> tuple[str | None, list[Event]]:
        """An active thread ends, or an ended one goes on."""
        if (thread := self._one(self._active)) is not None and self._chance.random() < 2 / 3:
            self._active.discard(thread)
            self._ended.add(thread)
            data: dict[str, dict[str, Any]] = {"thread_completed": {}, "thread_failed": {"reason": f"r{self._count}"}}
            kind = self._chance.choice([*data, *data, "thread_killed"])
            return thread, [Event(kind, data.get(kind, {}))]
        if (thread := self._one(self._ended)) is not None:
            self._ended.discard(thread)
            self._active.add(thread)
            return thread, [Event("thread_reopened", {}), self._sent(thread)]
        return self._begin()

    def _pause(self) -> tuple[str | None, list[Event]]:
        thread = self._one(self._active | self._ended)
        if thread is None:
            return self._begin()
        kind = "thread_resumed" if thread in self._paused else "thread_paused"
        self._paused ^= {thread}
        return thread, [Event(kind, {})]

    def _organism(self) -> tuple[str | None, list[Event]]:
        kind = self._chance.choice(["organism_paused", "organism_resumed", "organism_started", "agent_paused"])
        return None, [Event(kind, {"agent": "ann", "by": "operator"})]

    def _sent(self, thread: str) -> Event:
        self._count += 1
        sender, to = self._chance.sample(NAMES, 2)
        data = {"message": f"m{self._count}", "from": sender, "to": to, "type": "T", "depth": 1, "token": "c"}
        return Event("message_sent", data, Content(thread, b'{"n":%d}' % self._count, b""))

    def _one(self, threads: set[str]) -> str | None:
        return self._chance.choice(sorted(threads)) if threads else None


async def by_the_naive_way(log: Log, wanted: Filter, after: int) -> Sequence[Frame]:
    """The frames after a position that pass: all events are folded, all frames are looked at."""
    events = await log.read(wanted=EventFilter(content=True), limit=ALL_OF_IT)
    return [frame for frame in Folded(0).frames(events) if frame.position > after and wanted.passes(frame)]
