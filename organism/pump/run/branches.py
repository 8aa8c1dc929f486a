"""Branches of a handling: which of its tasks calls a step, and which of its results is given next.

A replay finds a step's record by its *place*: the path of tasks in which it was called, and its count there. ``3`` is
the third step of the handler's own task; ``2/1/3`` the third step of the first task that was created by the second task
that the handler created. Times do not enter into it, so overlapping steps may end in any order.

Results are given one at a time, by their position in the log, each when no task of the handling can run any more. So
code that looks which of its tasks ended first goes the same way again.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Self, TypeVar, cast

from msgspec import field

from organism.events.entity import Entity

QUIET_PASSES: Final = 8
"""After so many passes of the loop in which no task of a handling ran, none can: each future between two tasks that
wait for each other (a ``gather`` in a ``gather``) takes one."""
MOST_PASSES: Final = 1000
"""A task that runs in each pass holds up the results of the others no longer than this."""

T = TypeVar("T")


def _never() -> bool:
    return False


class Results(Entity):
    """Gives a handling's results in turn. ``may_run`` says whether its code may run at all; ``look`` when that changes.

    ``coroutines`` are those of its tasks that have not ended, oldest first.
    """

    may_run: Callable[[], bool] = _never
    coroutines: dict[InBranch[Any], None] = field(default_factory=dict)
    is_closed: bool = False
    ran: bool = False
    """Whether a task has run since the last pass."""
    _waiting: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)
    _given: int = 0
    _passes: int = 0
    _quiet: int = 0
    _is_looking: bool = False

    async def turn(self, position: int = 0) -> None:
        """Wait until it is the turn of the result at that position; ``passed`` when the code has it.

        A lone task does not wait for any other. Raises ``CancelledError`` once the handling is over.
        """
        if self.is_closed:
            raise asyncio.CancelledError
        if len(self.coroutines) > 1 or not self.may_run():
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (position, next(self._order), turn))
            self.look()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.passed()
                raise
        else:
            self._given += 1

    def passed(self) -> None:
        """The code has its result, or has given it up: the next one may be given."""
        self._given -= 1
        self.look()

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """Give no result while this work for the handler goes on."""
        self._given += 1
        try:
            return await work
        finally:
            self.passed()

    def look(self) -> None:
        """Give the next result, if there is one, once nothing else can run."""
        if self._waiting and not self._is_looking:
            self._is_looking = True
            self._passes = self._quiet = 0
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        while self._waiting and self._waiting[0][2].done():  # cancelled
            heappop(self._waiting)
        if self._given or not self._waiting or not self.may_run():
            self._is_looking = False
            return
        self._passes += 1
        self._quiet = 0 if self.ran else self._quiet + 1
        self.ran = False
        if self._quiet < QUIET_PASSES and self._passes < MOST_PASSES:
            asyncio.get_running_loop().call_soon(self._look)
            return
        self._is_looking = False
        self._given += 1
        heappop(self._waiting)[2].set_result(None)

    def close(self) -> None:
        """The handling is over: nothing waits for a result any more."""
        self.is_closed = True
        self.may_run = _never  # no cycle through the handling is left to the collector
        for *_, turn in self._waiting:
            turn.cancel()


class Branch(Entity):
    """A task of a handling. ``path`` leads to it; ``looks`` counts what was looked up since its last step."""

    results: Results
    path: str = ""
    steps: int = 0
    looks: int = 0
    tasks: int = 0

    def step(self) -> str:
        """The place of the step that is called now."""
        self.steps += 1
        self.looks = 0
        return f"{self.path}{self.steps}"

    def look(self) -> str:
        """The place of something that is looked up between two steps, and is a step only if it is found."""
        self.looks += 1
        return f"{self.path}{self.steps}.{self.looks}"

    def task(self) -> Branch:
        """The branch of the task that is created now."""
        self.tasks += 1
        return Branch(self.results, f"{self.path}{self.tasks}/")

    def has_passed(self, place: str) -> bool:
        """Whether the caller of the step at that place had already passed the current place of this branch."""
        if not place.startswith(self.path):
            return False
        ahead = place.removeprefix(self.path)
        task, _, deeper = ahead.partition("/")
        if deeper:
            return int(task) > self.tasks
        steps, _, looks = ahead.partition(".")
        return (int(steps), int(looks or 0)) > (self.steps, self.looks)


class InBranch(Coroutine[Any, Any, T]):
    """Runs a coroutine as a branch of a handling; with None as none: what it starts then belongs to no handling."""

    __slots__ = ("__weakref__", "_branch", "_coroutine", "_numbering")

    def __init__(self, numbering: TaskNumbering, branch: Branch | None, coroutine: Coroutine[Any, Any, T]) -> None:
        self._numbering, self._branch, self._coroutine = numbering, branch, coroutine
        if branch is not None:
            branch.results.coroutines[self] = None

    def __await__(self) -> Self:
        return self

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._run(self._coroutine.send, None)

    def send(self, value: Any) -> Any:
        """Go on with the value of what it waited for."""
        return self._run(self._coroutine.send, value)

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        """Go on with an error."""
        return self._run(self._coroutine.throw, *((error,) if value is None else (error, value, traceback)))

    def close(self) -> None:
        """End it where it is."""
        self._run(self._coroutine.close)
        self._end()

    def _run(self, act: Callable[..., Any], *arguments: Any) -> Any:
        numbering, branch = self._numbering, self._branch
        outer, numbering.branch = numbering.branch, branch
        if branch is not None:
            branch.results.ran = True
        try:
            return act(*arguments)
        except BaseException:  # also its return
            self._end()
            raise
        finally:
            numbering.branch = outer

    def _end(self) -> None:
        if self._branch is not None:
            self._branch.results.coroutines.pop(self, None)

    def __getattr__(self, name: str) -> Any:
        """What else a coroutine tells of itself: where it is, and what it waits for."""
        return getattr(self._coroutine, name)


class TaskNumbering:
    """The task factory of a loop: it numbers the tasks that handlings create. Others pass, as the host makes them.

    ``branch`` is that of the task which runs now, if it is a handling's own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._host = loop.get_task_factory()
        self._thread = threading.get_ident()
        self.branch: Branch | None = None

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> TaskNumbering:
        """That of the loop which runs in this thread, installed on first use."""
        found = loop.get_task_factory()
        if isinstance(found, cls):
            return found
        made = cls(loop)
        loop.set_task_factory(cast("Any", made))
        return made

    def here(self) -> Branch | None:
        """The branch of the task that calls this; None in any other task, in a callback, or in another thread."""
        return self.branch if threading.get_ident() == self._thread else None

    def aside(self, coroutine: Coroutine[Any, Any, T]) -> InBranch[T]:
        """Run something for a handling that is not the handling's own code."""
        return InBranch(self, None, coroutine)

    def __call__(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        """Make a task. Raises ``RuntimeError`` where its number would be another one at each run."""
        if self.branch is not None and asyncio.iscoroutine(coroutine):
            if not isinstance(coroutine, InBranch) and _is_in_as_completed():
                coroutine.close()
                raise RuntimeError(
                    "asyncio.as_completed starts coroutines in another order at each run. Give it tasks: "
                    "as_completed([asyncio.create_task(each) for each in …])."
                )
            coroutine = InBranch(self, self.branch.task(), coroutine)
        if self._host is not None:
            return self._host(loop, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)


def _is_in_as_completed() -> bool:
    frame = inspect.currentframe()
    frame = (
        frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    )  # the code that makes the task
    while frame is not None and frame.f_globals.get("__name__", "").startswith("asyncio"):
        if frame.f_code.co_qualname.partition(".")[0] in {"as_completed", "_AsCompletedIterator"}:
            return True
        frame = frame.f_back
    return False
