"""The durable engine: SQLite in WAL mode with ``synchronous=FULL``, one writing thread, group commit.

Why it is so stands in docs/topics/commit.md.
Three threads share nothing but queues. The loop's prepares: it encodes, chains and folds, and it reads what is read
quickly. The writing thread executes one statement a commit, the reading one does all reads that take time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable
from organism.log.batch import Batch, Intake
from organism.log.chain import Salts
from organism.log.driver import Failure
from organism.log.journal import Journal
from organism.log.live import CHECKPOINT_EVENTS, look_back
from organism.log.log import ReadModel
from organism.log.opening import Clock, Options, doubt_rows
from organism.log.parts import Parts, open_parts
from organism.log.reads import Reads

LOOK_AGAIN_SECONDS: Final = 0.1


class SqliteLog(Journal, Reads):
    """One tenant's log on one machine's disk. Made by ``open``."""

    def __init__(self, parts: Parts) -> None:
        truth = parts.truth
        intake = Intake(parts.heads, parts.versions, Salts(parts.options.random_bytes), truth.position)
        super().__init__(intake, parts.live, truth.timeline, truth.at)
        self._parts = parts
        self._disk = parts.disk
        self._disk.done = self._wrote
        self._recovering: asyncio.Task[None] | None = None
        self._stalled_after_s = parts.options.stalled_after_s
        self._alarm: asyncio.TimerHandle | None = None
        self._checkpoint = truth.position
        self._is_whole = True

    @classmethod
    async def open(
        cls, directory: Path, models: Sequence[ReadModel], clock: Clock, options: Options | None = None
    ) -> SqliteLog:
        """Open or make the log in ``directory``.

        Raises ``LogHeld`` within a second if another process has it, ``LogDamaged`` naming the position if what was
        acknowledged is not there as it was written.
        """
        return cls(await open_parts(directory, models, clock, options or Options()))

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position``, without secrets (the last two are kept)."""
        redactor = self._intake.redactor
        await super().save_snapshot(name, position, redactor.kept(body) if redactor is not None else body)

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place, which is done whatever fails before it."""
        if self._tail.is_closed:
            return
        async with self._parts.stack:
            await self._drain()
            if self._recovering is not None:
                self._recovering.cancel()
                await asyncio.wait([self._recovering])
            self._keep_checkpoint(least_events=1)
            self._tail.close()
            self._disk.close()

    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_wrote`` is called in the loop's thread once it is known how it went."""
        if self._is_whole and not self._parts.versions.is_whole:
            self._is_whole = False
            self._parts.crew.post(doubt_rows)
        self._alarm = self._loop.call_later(self._stalled_after_s, self._suspect)
        self._disk.write(batch)

    def _suspect(self) -> None:
        """The commit seems to have stalled. It may be the loop that stood still: then the end of it is told first."""
        self._alarm = self._loop.call_later(LOOK_AGAIN_SECONDS, self._stall)

    def _wrote(self, batch: Batch, error: Exception | None) -> None:
        """The batch is on the disk, or nobody knows: then a fresh look at the disk has to tell."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._is_stalled = False
        if error is None:
            self._committed(batch)
            self._keep_checkpoint()
        elif self._disk.failure(error) is Failure.FENCED:
            self._refuse(Fenced, batch, Fenced())
        else:
            said = self._disk.told(error)
            unknown = CommitUnknown(f"{CommitUnknown()} The disk said: {said}.")
            unknown.__cause__ = error
            self._refuse(partial(LogUnavailable, f"The log takes no writes now: {said}."), batch, unknown)
            if self._recovering is None or self._recovering.done():  # a checkpoint may fail with the commit beside it
                self._recovering = self._loop.create_task(self._recover(error))

    def _keep_checkpoint(self, least_events: int = CHECKPOINT_EVENTS) -> None:
        """Keep the live rows now and then. One that cannot be written only makes a look into the past longer."""
        live = self._live
        if live.is_whole and live.position >= self._checkpoint + least_events:
            self._checkpoint = live.position
            self._parts.crew.post(partial(self._parts.snapshots.save, keeps_all=True), live.checkpoint())

    async def _recover(self, error: Exception) -> None:
        """Wait until the disk can be written again, take in what turned out to be written, go on."""
        crew, models = self._parts.crew, list(self._parts.models.values())
        while True:
            try:
                truth = await self._disk.regain(error)
                self._live = await crew.reader.run(look_back, crew.units, self._parts.snapshots, models, truth.position)
            except LogUnavailable as again:
                error = again
                continue
            except (Fenced, LogDamaged) as final:
                self._refusal = partial(type(final), self._disk.told(final))
                return
            self._admit(truth.position, truth.at)
            return
