"""The threads of a durable log and the connections that they own: opened, renewed after a failure, closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Final, TypeVar

from organism.errors import LogUnavailable
from organism.log.beside import Beside, TakesTime
from organism.log.commits import Commits
from organism.log.connect import Connector
from organism.log.driver import Connection
from organism.log.log import ReadModel
from organism.log.opening import Options, Truth
from organism.log.units import Units
from organism.log.worker import Worker

T = TypeVar("T")
Claim = Callable[[Connection], Truth]
Arguments = tuple[Any, ...]
RENEWAL_SECONDS: Final = 60.0
"""So long at most the reading thread stands still while the writing one looks for the truth."""
MOST_APART: Final = 4
"""So many reads may have a thread of their own at once; further ones wait."""


class Crew:
    """``writer`` commits, ``reader`` reads; what is read quickly needs no thread (``look``).

    An exclusive driver has one thread and one connection for all of it.
    """

    def __init__(self, connector: Connector, options: Options, models: Sequence[ReadModel]) -> None:
        self._connector = connector
        self._is_alone = options.driver.exclusive
        self.upcaster = options.upcaster
        self._stack = AsyncExitStack()
        self.commits = Commits(models)
        self.units = Units(options.upcaster)
        self.beside = Beside(connector)
        self._apart = asyncio.Semaphore(MOST_APART)
        self._is_renewing = False
        self.writer = self._start("log-writer")
        self.reader = self.writer if self._is_alone else self._start("log-reader")

    async def begin(self, claim: Claim) -> Truth:
        """Open the connections. Gives what ``claim`` found to be true over the first."""
        truth = await self.writer.run(self._open_log, claim)
        self._stack.push_async_callback(self.writer.run, self.commits.close)
        if self._is_alone:
            await self.writer.run(self._share)
            return truth
        await self.reader.run(_open, self.units, self._connector.to_read)
        self._stack.push_async_callback(self.reader.run, self.units.close)
        self._stack.callback(self.beside.close)
        return truth

    async def renew(self, claim: Claim, *, entirely: bool) -> Truth:
        """Close the writing connection, open it anew, move the WAL into the database, ask ``claim`` what is true.

        ``entirely`` closes all others too, for as long as it takes: only then SQLite reads the WAL from the disk and
        believes nothing that it has in memory. Raises what hinders it; the others are open again then.
        """
        if self._is_alone:
            return await self.writer.run(self._renew_alone, claim)
        if not entirely:
            return await self.writer.run(self._renew_log, claim)
        closed, gate = threading.Barrier(2), threading.Event()
        self._is_renewing = True
        self.beside.close()
        reading = self.reader.begin(_stand_aside, self.units, self._connector.to_read, closed, gate)
        try:
            return await self.writer.run(self._renew_log, claim, closed)
        finally:
            self._is_renewing = False
            gate.set()
            await reading

    def near(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` at once in the loop's thread: for the few rows that a decision needs.

        Raises ``LogUnavailable`` while everything is closed.
        """
        if self._is_renewing:
            raise LogUnavailable("The log looks at its disk anew.")
        if self._is_alone:
            return self.writer.wait_for(lambda: work(self.commits.connection, *arguments))
        return self.beside.near(work, *arguments)

    async def look(self, work: Callable[..., T], *arguments: Any, is_long: bool = False) -> T:
        """Run ``work(connection, *arguments)``: at once if it is over at once, else in the reading thread.

        ``is_long`` says that it will not be.
        """
        if not (is_long or self._is_alone or self._is_renewing):
            try:
                return self.beside.quick(work, *arguments)
            except TakesTime:
                pass
        return await self.reader.run(lambda: work(self.units.connection, *arguments))

    async def write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` over the writing connection, between two commits."""
        return await self.writer.run(lambda: work(self.commits.connection, *arguments))

    def post(self, work: Callable[..., object], *arguments: Any) -> None:
        """``write`` as soon as the writing thread has time; nobody is told how it went."""
        self.writer.post(lambda _, __: None, lambda: work(self.commits.connection, *arguments))

    async def apart(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` over a connection and in a thread of its own: nobody waits for it."""
        if self._is_alone:
            return await self.writer.run(lambda: work(self.commits.connection, *arguments))
        async with self._apart:
            worker = Worker("log-apart", self._connector.driver.errors, self._connector.explain)
            try:
                return await worker.run(self._over_another, work, arguments)
            finally:
                await worker.stop()

    async def close(self) -> None:
        """Close the connections, end the threads."""
        await self._stack.aclose()

    def _start(self, name: str) -> Worker:
        worker = Worker(name, self._connector.driver.errors, self._connector.explain)
        self._stack.push_async_callback(worker.stop)
        return worker

    def _open_log(self, claim: Claim) -> Truth:
        with ExitStack() as stack:
            connection = self._connector.to_log()
            stack.callback(connection.close)
            truth = claim(connection)
            self.commits.use(connection)
            stack.pop_all()
        return truth

    def _renew_log(self, claim: Claim, closed: threading.Barrier | None = None) -> Truth:
        if closed is not None:
            _meet(closed)
        self.commits.close()
        return self._open_log(lambda connection: _after_checkpoint(connection, claim))

    def _renew_alone(self, claim: Claim) -> Truth:
        """The only connection is there for readers again before it is known whether it can write."""
        self.commits.close()
        self.commits.use(self._connector.to_log())
        self._share()
        return _after_checkpoint(self.commits.connection, claim)

    def _share(self) -> None:
        """One connection for everything."""
        self.units.use(self.commits.connection)

    def _over_another(self, work: Callable[..., T], arguments: Arguments) -> T:
        return _over(self._connector.to_read(), work, arguments)


def _over(connection: Connection, work: Callable[..., T], arguments: Arguments) -> T:
    try:
        return work(connection, *arguments)
    finally:
        connection.close()


def _open(owner: Units, connect: Callable[[], Connection]) -> None:
    owner.use(connect())


def _stand_aside(
    owner: Units, connect: Callable[[], Connection], closed: threading.Barrier, gate: threading.Event
) -> None:
    """Between its two halves this thread has no connection."""
    owner.close()
    _meet(closed)
    gate.wait(RENEWAL_SECONDS)
    _open(owner, connect)


def _meet(closed: threading.Barrier) -> None:
    """Wait for the other threads, but not for ever: one that is held up has its connection longer, that is all."""
    try:
        closed.wait(RENEWAL_SECONDS)
    except threading.BrokenBarrierError:
        return


def _after_checkpoint(connection: Connection, claim: Claim) -> Truth:
    """What the page cache shows after a failed fsync proves nothing; what a checkpoint could write and sync is true."""
    is_busy = (connection.execute("PRAGMA main.wal_checkpoint(RESTART)").fetchone() or (1,))[0]
    if is_busy:
        raise LogUnavailable("The log cannot be moved into its file, since another process reads it.")
    return claim(connection)
