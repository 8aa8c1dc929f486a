"""A log that gives positions late, as a remote one would: a sequencer assigns them, and reports them with the commit.

Plain Python over a list. It answers for the port's words, not for SQLite's ways: until ``then`` the records of a unit
have no position, commits come back some iterations later, and ``Plan`` (tests/log/faulty.py) says which ones fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random

import msgspec

from organism.errors import CommitUnknown, LogUnavailable, OrganismError, StalePosition
from organism.events.record import ORGANISM_STREAM, Actor, Record, Unit
from organism.events.stored import decode_unit
from organism.events.vocabulary import ContentErased, Event, ThreadForked
from organism.log.batch import conceal
from organism.log.encode import GENESIS, Salts, content_of, digest, encode, fault, link, place
from organism.log.log import EventFilter, Origins, Verification, span_of, wants
from organism.log.streams import export, forked
from organism.model.redact import Redactor
from tests.log.engines import turn
from tests.log.faulty import Plan

KEY = b"the sequencer's"
FOLLOWED_EVENTS = 100


class LateLog:
    """An ``EventLog``. What is appended while a commit is on its way waits for the next one."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.on_lost: Callable[[int], None] | None = None
        self.on_stalled: Callable[[], None] | None = None
        self.head = self.last_at = 0
        self.timeline = "late"
        self.is_lost = self.is_closing = self.is_closed = False
        self._plan = plan or Plan()
        self._chance = Random(1)
        self._salts = Salts(self._chance.randbytes)
        self._redactor: Redactor | None = None
        self._rows: list[tuple[int, bytes]] = []  # (first position, row), as the sequencer has them
        self._contents: dict[int, list[object]] = {}
        self._commits: list[tuple[list[tuple[int, bytes]], bytes]] = []  # its rows and its hash
        self._heads: dict[str, int | Unit] = {}  # a unit while its positions are not known
        self._queue: list[Unit] = []
        self._erasing: dict[Unit, str] = {}
        self._snapshots: dict[str, list[tuple[int, bytes]]] = {}
        self._sending: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    @property
    def available(self) -> bool:
        return not (self.is_lost or self.is_closing)

    def key_for(self, purpose: str) -> bytes:
        return purpose.encode()

    def conceal(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def append(self, unit: Unit) -> None:
        if not self.available:
            raise LogUnavailable("The log is closed." if self.is_closing else "The log takes no writes now.")
        for stream, seen in unit.expect.items():
            if not _is_at(self._heads.get(stream, 0), seen):
                raise StalePosition(f"The stream {stream!r} has moved on.")
        for record in unit.records:  # what could not be read again is refused at once
            msgspec.json.decode(msgspec.json.encode(record.event), type=type(record.event))
        if self._redactor is not None:
            conceal(unit, self._redactor)
        self._heads |= {record.thread or unit.thread_id or ORGANISM_STREAM: unit for record in unit.records}
        self._queue.append(unit)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def commit(self, unit: Unit) -> int:
        outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def tell(done: Unit, error: Exception | None) -> None:
            if not outcome.done():
                outcome.set_result(done.last) if error is None else outcome.set_exception(error)

        unit.then = tell
        self.append(unit)
        return await outcome

    async def erase(self, owner: str, at: int, actor: Actor | None = None) -> int:
        unit = Unit(None, [Record(ContentErased(owner))], at, {}, actor=actor)
        self._erasing[unit] = owner
        return await self.commit(unit)

    async def copy(self, source: str, until: int, target: str, at: int, actor: Actor | None = None) -> int:
        fork = await forked(self, source, until)
        return await self.commit(Unit(target, [Record(fork)], at, {target: 0}, actor=actor))

    def export(self, stream: str) -> AsyncIterator[bytes]:
        return export(self, stream)

    async def read(
        self,
        after: int = 0,
        until: int | None = None,
        wanted: EventFilter | None = None,
        limit: int = 500,
        *,
        reverse: bool = False,
    ) -> list[Record[Event]]:
        await self._delay()
        wanted = wanted or EventFilter()
        found = self._select(after, self.head if until is None else until, wanted, self._origins(wanted.threads))
        return (found[::-1] if reverse else found)[:limit]

    async def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Record[Event]]]:
        wanted = wanted or EventFilter()
        origins = self._origins(wanted.threads)
        while True:
            if after < self.head:
                until = min(self.head, after + FOLLOWED_EVENTS)
                records, after = self._select(after, until, wanted, origins), until
                yield records
            elif self.is_closed:
                return
            else:
                await self._news.wait()

    async def type_spans(self, types: Sequence[type[Event]], low: int, high: int, limit: int) -> list[int]:
        spans = {span_of(record.position) for record in self._records() if type(record.event) in types}
        return sorted(span for span in spans if low <= span <= high)[:limit]

    async def position_at(self, at_us: int) -> int:
        return max((record.position for record in self._records() if record.at <= at_us), default=0)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        digests = {record.position: record.digest for record in self._records() if record.digest}
        wanted = {position: digests[position]} if position in digests else {}
        return (await self.contents(wanted)).get(position)

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        found = {at: content_of(at, sealed, self._contents.get(at), self._at) for at, sealed in digests.items()}
        return {position: (content.json, content.xml) for position, content in found.items() if not content.erased}

    async def fold(self, after: int, apply: Callable[[Record[Event]], object]) -> None:
        for record in self._select(after, self.head, EventFilter(), {}):
            apply(record)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        self._snapshots[name] = [*self._snapshots.get(name, ()), (position, body)][-2:]

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        return max((kept for kept in self._snapshots.get(name, ()) if kept[0] <= self.head), default=None)

    async def verify(self, after: int = 0) -> Verification:
        damage, commits, chained = [], 0, GENESIS
        for rows, hashed in self._commits:
            chained = link(KEY, chained, rows[0][0], [digest(body) for _, body in rows])
            commits += decode_unit(rows[-1][1]).last > after
            damage += [f"position {rows[0][0]}: the commit was changed"] * (chained != hashed)
        for record in self._records():
            if record.digest and (
                said := fault(*(record.position, record.digest), self._contents[record.position], self._at)
            ):
                damage.append(f"position {record.position}: the content {said}")
        return Verification(self.head, self.head - after, commits, tuple(damage))

    async def close(self) -> None:
        self.is_closing = True
        if self._sending is not None:
            await self._sending
        self.is_closed = True
        self._wake()

    async def _send(self) -> None:
        """Bring what waits to the sequencer, commit by commit."""
        while self._queue:
            await self._delay()
            units, self._queue = self._queue, []
            self._plan.commits += 1
            is_failing = self._plan.commits in self._plan.fail_commits
            if not is_failing or self._plan.is_written_first:
                self._sequence(units)
            await self._delay()
            if is_failing:
                await self._lose(units)
                continue
            self._show()
            for unit in units:
                _tell(unit, None)
            self._wake()
            await turn()  # all waiting callers have their answers before the log closes

    def _sequence(self, units: list[Unit]) -> None:
        """The sequencer takes a commit: it gives positions, and erases."""
        rows: list[tuple[int, bytes]] = []
        for unit in units:
            first = decode_unit((rows or self._rows)[-1][1]).last + 1 if rows or self._rows else 1
            place(unit, first)
            body, contents = encode(unit, self._salts)
            rows.append((first, body))
            for row in self._contents.values():
                if row[0] == self._erasing.get(unit) and row[4] is None:
                    row[1:] = [b"", b"", b"", unit.last]
            self._contents |= {position: [*row, None] for position, *row in contents}
        self._rows += rows
        before = self._commits[-1][1] if self._commits else GENESIS
        self._commits.append((rows, link(KEY, before, rows[0][0], [digest(body) for _, body in rows])))

    async def _lose(self, units: list[Unit]) -> None:
        """The answer got lost: what became of the commit is asked for, and meanwhile nothing is taken."""
        self.is_lost = True
        waiting, self._queue = self._queue, []
        for unit in (*units, *waiting):
            unit.first = unit.last = -1
            _tell(unit, CommitUnknown() if unit in units else LogUnavailable("The log takes no writes now."))
        await self._delay()
        self._show()
        self.is_lost = False
        if self.on_lost is not None:
            self.on_lost(self.head)
        self._wake()

    def _show(self) -> None:
        """What the sequencer has is known now; what is appended since then has no position yet."""
        records = self._records()
        if records:
            self.head, self.last_at = records[-1].position, records[-1].at
        waiting = {stream: head for stream, head in self._heads.items() if head in self._queue}
        self._heads = {**{record.stream: record.position for record in records}, **waiting}

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _delay(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await turn()

    def _records(self) -> list[Record[Event]]:
        return [record for _, body in self._rows for record in decode_unit(body).records()]

    def _at(self, position: int) -> Record[Event] | None:
        return next((record for record in self._records() if record.position == position), None)

    def _select(self, after: int, until: int, wanted: EventFilter, origins: Origins) -> list[Record[Event]]:
        is_wanted, until = wants(wanted, origins), min(until, self.head)
        found = [each for each in self._records() if after < each.position <= until and is_wanted(each)]
        for record in found:
            if wanted.content and record.digest:
                row = self._contents.get(record.position)
                record.content = content_of(record.position, record.digest, row, self._at)
        return found

    def _origins(self, streams: Sequence[str]) -> Origins:
        found: dict[str, int] = {}
        for record in reversed(self._records()):  # a fork comes after what it shares
            event, until = record.event, found.get(record.stream, 0)
            if isinstance(event, ThreadForked) and (record.stream in streams or until):
                shared = event.until if record.stream in streams else min(event.until, until)
                found[event.source] = max(shared, found.get(event.source, 0))
        return found


def _is_at(head: int | Unit, seen: int | Unit) -> bool:
    """Whether the stream stands where it was seen."""
    if isinstance(head, Unit):
        return head is seen
    return 0 < seen.first <= head <= seen.last if isinstance(seen, Unit) else head == seen


def _tell(unit: Unit, error: OrganismError | None) -> None:
    """Tell it in an iteration of its own: one that raises keeps no other from hearing."""
    if unit.then is not None:
        asyncio.get_running_loop().call_soon(unit.then, unit, error)
