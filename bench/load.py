"""The one load that the product and every rival are put under. Standard library only: it runs in every environment.

A *chain* is greeter → shouter → response-handler: three handled messages, so three *hops*. `in_flight` chains are under
way at any moment; each slot starts its next chain when its last one has ended. So a rival is never starved, and no
queue grows behind it.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field

HOPS_A_CHAIN = 3
WARM_UP_SECONDS = 0.4

Chain = Callable[[str], Awaitable[None]]


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


async def measure_hops(name: str, chain: Chain, in_flight: int, seconds: float) -> Measurement:
    """Hops a second, and what a chain took, of `chain(key)`; it is awaited until the chain has ended.

    Chains that end during the warm-up, or after the last second, are not counted.
    """
    latencies: list[float] = []
    begin = time.perf_counter() + WARM_UP_SECONDS
    end = begin + seconds

    async def slot(number: int) -> None:
        turn = 0
        while (started := time.perf_counter()) < end:
            await chain(f"{number}-{turn}")
            turn += 1
            if begin <= (ended := time.perf_counter()) < end:
                latencies.append(ended - started)

    await asyncio.gather(*(slot(number) for number in range(in_flight)))
    if not latencies:
        message = f"{name}: no chain ended within {seconds} s; give it more time with --seconds."
        raise RuntimeError(message)
    return Measurement(name, "hops/s", len(latencies) * HOPS_A_CHAIN / seconds, percentiles_us(latencies))


def percentiles_us(seconds: Sequence[float]) -> dict[str, float]:
    """The median and the 99th percentile in microseconds, by nearest rank."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {"p50_us": ordered[last // 2] * 1e6, "p99_us": ordered[last * 99 // 100] * 1e6}


def arguments(description: str | None, in_flight: int = 1, what: Sequence[str] = ()) -> argparse.Namespace:
    """The options that every program of the bench takes; ``what`` are those of which a program does one."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if what:
        parser.add_argument("what", choices=what)
    parser.add_argument("--in-flight", type=int, default=in_flight, help="chains under way at once")
    parser.add_argument("--seconds", type=float, default=2.5, help="how long to measure, after the warm-up")
    parser.add_argument("--quick", action="store_true", help="smaller logs and fewer threads, where there are any")
    return parser.parse_args()
