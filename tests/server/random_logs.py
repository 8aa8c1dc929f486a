"""Random logs of many threads, for tests of viewers that read the past."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import (
    AgentPaused,
    ApprovalExpired,
    Event,
    MessageDiscarded,
    MessageFailed,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    OrganismResumed,
    OrganismStarted,
    StepRecorded,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadKilled,
    ThreadPaused,
    ThreadReopened,
    ThreadResumed,
)
from organism.log.log import EventFilter, EventLog
from organism.log.sqlite import SqliteLog
from organism.server.push.filter import Chunk, Filter, Frame
from organism.server.push.frames import Details, Folded
from organism.views.approvals import APPROVALS
from organism.views.dead_letters import DEAD_LETTERS, INDETERMINATE
from organism.views.threads import MESSAGES, THREADS
from tests.log.engines import START_US, FixedClock

MODELS = (MESSAGES, THREADS, APPROVALS, DEAD_LETTERS, INDETERMINATE)
NAMES = ("ann", "bob", "cid", "dan")
ALL_OF_IT = 1 << 20
OF_ORGANISM: Sequence[Event] = (
    OrganismPaused("operator"),
    OrganismResumed("operator"),
    OrganismStarted("o", "1", "", (), removed=(), life=1, clean=True),
    AgentPaused("ann", "operator"),
)


async def on_disk(place: Path) -> EventLog:
    """A log on a disk."""
    return await SqliteLog.open(place, FixedClock(), MODELS)


class Teller:
    """Tells a log unit by unit. Threads ``t0`` … are begun, talk, fail, end, go on, pause and are killed."""

    def __init__(self, log: EventLog, seed: int) -> None:
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
            return Unit(None, [Record(self._chance.choice(OF_ORGANISM))], START_US + self._count, {})
        threads = sorted({"reopen": self._ended, "pause": self._active | self._ended}.get(move, self._active))
        if move == "begin" or not threads:
            thread = f"t{self._born}"
            self._born += 1
            self._active.add(thread)
            records: list[Record[Any]] = [Record(ThreadCreated()), self._sent(thread)]
        else:
            thread = self._chance.choice(threads)
            records = self._moved(move, thread)
        return Unit(thread, records, START_US + self._count, {})

    def _moved(self, move: str, thread: str) -> list[Record[Any]]:
        """What a thread does that was begun before."""
        if move == "talk":
            return [self._sent(thread) for _ in range(self._chance.randint(1, 3))]
        if move == "trouble":
            return [Record(self._trouble())]
        if move == "pause":
            paused = ThreadResumed() if thread in self._paused else ThreadPaused()
            self._paused ^= {thread}
            return [Record(paused)]
        self._active ^= {thread}
        if move == "end" and self._chance.random() < 1 / 3:
            return [Record(ThreadKilled())]  # it never goes on
        self._ended ^= {thread}
        if move == "reopen":
            return [Record(ThreadReopened()), self._sent(thread)]
        fails = self._chance.random() < 1 / 2
        return [Record(ThreadFailed(f"r{self._count}") if fails else ThreadCompleted())]

    def _trouble(self) -> Event:
        message, agent = f"m{self._count}", self._chance.choice(NAMES)
        troubles: list[Event] = [
            MessageRetried(message, agent, attempt=1, error="no", next_at=START_US),
            MessageFailed(message, agent, attempt=3, error="no"),
            MessageDiscarded(message, failed=True),
            ApprovalExpired(f"a{self._count}"),
            StepStarted(message, agent, step=1, kind="effect", input="", unknown=True),
            StepStarted(message, agent, step=2, kind="ask", input="", to="bob"),
            StepRecorded(message, agent, step=2, kind="ask", input="", to="bob"),
            MessageStarted(message, agent, attempt=1, deadline=0, version=""),
            MessageHandled(message, agent, "done", duration=7, attempt=1),
            MessageHandled(message, agent, "answered", duration=0),
        ]
        return self._chance.choice(troubles)

    def _sent(self, thread: str) -> Record[MessageSent]:
        self._count += 1
        sender, to = self._chance.sample(NAMES, 2)
        sent = MessageSent(f"m{self._count}", sender, to, "T", depth=1, token="c")
        return Record(sent, Content(thread, b'{"n":%d}' % self._count, b""))


async def by_the_naive_way(log: EventLog, wanted: Filter, after: int) -> Sequence[Frame]:
    """The frames after a position that pass: all events are folded, all frames are looked at."""
    records = await log.read(wanted=EventFilter(content=True), limit=ALL_OF_IT)
    everything = Chunk(0, log.head, Folded(0).frames(records), Details.of(records))
    return [frame for frame in everything.passing(wanted) if frame.position > after]
