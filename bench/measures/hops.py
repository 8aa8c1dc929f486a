"""The product: hops a second, and what a chain takes, with a number of chains in flight; on disk, all features on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import uvloop

from bench import ours
from bench.load import Measurement, arguments, measure_hops


async def measure(in_flight: int, seconds: float) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with ours.organism(Path(folder)) as started:

            async def chain(key: str) -> None:
                await ours.chain(started, key)

            return await measure_hops("organism", chain, in_flight, seconds)


if __name__ == "__main__":
    options = arguments(__doc__, in_flight=64)
    print(uvloop.run(measure(options.in_flight, options.seconds)).line())
