"""The newest commits in memory, and who follows them: past and present without a gap (L5)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from organism.events import vocabulary as events
from organism.events.record import Content, Record
from organism.log.log import EventFilter, Origins, wants

TAIL_BYTES: Final = 1 << 16
"""Followers read a commit at once; a larger tail would push hot data out of the processor's cache."""
CATCH_UP_EVENTS: Final = 1000

Records = list[Record[events.Event]]
ReadPast = Callable[[int, int, EventFilter, Origins, int], Awaitable[Records]]
"""(after, until, wanted, origins, limit) → records, from the disk."""


class Waiter(NamedTuple):
    """A follower of named streams that has read to the head; it is woken by what it wants of the next commits."""

    is_wanted: Callable[[Record[events.Event]], bool]
    woken: asyncio.Future[tuple[Records, int]]
    """What came for it, and the position up to which that is all."""


class Tail:
    """The newest commits, up to ``TAIL_BYTES``; followers of older ones read the disk."""

    __slots__ = ("_bytes", "_commits", "_erasures", "_news", "_waiting", "head", "is_closed")

    def __init__(self, head: int) -> None:
        self.head = head
        self._commits: deque[tuple[Records, int]] = deque()
        self._bytes = 0
        self._erasures = 0
        self._news = asyncio.Event()
        self._waiting: dict[str, list[Waiter]] = {}  # by each of their streams
        self.is_closed = False

    def add(self, records: Records, size: int) -> None:
        """Add a commit that is on disk; ``wake`` notifies the followers, but those of named streams are at once."""
        if self._waiting:
            self._give(records)
        self._commits.append((records, size))
        self._bytes += size
        while self._bytes > TAIL_BYTES and len(self._commits) > 1:
            self._bytes -= self._commits.popleft()[1]
        self.head = records[-1].position

    def erase(self, owner: str, before: int) -> None:
        """Empty the owner's contents before a position, also in records that followers hold."""
        self._erasures += 1
        for records, _ in self._commits:
            for record in records:
                if record.content is not None and record.content.owner == owner and record.position < before:
                    record.content = Content(owner, b"", erased=True)

    def skip_to(self, head: int) -> None:
        """Go on from ``head``; followers read what is before it from the disk."""
        self._wake_waiters()
        self._commits.clear()
        self._bytes = 0
        self.head = head
        self.wake()

    def wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """Let every follower end once it has given the commits that are here."""
        self.is_closed = True
        self._wake_waiters()
        self.wake()

    def _give(self, records: Records) -> None:
        """Give a commit's records to those who wait for them, without a turn of the loop for others."""
        found: dict[asyncio.Future[tuple[Records, int]], Records] = {}
        for record in records:
            for waiter in self._waiting.get(record.stream, ()):
                if waiter.is_wanted(record):
                    found.setdefault(waiter.woken, []).append(record)
        for woken, wanted in found.items():
            if not woken.done():
                woken.set_result((wanted, records[-1].position))

    def _wake_waiters(self) -> None:
        """Nothing came for them up to the head; what follows they read themselves."""
        for waiter in {id(waiter): waiter for waiters in self._waiting.values() for waiter in waiters}.values():
            if not waiter.woken.done():
                waiter.woken.set_result(([], self.head))

    async def _next_of(self, waiter: Waiter, streams: Sequence[str]) -> tuple[Records, int]:
        """Wait for what the waiter wants of these streams."""
        for stream in streams:
            self._waiting.setdefault(stream, []).append(waiter)
        try:
            return await waiter.woken
        finally:
            for stream in streams:
                others = [other for other in self._waiting.pop(stream) if other is not waiter]
                if others:
                    self._waiting[stream] = others

    async def follow(
        self, after: int, wanted: EventFilter, find_origins: Callable[[EventFilter], Awaitable[Origins]], read: ReadPast
    ) -> AsyncIterator[Records]:
        """Every event after ``after``, once and in order; lists are shared by all followers and must not be changed."""
        origins = await find_origins(wanted)
        is_wanted = wants(wanted, origins) if wanted.threads or wanted.types else None
        position = after
        while True:
            if position >= self.head:
                if self.is_closed:
                    return
                if not wanted.threads or is_wanted is None:
                    await self._news.wait()
                    continue
                erasures = self._erasures
                waiter = Waiter(is_wanted, asyncio.get_running_loop().create_future())
                records, upto = await self._next_of(waiter, wanted.threads)
                if self._erasures == erasures:  # else their contents may have been erased since: they are read again
                    position = max(position, upto)
                    yield records
                continue
            commits = self._after(position)
            if commits is None:
                head, erasures = self.head, self._erasures
                records = await read(position, head, wanted, origins, CATCH_UP_EVENTS)
                if self._erasures != erasures:  # their contents may have been erased during the read
                    continue
                position = records[-1].position if len(records) == CATCH_UP_EVENTS else head
                yield records
                continue
            erasures = self._erasures
            for records in commits:
                if (
                    self._erasures != erasures
                ):  # these may have left the tail before an erasure, which did not empty them
                    break
                position = records[-1].position
                yield records if is_wanted is None else [record for record in records if is_wanted(record)]

    def _after(self, position: int) -> list[Records] | None:
        """The commits after ``position``, oldest first; None if some of them are no longer here."""
        newest_first = takewhile(
            lambda records: records[-1].position > position, (c[0] for c in reversed(self._commits))
        )
        commits = list(newest_first)[::-1]
        if not commits or commits[0][0].position > position + 1:
            return None
        if commits[0][0].position <= position:
            commits[0] = [record for record in commits[0] if record.position > position]
        return commits
