"""Logs of many threads, told by chance: what the past is read from, in tests of viewers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from organism.log.log import EventFilter, Log
from organism.log.sqlite import SqliteLog
from organism.model.events import Content, Event, Unit
from organism.projections.threads import MARKED, MESSAGES, THREADS
from organism.server.frames import Filter, Folded, Frame
from tests.log.engines import START_US, FixedClock

MODELS = (MESSAGES, THREADS, MARKED)
NAMES = ("ann", "bob", "cid", "dan")
ALL_OF_IT = 1 << 20


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
        self._born = 0

    async def tell(self, units: int) -> int:
        """So many units; gives the head."""
        made = [self._unit() for _ in range(units)]
        for unit in made[:-1]:
            self.log.append(unit)
        return await self.log.commit(made[-1])

    def _unit(self) -> Unit:
        self._count += 1
        move = self._chance.choice(["begin", "talk", "talk", "trouble", "end", "end", "reopen", "pause", "organism"])
        if move == "organism":
            kind = self._chance.choice(["organism_paused", "organism_resumed", "organism_started", "agent_paused"])
            return Unit(None, [Event(kind, {"agent": "ann", "by": "operator"})], START_US + self._count, {})
        threads = sorted({"reopen": self._ended, "pause": self._active | self._ended}.get(move, self._active))
        if move == "begin" or not threads:
            thread = f"t{self._born}"
            self._born += 1
            self._active.add(thread)
            events = [Event("thread_created", {}), self._sent(thread)]
        else:
            thread = self._chance.choice(threads)
            events = self._moved(move, thread)
        return Unit(thread, events, START_US + self._count, {})

    def _moved(self, move: str, thread: str) -> list[Event]:
        """What a thread does that was begun before."""
        if move == "talk":
            return [self._sent(thread) for _ in range(self._chance.randint(1, 3))]
        if move == "trouble":
            return [self._trouble()]
        if move == "pause":
            kind = "thread_resumed" if thread in self._paused else "thread_paused"
            self._paused ^= {thread}
            return [Event(kind, {})]
        self._active ^= {thread}
        if move == "end" and self._chance.random() < 1 / 3:
            return [Event("thread_killed", {})]  # it never goes on
        self._ended ^= {thread}
        if move == "reopen":
            return [Event("thread_reopened", {}), self._sent(thread)]
        fails = self._chance.random() < 1 / 2
        return [Event("thread_failed", {"reason": f"r{self._count}"}) if fails else Event("thread_completed", {})]

    def _trouble(self) -> Event:
        kinds: dict[str, dict[str, Any]] = {
            "message_retried": {"attempt": 1, "error": "no", "next_at": START_US},
            "message_failed": {"attempt": 3, "error": "no"},
            "message_discarded": {"failed": True},
            "approval_expired": {"approval": f"a{self._count}"},
            "step_started": {"step": 1, "unknown": True},
        }
        kind, data = self._chance.choice(list(kinds.items()))
        return Event(kind, {"message": f"m{self._count}", "agent": self._chance.choice(NAMES), **data})

    def _sent(self, thread: str) -> Event:
        self._count += 1
        sender, to = self._chance.sample(NAMES, 2)
        data = {"message": f"m{self._count}", "from": sender, "to": to, "type": "T", "depth": 1, "token": "c"}
        return Event("message_sent", data, Content(thread, b'{"n":%d}' % self._count, b""))


async def by_the_naive_way(log: Log, wanted: Filter, after: int) -> Sequence[Frame]:
    """The frames after a position that pass: all events are folded, all frames are looked at."""
    events = await log.read(wanted=EventFilter(content=True), limit=ALL_OF_IT)
    return [frame for frame in Folded(0).frames(events) if frame.position > after and wanted.passes(frame)]
