"""A model's calls at once: so many run, the others wait in order, and who goes away while it waits holds nobody up."""

from __future__ import annotations

import asyncio

from organism.agents.lanes import Lanes
from tests.agents.turning import turn


class Queue:
    """Callers of one model that stay in their lane until they are told to go."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.inside: list[int] = []
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.gates: dict[int, asyncio.Event] = {}

    async def come(self, *numbers: int) -> None:
        for number in numbers:
            self.gates[number] = asyncio.Event()
            self.tasks[number] = asyncio.ensure_future(self._call(number))
            await turn()

    async def _call(self, number: int) -> None:
        async with self.lanes.one():
            self.inside.append(number)
            try:
                await self.gates[number].wait()
            finally:
                self.inside.remove(number)

    async def go(self, *numbers: int) -> None:
        for number in numbers:
            self.gates[number].set()
            await self.tasks[number]
        await turn()

    async def give_up(self, number: int) -> None:
        self.tasks[number].cancel()
        await asyncio.wait({self.tasks[number]})


async def test_no_more_run_at_once_than_there_are_lanes_and_the_rest_come_in_order() -> None:
    queue = Queue(Lanes(2))
    await queue.come(1, 2, 3, 4)
    assert queue.inside == [1, 2]
    await queue.go(2)
    assert queue.inside == [1, 3]
    await queue.come(5)
    await queue.go(1)
    assert queue.inside == [3, 4]
    await queue.go(3, 4, 5)


async def test_without_a_bound_all_run() -> None:
    queue = Queue(Lanes(0))
    await queue.come(*range(50))
    assert len(queue.inside) == 50
    await queue.go(*range(50))


async def test_who_is_cancelled_in_the_moment_of_its_turn_gives_it_to_the_next() -> None:
    queue = Queue(Lanes(1))
    await queue.come(1, 2, 3)
    queue.lanes.resize(2)
    await queue.give_up(2)
    await turn()
    assert queue.inside == [1, 3]
    await queue.go(1, 3)


async def test_who_is_cancelled_while_it_waits_or_runs_gives_its_turn_to_the_next() -> None:
    queue = Queue(Lanes(1))
    await queue.come(1, 2, 3)
    await queue.give_up(2)
    await queue.give_up(1)
    await turn()
    assert queue.inside == [3]
    await queue.go(3)


async def test_who_is_cancelled_in_the_moment_of_its_turn_gives_it_on() -> None:
    queue = Queue(Lanes(1))
    await queue.come(1, 2, 3)
    queue.gates[1].set()
    await asyncio.wait({queue.tasks[1]})
    queue.tasks[2].cancel()  # its turn has come, and it has not heard of it yet
    await asyncio.wait({queue.tasks[2]})
    await turn()
    assert queue.inside == [3]
    await queue.go(3)


async def test_a_new_number_of_lanes_lets_more_in_and_waits_for_those_who_are_too_many() -> None:
    lanes = Lanes(1)
    queue = Queue(lanes)
    await queue.come(1, 2, 3, 4)
    lanes.resize(3)
    await turn()
    assert queue.inside == [1, 2, 3]
    lanes.resize(1)
    await queue.go(1, 2)
    assert queue.inside == [3]
    await queue.go(3)
    assert queue.inside == [4]
    await queue.go(4)
