"""A thread that owns a connection: the writing one, and the reading one that spares the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from organism.errors import OrganismError
from organism.sqlite.driver import Connection, Explain, Pysqlite

T = TypeVar("T")
Done = Callable[[Any, Exception | None], None]


class ConnectionThread:
    """It owns a connection, opened when it is needed, and works off one job after the other.

    Errors of the driver, of files and of the organism reach the work's caller. Any other is a fault of ours: it ends
    the thread, which reports it, and the next work runs in a new one.
    """

    def __init__(self, name: str, connect: Callable[[], Connection], driver: Pysqlite, explain: Explain) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[tuple[Done, Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self._name = name
        self._connect = connect
        self._expected: tuple[type[Exception], ...] = (*driver.errors, OSError, OrganismError)
        self._explain = explain
        self._connection: Connection | None = None
        self._thread = self._start()

    def post(self, done: Done, work: Callable[..., Any], *arguments: Any) -> None:
        """Run ``work(connection, *arguments)`` in the thread, then ``done(result, error)`` in the loop's."""
        self._jobs.put((done, self._over_connection, (work, *arguments)))

    def submit(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """The same; the future has the result. Cancelling it leaves the work running."""
        return self.run(self._over_connection, work, *arguments)

    def run(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """The same for work that needs no connection."""
        outcome: asyncio.Future[T] = self._loop.create_future()

        def done(result: T, error: Exception | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(result)
            else:
                outcome.set_exception(self._explain(error))

        self._jobs.put((done, work, arguments))
        return outcome

    def close_connection(self) -> asyncio.Future[None]:
        """Close the connection; the next work opens another."""
        return self.run(self._close)

    async def stop(self) -> None:
        """Finish the work, close the connection, end the thread."""
        await self.close_connection()
        self._jobs.put(None)
        self._thread.join()

    def _over_connection(self, work: Callable[..., T], *arguments: Any) -> T:
        if self._connection is None:
            self._connection = self._connect()
        return work(self._connection, *arguments)

    def _close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        job = None
        try:
            while (job := self._jobs.get()) is not None:
                self._do(*job)
        finally:
            if job is not None:
                self._thread = self._start()

    def _do(self, done: Done, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
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
