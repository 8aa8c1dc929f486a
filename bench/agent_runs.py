"""The one load of agents' runs that the product and every rival are put under. Standard library only."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench.load import WARM_UP_SECONDS, Measurement, percentiles_us
from bench.peer import LAST_WORDS

IN_FLIGHT = 32


async def measure_runs(name: str, run: Callable[[], Awaitable[None]], seconds: float) -> Measurement:
    """What a run takes alone (half of the time), and how many end in a second with ``IN_FLIGHT`` under way."""
    await _until(run, WARM_UP_SECONDS)
    alone = await _until(run, seconds / 2)
    begun = time.perf_counter()
    together = await asyncio.gather(*(_until(run, seconds / 2) for _ in range(IN_FLIGHT)))
    rate = sum(map(len, together)) / (time.perf_counter() - begun)
    return Measurement(name, "us", percentiles_us(alone)["p50_us"], {"runs_s": rate, **percentiles_us(alone)})


def hold_answer(said: object) -> None:
    """Raise if a run did not come to its answer."""
    if said != LAST_WORDS:
        raise RuntimeError(f"A run ended with {said!r}.")


async def _until(run: Callable[[], Awaitable[None]], seconds: float) -> list[float]:
    """Runs one after the other; gives what each took, in seconds."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while not taken or time.perf_counter() < end:
        begun = time.perf_counter()
        await run()
        taken.append(time.perf_counter() - begun)
    return taken
