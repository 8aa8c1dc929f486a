"""Workers: tasks that run handlings one after the other.

The plain way is a task for each handling; making and registering one costs more than most handlers run. A worker
takes the next handling when the last one is over, so a handler that never waits costs no task. When a handler waits,
its worker waits with it, and another one takes what is queued. After a turn of handlings that never waited the loop
looks at its sockets: a commit may set sixty of them free at once. A worker whose handling was cancelled, or left
something in the context, ends: nothing passes from one handling to the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Final

from organism.pump.steps import Handling

TURN_HANDLINGS: Final = 8
"""So many handlings that never wait, under a millisecond, follow each other before the loop looks at its sockets."""


class Workers:
    """``run(handling)`` runs one to its end and does not raise."""

    __slots__ = ("_idle", "_is_called", "_is_stopped", "_loop", "_queue", "_run", "_tasks")

    def __init__(self, run: Callable[[Handling], Awaitable[None]]) -> None:
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Handling] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_called = False
        self._is_stopped = False

    def give(self, handling: Handling) -> None:
        """Run the handling soon, in the order of the calls."""
        self._queue.append(handling)
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._answer_call)

    def stop(self) -> None:
        """Run nothing more; workers that wait with their handler are its task's to cancel."""
        self._is_stopped = True
        self._queue.clear()
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)
        self._idle.clear()

    def _answer_call(self) -> None:
        self._is_called = False
        if not self._queue:
            return
        while self._idle:
            idle = self._idle.pop()
            if not idle.done():
                idle.set_result(None)
                return
        task = self._loop.create_task(self._work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        """Take what is queued until stopped, a turn at a time."""
        task = asyncio.current_task()
        clean = copy_context()
        while not self._is_stopped:
            for _ in range(TURN_HANDLINGS):
                if not self._queue:
                    break
                handling = self._queue.popleft()
                if (
                    self._queue and not self._is_called
                ):  # should this handler wait, or be the turn's last, the next is taken
                    self._is_called = True
                    self._loop.call_soon(self._answer_call)
                handling.task = task
                await self._run(handling)
                handling.task = None
                if (task is not None and task.cancelling()) or not _is_same(copy_context(), clean):
                    self._pass_on()
                    return
            idle: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(idle)
            await idle

    def _pass_on(self) -> None:
        if self._queue and not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._answer_call)


def _is_same(context: Context, other: Context) -> bool:
    """Whether both hold the same objects: to compare them would call a handler's own ``__eq__``."""
    return len(context) == len(other) and all(other.get(name, context) is value for name, value in context.items())
