"""The threads of a durable log and the connections that they own: opened, renewed after a failure, closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Final, TypeVar

from organism.errors import LogUnavailable
from organism.log.commits import Commits
from organism.log.connect import Connector
from organism.log.driver import Connection
from organism.log.log import ReadModel
from organism.log.opening import Options, Truth
from organism.log.units import Units
from organism.log.views import Views, prepare
from organism.log.worker import Worker

T = TypeVar("T")
Claim = Callable[[Connection], Truth]
RENEWAL_SECONDS: Final = 60.0
"""So long at most the reading thread stands still while the writing one looks for the truth."""


class Crew:
    """``writer`` commits, ``reader`` does everything else.

    An exclusive driver has one thread and one connection for both.

    ``near(work, *arguments)`` runs ``work(connection, *arguments)`` at once in the loop's thread: for the few rows
    that a fold needs and that are no longer in memory.
    """

    def __init__(self, connector: Connector, options: Options, models: Sequence[ReadModel]) -> None:
        self._connector = connector
        self._models = models
        self._is_alone = options.driver.exclusive
        self.upcaster = options.upcaster
        self._stack = AsyncExitStack()
        self.commits = Commits()
        self.views = Views(models, "views" if self._is_alone else "main")
        self.units = Units(options.upcaster)
        self._beside: Connection | None = None
        self._is_renewing = False
        self.writer = self._hire("log-writer")
        self.reader = self.writer if self._is_alone else self._hire("log-reader")

    async def begin(self, claim: Claim) -> tuple[Truth, int]:
        """Open the connections. Gives what ``claim`` found to be true over the first, and how far the rows are."""
        truth = await self.writer.run(self._open_log, claim)
        self._stack.push_async_callback(self.writer.run, self.commits.close)
        position = await self.reader.run(prepare, self._connector, self._models, truth)
        await self.reader.run(self._open_shared)
        self._stack.push_async_callback(self.reader.run, self._close_shared)
        self._stack.callback(self._close_beside)
        return truth, position

    async def renew(self, claim: Claim, *, entirely: bool) -> Truth:
        """Close the writing connection, open it anew, move the WAL into the database, ask ``claim`` what is true.

        ``entirely`` closes the reading connections too, for as long as it takes: only then SQLite reads the WAL from
        the disk and believes nothing that it has in memory. Raises what hinders it; the reading ones are open again
        then.
        """
        if self._is_alone:
            return await self.writer.run(self._renew_alone, claim)
        if not entirely:
            return await self.writer.run(self._renew_log, claim)
        closed, gate = threading.Event(), threading.Event()
        self._is_renewing = True
        self._close_beside()
        reading = self.reader.begin(self._stand_aside, closed, gate)
        try:
            return await self.writer.run(self._renew_log, claim, closed)
        finally:
            self._is_renewing = False
            gate.set()
            await reading

    def near(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` at once; raises ``LogUnavailable`` while everything is closed."""
        if self._is_renewing:
            raise LogUnavailable("The log looks at its disk anew.")
        if self._is_alone:
            return self.writer.wait_for(lambda: work(self.commits.connection, *arguments))
        try:
            if self._beside is None:
                self._beside = self._connector.to_read()
            return work(self._beside, *arguments)
        except self._connector.driver.errors as error:
            raise self._connector.explain(error) from error

    async def apart(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` over a connection and in a thread of its own: nobody waits for it."""
        if self._is_alone:
            return await self.writer.run(lambda: work(self.commits.connection, *arguments))
        worker = Worker("log-apart", self._connector.driver.errors, self._connector.explain)
        try:
            return await worker.run(self._apart, work, arguments)
        finally:
            await worker.stop()

    async def close(self) -> None:
        """Close the connections, end the threads."""
        await self._stack.aclose()

    def _hire(self, name: str) -> Worker:
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

    def _renew_log(self, claim: Claim, closed: threading.Event | None = None) -> Truth:
        if closed is not None:
            closed.wait(RENEWAL_SECONDS)
        self.commits.close()
        return self._open_log(lambda connection: _after_checkpoint(connection, claim))

    def _renew_alone(self, claim: Claim) -> Truth:
        """The only connection is there for readers again before it is known whether it can write."""
        self.commits.close()
        self.commits.use(self._connector.to_log())
        self._open_shared()
        return _after_checkpoint(self.commits.connection, claim)

    def _open_shared(self) -> None:
        if self._is_alone:
            connection = self.commits.connection
            self._connector.add_views(connection)
        else:
            connection = self._connector.to_views()
        self.units.use(connection)
        self.views.use(connection)

    def _close_shared(self) -> None:
        if not self._is_alone:
            self.views.close()

    def _stand_aside(self, closed: threading.Event, gate: threading.Event) -> None:
        """Between its two halves no reading connection is open."""
        self._close_shared()
        closed.set()
        gate.wait(RENEWAL_SECONDS)
        self._open_shared()

    def _close_beside(self) -> None:
        if self._beside is not None:
            self._beside.close()
            self._beside = None

    def _apart(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        connection = self._connector.to_read()
        try:
            return work(connection, *arguments)
        finally:
            connection.close()


def _after_checkpoint(connection: Connection, claim: Claim) -> Truth:
    """What the page cache shows after a failed fsync proves nothing; what a checkpoint could write and sync is true."""
    is_busy = (connection.execute("PRAGMA main.wal_checkpoint(RESTART)").fetchone() or (1,))[0]
    if is_busy:
        raise LogUnavailable("The log cannot be moved into its file, since another process reads it.")
    return claim(connection)
