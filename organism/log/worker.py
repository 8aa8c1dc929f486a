"""A thread that runs one piece of work after the other, and says in the loop's thread how each one went."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from organism.errors import OrganismError

T = TypeVar("T")
Done = Callable[[Any, Exception | None], None]
Explain = Callable[[Exception], Exception]
Job = tuple[Callable[..., Any], tuple[Any, ...], Done]


class Worker:
    """Work runs in the order in which it was posted. ``expected`` are the errors that work may raise.

    ``explain`` makes of such an error the one that a caller of ``begin``, ``run`` and ``wait_for`` gets.

    Any other error is a fault of ours: it ends the thread, which reports it, and the next work runs in a new one.
    """

    def __init__(self, name: str, expected: tuple[type[Exception], ...], explain: Explain | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._expected: tuple[type[Exception], ...] = (*expected, OSError, OrganismError)
        self._explain: Explain = explain or (lambda error: error)
        self._name = name
        self._hired = self._hire()

    def post(self, done: Done, work: Callable[..., Any], *arguments: Any) -> None:
        """Run ``work(*arguments)`` in the thread, then ``done(result, error)`` in the loop's."""
        self._jobs.put((work, arguments, done))

    def begin(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
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
        """``begin``, then wait."""
        return await self.begin(work, *arguments)

    def wait_for(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(*arguments)`` in the thread while the loop's stands still."""
        outcome: SimpleQueue[tuple[T | None, Exception | None]] = SimpleQueue()

        def attempt() -> None:
            try:
                outcome.put((work(*arguments), None))
            except self._expected as failure:
                outcome.put((None, failure))

        self.post(lambda _, __: None, attempt)
        result, error = outcome.get()
        if error is not None:
            raise self._explain(error) from error
        return result  # type: ignore[return-value] # None only beside an error

    async def stop(self) -> None:
        """Let the posted work end, then the thread."""
        await self.run(lambda: None)
        self._jobs.put(None)
        self._hired.join()

    def _hire(self) -> threading.Thread:
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
                self._hired = self._hire()

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
