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

from rich.progress import BarColumn, Progress, TextColumn

from organism import bootstrap
from organism.cli.exits import Exit
from organism.cli.init import write_starter
from organism.cli.options import Bench
from organism.cli.show import Plain, out, print_json, refuse, table
from organism.model.commands import Inject, Injected
from organism.model.ids import DEFAULT_TENANT
from organism.server.serve import run
from organism.tenants import Tenant

IN_FLIGHT: Final = (1, 64)
MESSAGES_A_THREAD: Final = 4
PATIENCE_SECONDS: Final = 60.0
TICK_SECONDS: Final = 0.1
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
    folder_on_disk = options.place or Path(tempfile.gettempdir())
    try:
        with tempfile.TemporaryDirectory(dir=folder_on_disk, prefix="organism-bench-") as folder:
            sync_ms = _sync_ms(Path(folder))
            measured = run(_measured(Path(folder), options.seconds))
    except OSError as error:
        refuse(
            Exit.FAILED,
            f"{folder_on_disk} cannot be measured: {error.strerror or error}.",
            "Name another one: --dir DIR.",
        )
    if options.json:
        print_json({"fsync_ms": round(sync_ms, 3), "loads": [asdict(load) for load in measured]})
        return
    rows = (
        (str(load.in_flight), f"{load.messages_per_second:,.0f}", f"{load.p50_ms:.2f} ms", f"{load.p99_ms:.2f} ms")
        for load in measured
    )
    table(("THREADS AT ONCE", "MESSAGES/S", "A THREAD, MEDIAN", "OF 100 THE SLOWEST"), rows, "nothing")
    out().print(f"\nAn fsync in {folder_on_disk} takes {sync_ms:.2f} ms; every acknowledged message waits for one.")


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


async def _measured(folder: Path, seconds: float) -> list[Measured]:
    write_starter(folder)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    console = Plain(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task("measuring", total=seconds * len(IN_FLIGHT))
        organism = await bootstrap.start(folder / "organism.yaml", folder / "data")
        ticking = asyncio.create_task(_ticking(progress))
        try:
            return [await _load(organism.tenants[DEFAULT_TENANT], in_flight, seconds) for in_flight in IN_FLIGHT]
        finally:
            ticking.cancel()
            await organism.stop()


async def _ticking(progress: Progress) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        progress.advance(progress.task_ids[0], TICK_SECONDS)


async def _load(tenant: Tenant, in_flight: int, seconds: float) -> Measured:
    """Keep this many threads active; a slot starts its next thread when its last one has ended."""
    taken: list[float] = []
    began = time.perf_counter()
    await asyncio.gather(*(_slot(tenant, began + seconds, taken) for _ in range(in_flight)))
    rate = len(taken) * MESSAGES_A_THREAD / (time.perf_counter() - began)
    slowest = sorted(taken)[(len(taken) - 1) * 99 // 100]
    return Measured(in_flight, round(rate, 1), round(median_low(taken) * 1000, 3), round(slowest * 1000, 3))


async def _slot(tenant: Tenant, until: float, taken: list[float]) -> None:
    while (began := time.perf_counter()) < until or not taken:
        sent = await tenant.do(Inject(to="greeter", json={"name": "Dan"}))
        assert isinstance(sent, Injected)  # noqa: S101 - an Inject is answered by nothing else; narrows the type
        await tenant.ended(sent.thread_id, PATIENCE_SECONDS)
        taken.append(time.perf_counter() - began)
