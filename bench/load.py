"""The one load that the product and every rival are put under. Standard library only: it runs in every environment.

A *chain* is greeter → shouter → response-handler: three handled messages, so three *hops*. `in_flight` chains are under
way at any moment; each slot starts its next chain when its last one has ended. So a rival is never starved, and no
queue grows behind it.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import NoReturn

from bench.usage import Usage, spent, usage

HOPS_A_CHAIN = 3
WARM_UP_SECONDS = 0.4
SKIPPED = 77
"""How a program ends that measures what is not to be had here; automake and others use the same."""

Chain = Callable[[str], Awaitable[None]]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one program measured in one round: the headline, its unit, and other figures of the same round."""

    name: str
    unit: str
    value: float
    also: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        """The one line of JSON that the harness reads from the program's standard output."""
        return json.dumps(asdict(self))


class Load:
    """Slots that run one chain after another, until each of them has been measured.

    ``look`` tells what is measured has used so far: this process and its children by default.
    """

    def __init__(
        self,
        chain: Chain,
        in_flight: int,
        seconds: float,
        clock: Clock = time.perf_counter,
        look: Callable[[], Usage] = usage,
    ) -> None:
        self._chain = chain
        self._in_flight = in_flight
        self._clock = clock
        self._look = look
        self._begin = clock() + WARM_UP_SECONDS
        self._end = self._begin + seconds
        self._measured = 0
        self._before: Usage | None = None
        self._after: Usage | None = None
        self._ended = 0
        self.chains_a_second = 0.0
        self.latencies: list[float] = []

    def used(self, hops_a_chain: int = 1) -> dict[str, float]:
        """What each chain used of the machine, or each hop of it; of all that ran while chains were measured."""
        if self._before is None or self._after is None:
            return {}
        return spent(self._before, self._after, self._ended * hops_a_chain)

    async def run(self) -> None:
        await asyncio.gather(*(self._slot(number) for number in range(self._in_flight)))

    async def _slot(self, number: int) -> None:
        """Warm up; measure whole chains only; keep up the load until the last slot has been measured."""
        keys = (f"{number}-{turn}" for turn in itertools.count())
        while self._clock() < self._begin:
            await self._chain(next(keys))
        if self._before is None:
            self._before = self._look()
        begun, count = self._clock(), 0
        while (started := self._clock()) < self._end or not count:
            await self._chain(next(keys))
            self._ended += 1
            self.latencies.append(self._clock() - started)
            count += 1
        self.chains_a_second += count / (self._clock() - begun)
        self._measured += 1
        if self._measured == self._in_flight:
            self._after = self._look()
        while self._measured < self._in_flight:
            await self._chain(next(keys))
            self._ended += 1
            await asyncio.sleep(0)


async def measure_hops(name: str, chain: Chain, in_flight: int, seconds: float) -> Measurement:
    """Hops a second, and what a chain took, of `chain(key)`; it is awaited until the chain has ended.

    The rate is the sum of the slots' own, each over its own whole chains: chains that are slow and go in step are not
    cut off at the end of the round.
    """
    load = Load(chain, in_flight, seconds)
    await load.run()
    also = {**percentiles_us(load.latencies), **load.used(HOPS_A_CHAIN)}
    return Measurement(name, "hops/s", load.chains_a_second * HOPS_A_CHAIN, also)


def percentiles_us(seconds: Sequence[float]) -> dict[str, float]:
    """The median and the 99th percentile in microseconds, by nearest rank."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {"p50_us": ordered[last // 2] * 1e6, "p99_us": ordered[last * 99 // 100] * 1e6}


def skip(why: str) -> NoReturn:
    """End the program: what it measures is not to be had here."""
    print(why, file=sys.stderr)
    sys.exit(SKIPPED)


def arguments(description: str | None, in_flight: int = 1, what: Sequence[str] = ()) -> argparse.Namespace:
    """The options that every program of the bench takes; ``what`` are those of which a program does one."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if what:
        parser.add_argument("what", choices=what)
    parser.add_argument("--in-flight", type=int, default=in_flight, help="chains under way at once")
    parser.add_argument("--seconds", type=float, default=2.5, help="how long to measure, after the warm-up")
    parser.add_argument("--quick", action="store_true", help="smaller logs and fewer threads, where there are any")
    return parser.parse_args()
