"""``organism bench``: how fast this machine and this disk handle messages.

The starter's organism runs in this process, without the web server, in a new directory that is removed afterwards.
Each thread is four messages, each on the disk before it acts.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median_low
from typing import Final

from rich.progress import track

from organism import bootstrap
from organism.cli.exits import Exit
from organism.cli.init import write_starter
from organism.cli.options import Bench
from organism.cli.output import SafeConsole, out, print_json, refuse, table
from organism.model.commands import Inject, Injected
from organism.model.ids import DEFAULT_TENANT
from organism.server.runner import run, tune_interpreter
from organism.tenants import Tenant

IN_FLIGHT: Final = (1, 64)
MESSAGES_PER_THREAD: Final = 4
PATIENCE_SECONDS: Final = 60.0
SYNCS: Final = 200
PAGE: Final = bytes(4096)


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one load; the times are those of whole threads."""

    in_flight: int
    messages_per_second: float
    p50_ms: float
    p99_ms: float


def bench(options: Bench) -> None:
    """Measure the disk alone, then each load."""
    place = options.place or Path(tempfile.gettempdir())
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix="organism-bench-") as folder:
            sync_ms = _sync_ms(Path(folder))
            loads = run(_measure(Path(folder), options.seconds))
    except OSError as error:
        refuse(Exit.FAILED, f"{place} cannot be measured: {error.strerror or error}.", "Name another one: --dir DIR.")
    if options.json:
        print_json({"fsync_ms": round(sync_ms, 3), "loads": [asdict(load) for load in loads]})
        return
    rows = (
        (str(load.in_flight), f"{load.messages_per_second:,.0f}", f"{load.p50_ms:.2f} ms", f"{load.p99_ms:.2f} ms")
        for load in loads
    )
    table(("THREADS AT ONCE", "MESSAGES/S", "A THREAD, MEDIAN", "99 OF 100 WITHIN"), rows, "nothing")
    out().print(f"\nAn fsync in {place} takes {sync_ms:.2f} ms; every acknowledged message waits for one.")


def _sync_ms(folder: Path) -> float:
    """The median time to write one page to the disk."""
    taken = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            began = time.perf_counter()
            file.write(PAGE)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return median_low(taken) * 1000


async def _measure(folder: Path, seconds: float) -> list[Measured]:
    write_starter(folder)
    console = SafeConsole(stderr=True)
    loads = track(IN_FLIGHT, "measuring", console=console, transient=True, disable=not console.is_terminal)
    organism = await bootstrap.start(folder / "organism.yaml", folder / "data")
    tune_interpreter()
    try:
        return [await _load(organism.tenants[DEFAULT_TENANT], in_flight, seconds) for in_flight in loads]
    finally:
        await organism.stop()


async def _load(tenant: Tenant, in_flight: int, seconds: float) -> Measured:
    """Keep this many threads active; a slot starts its next thread when its last one has ended."""
    taken: list[float] = []
    began = time.perf_counter()
    await asyncio.gather(*(_slot(tenant, began + seconds, taken) for _ in range(in_flight)))
    rate = len(taken) * MESSAGES_PER_THREAD / (time.perf_counter() - began)
    slowest = sorted(taken)[(len(taken) - 1) * 99 // 100]
    return Measured(in_flight, round(rate, 1), round(median_low(taken) * 1000, 3), round(slowest * 1000, 3))


async def _slot(tenant: Tenant, until: float, taken: list[float]) -> None:
    while (began := time.perf_counter()) < until or not taken:
        sent = await tenant.do(Inject(to="greeter", json={"name": "Dan"}))
        assert isinstance(sent, Injected)  # noqa: S101 - an Inject is answered by nothing else; narrows the type
        await tenant.ended(sent.thread_id, PATIENCE_SECONDS)
        taken.append(time.perf_counter() - began)
