"""The threads of a durable log and the connections that they own: opened, renewed after a failure, closed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from organism.errors import LogUnavailable, OrganismError
from organism.log.commits import Commits
from organism.log.connect import Connector
from organism.log.driver import Connection
from organism.log.log import ReadModel
from organism.log.opening import Options, Truth
from organism.log.units import Units

T = TypeVar("T")
Done = Callable[[Any, Exception | None], None]
Job = tuple[Callable[..., Any], tuple[Any, ...], Done]
Claim = Callable[[Connection], Truth]
QUICK_SECONDS: Final = 0.002
"""So much of the processor's time may a read in the loop's thread take."""
WAIT_SECONDS: Final = 0.01
"""So long may it take in all: it may have to wait for the disk, or for the interpreter's lock."""
LOOK_STEPS: Final = 1000
"""So many steps of a statement, some ten microseconds, are taken between two looks at the clock."""
NEVER: Final = float("inf")
RENEWAL_SECONDS: Final = 60.0
"""So long at most the reading thread stands still while the writing one looks for the truth."""
MOST_APART: Final = 4
"""So many reads may have a thread of their own at once; further ones wait."""


class Worker:
    """A thread that runs one piece of work after the other, and says in the loop's thread how each one went.

    Errors that work may be expected to raise reach its caller as the connector explains them. Any other is a fault of
    ours: it ends the thread, which reports it, and the next work runs in a new one.
    """

    def __init__(self, name: str, connector: Connector) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._expected: tuple[type[Exception], ...] = (*connector.driver.errors, OSError, OrganismError)
        self._explain = connector.explain
        self._name = name
        self._thread = self._start()

    def post(self, done: Done, work: Callable[..., Any], *arguments: Any) -> None:
        """Run ``work(*arguments)`` in the thread, then ``done(result, error)`` in the loop's."""
        self._jobs.put((work, arguments, done))

    def submit(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run ``work(*arguments)`` in the thread; the future has its result. Cancelling it leaves the work running."""
        outcome: asyncio.Future[T] = self._loop.create_future()

        def tell(result: T, error: Exception | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(result)
            else:
                outcome.set_exception(self._explain(error))

        self.post(tell, work, *arguments)
        return outcome

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self.submit(work, *arguments)

    async def stop(self) -> None:
        await self.run(lambda: None)
        self._jobs.put(None)
        self._thread.join()

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        job: Job | None = None
        try:
            while (job := self._jobs.get()) is not None:
                self._do(job)
        finally:
            if job is not None:
                self._thread = self._start()

    def _do(self, job: Job) -> None:
        work, arguments, done = job
        result: Any = None
        error: Exception | None = OrganismError(
            "A thread of the log failed by a fault of its own; its report has the place."
        )
        try:
            result, error = work(*arguments), None
        except self._expected as failure:
            error = failure
        finally:
            self._loop.call_soon_threadsafe(done, result, error)


class TakesTime(Exception):
    """A read was broken off: it is not one for the loop's thread."""


class LoopReader:
    """A connection of the loop's own thread, for reads that are over before another thread would have woken up.

    A read in another thread waits for that thread, then for the interpreter's lock, then for the loop: with a busy
    loop that is milliseconds, and a page of fifty rows takes a tenth of one. What a read takes is not known beforehand,
    so it is begun here and broken off when its time is over; another thread then does it again.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: Connection | None = None
        self._work_end = self._end = NEVER
        self._is_late = False

    def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """``work(connection, *arguments)``, however long it takes."""
        try:
            return work(self._opened(), *arguments)
        except self._connector.driver.errors as error:
            if self._is_late:
                raise TakesTime from error
            raise self._connector.explain(error) from error

    def run_quickly(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same. Raises ``TakesTime`` if it is not over soon."""
        self._work_end, self._end = time.thread_time() + QUICK_SECONDS, time.monotonic() + WAIT_SECONDS
        try:
            return self.run(work, *arguments)
        finally:
            self._work_end = self._end = NEVER
            self._is_late = False

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._connector.to_read()
            self._connection.set_progress_handler(self._look, LOOK_STEPS)
        return self._connection

    def _look(self) -> bool:
        """Whether to break off what runs."""
        self._is_late = time.thread_time() > self._work_end or time.monotonic() > self._end
        return self._is_late


class Connections:
    """``writer`` commits over the connection of ``commits``, ``reader`` reads over that of ``units``.

    What is read quickly needs no thread (``read``).
    """

    def __init__(self, connector: Connector, options: Options, models: Sequence[ReadModel]) -> None:
        self._connector = connector
        self._stack = AsyncExitStack()
        self.commits = Commits(models)
        self.units = Units(options.upcaster)
        self._in_loop = LoopReader(connector)
        self._apart = asyncio.Semaphore(MOST_APART)
        self._is_renewing = False
        self.writer = self._start("log-writer")
        self.reader = self._start("log-reader")

    async def open(self, claim: Claim) -> Truth:
        """Open the connections. Gives what ``claim`` found to be true over the first."""
        truth = await self.writer.run(self._open_writer, claim)
        self._stack.push_async_callback(self.writer.run, self.commits.close)
        await self.reader.run(self._open_reader)
        self._stack.push_async_callback(self.reader.run, self.units.close)
        self._stack.callback(self._in_loop.close)
        return truth

    async def renew(self, claim: Claim, *, entirely: bool) -> Truth:
        """Open the writing connection again, move the WAL into the database, ask ``claim`` what is true.

        ``entirely`` closes all others too, for as long as it takes: only then SQLite reads the WAL from the disk and
        believes nothing that it has in memory. Raises what hinders it; the others are open again then.
        """
        if not entirely:
            return await self.writer.run(self._renew_writer, claim)
        closed, gate = threading.Barrier(2), threading.Event()
        self._is_renewing = True
        self._in_loop.close()
        reading = self.reader.submit(self._stand_aside, closed, gate)
        try:
            return await self.writer.run(self._renew_writer, claim, closed)
        finally:
            self._is_renewing = False
            gate.set()
            await reading

    def read_now(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` at once in the loop's thread: for the few rows that a decision needs.

        Raises ``LogUnavailable`` while everything is closed.
        """
        if self._is_renewing:
            raise LogUnavailable("The log reads its disk again.")
        return self._in_loop.run(work, *arguments)

    async def read(self, work: Callable[..., T], *arguments: Any, is_long: bool = False) -> T:
        """Run ``work(connection, *arguments)``: at once if it is over at once, else in the reading thread.

        ``is_long`` says that it will not be.
        """
        if not (is_long or self._is_renewing):
            try:
                return self._in_loop.run_quickly(work, *arguments)
            except TakesTime:
                pass
        return await self.reader.run(lambda: work(self.units.connection, *arguments))

    async def write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` over the writing connection, between two commits."""
        return await self.writer.run(lambda: work(self.commits.connection, *arguments))

    def post(self, work: Callable[..., object], *arguments: Any) -> None:
        """``write`` as soon as the writing thread has time; the outcome is ignored."""
        self.writer.post(lambda _, __: None, lambda: work(self.commits.connection, *arguments))

    async def read_apart(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` over a connection and in a thread of its own."""
        async with self._apart:
            worker = Worker("log-apart", self._connector)
            try:
                return await worker.run(self._over_another, work, arguments)
            finally:
                await worker.stop()

    async def close(self) -> None:
        await self._stack.aclose()

    def _start(self, name: str) -> Worker:
        worker = Worker(name, self._connector)
        self._stack.push_async_callback(worker.stop)
        return worker

    def _open_reader(self) -> None:
        self.units.use(self._connector.to_read())

    def _open_writer(self, claim: Claim) -> Truth:
        with ExitStack() as stack:
            connection = self._connector.to_log()
            stack.callback(connection.close)
            truth = claim(connection)
            self.commits.use(connection)
            stack.pop_all()
        return truth

    def _renew_writer(self, claim: Claim, closed: threading.Barrier | None = None) -> Truth:
        if closed is not None:
            _meet(closed)
        self.commits.close()
        return self._open_writer(lambda connection: _after_checkpoint(connection, claim))

    def _stand_aside(self, closed: threading.Barrier, gate: threading.Event) -> None:
        """Between its two halves the reading thread has no connection."""
        self.units.close()
        _meet(closed)
        gate.wait(RENEWAL_SECONDS)
        self._open_reader()

    def _over_another(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with closing(self._connector.to_read()) as connection:
            return work(connection, *arguments)


def _meet(closed: threading.Barrier) -> None:
    """Wait for the other thread, but not for ever: one that is held up has its connection longer, that is all."""
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
