"""The product: hops a second, and what a chain takes, with a number of chains in flight; on disk, all features on."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import uvloop

from bench import ours
from bench.load import Measurement, arguments, measure_hops

PAYLOADS = {"plain": (ours.CONFIG, ours.chain), "general": (ours.GENERAL_CONFIG, ours.general_chain)}


async def measure(in_flight: int, seconds: float, payload: str = "plain") -> Measurement:
    config, chain = PAYLOADS[payload]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with ours.organism(Path(folder), config) as started:
            return await measure_hops("organism", partial(chain, started), in_flight, seconds)


if __name__ == "__main__":
    options = arguments(__doc__, in_flight=64, what=tuple(PAYLOADS))
    print(uvloop.run(measure(options.in_flight, options.seconds, options.what)).line())
