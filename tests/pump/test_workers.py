"""Workers: handlings one after the other, and the loop's sockets between them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from organism.pump.workers import TURN_HANDLINGS, Workers

MANY = 5 * TURN_HANDLINGS + 3


class Loop:
    """What was handled, and how much of it in each of the loop's iterations."""

    def __init__(self) -> None:
        self.handled: list[int] = []
        self.iterations: list[int] = []
        self.is_over = asyncio.get_running_loop().create_future()

    def turn(self) -> None:
        """Once in each iteration, until all was handled."""
        self.iterations.append(len(self.handled) - sum(self.iterations))
        if len(self.handled) < MANY:
            asyncio.get_running_loop().call_soon(self.turn)
        elif not self.is_over.done():
            self.is_over.set_result(None)


class Handled:
    """A handling, as a worker sees it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.task: Any = None


@pytest.mark.parametrize("waiting", [(), (0,), (TURN_HANDLINGS - 1, 2 * TURN_HANDLINGS)])
async def test_the_loop_looks_at_its_sockets_between_the_handlings_of_a_long_queue(waiting: tuple[int, ...]) -> None:
    loop, gate = Loop(), asyncio.Event()

    async def run(handling: Any) -> None:
        if handling.number in waiting:
            await gate.wait()
        loop.handled.append(handling.number)
        if len(loop.handled) == MANY - len(waiting):
            gate.set()

    workers = Workers(run)
    for number in range(MANY):
        workers.give(Handled(number))  # type: ignore[arg-type] # a worker looks at nothing else of it
    loop.turn()
    await loop.is_over
    workers.stop()
    assert sorted(loop.handled) == list(range(MANY))
    assert [number for number in loop.handled if number not in waiting] == sorted(set(range(MANY)) - set(waiting))
    assert max(loop.iterations) <= 2 * TURN_HANDLINGS
