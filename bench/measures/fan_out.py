"""A fan-out: messages a second when one handling sends 2,000 of them to one listener, until the last is handled."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench import ours
from bench.load import Measurement, arguments
from bench.usage import spent, usage
from organism import HandlerMetadata, HandlerResponse

MESSAGES = 2_000
PATIENCE_S = 60
CONFIG = {
    "organism": {"name": "fan-out", "imports": ["bench.measures.fan_out"]},
    "listeners": [
        {
            "name": name,
            "description": f"The {name} of a fan-out",
            "payload_class": "bench.measures.fan_out.Work",
            "handler": f"bench.measures.fan_out.{name}",
            "peers": ["worker"],
        }
        for name in ("sender", "worker")
    ],
}


@dataclass
class Work:
    """A piece of work, or how many of them to send."""

    number: int


async def sender(payload: Work, metadata: HandlerMetadata) -> list[HandlerResponse]:
    """Send so many pieces at once."""
    return [HandlerResponse(Work(number), to="worker") for number in range(payload.number)]


async def worker(payload: Work, metadata: HandlerMetadata) -> None:
    """Handle one piece."""


async def measure(seconds: float) -> Measurement:
    """One fan-out after the other, each in a thread of its own, with everything on the disk."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        config = Path(folder) / "organism.yaml"
        config.write_text(json.dumps(CONFIG), "utf-8")  # JSON is YAML
        async with ours.organism(Path(folder) / "data", config) as started:
            await started.inject("sender", {"number": MESSAGES}, wait=True, seconds=PATIENCE_S)
            before, begun, done = usage(), time.perf_counter(), 0
            while done == 0 or time.perf_counter() < begun + seconds:
                await started.inject("sender", {"number": MESSAGES}, wait=True, seconds=PATIENCE_S)
                done += MESSAGES
            rate, used = done / (time.perf_counter() - begun), spent(before, usage(), done)
            return Measurement("organism", "messages/s", rate, used)


if __name__ == "__main__":
    print(uvloop.run(measure(arguments(__doc__).seconds)).line())
