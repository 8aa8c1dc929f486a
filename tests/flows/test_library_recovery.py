"""What recovers at a start does so before any handling goes on: no handling works on what is about to be swept."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from organism.bootstrap import Parts
from organism.rag.store import LIBRARY_FILE
from organism.sqlite.driver import Connection, Pysqlite
from tests.flows.stage import at_gate, inject_and_crash_at
from tests.flows.world import MakeWorld

MARKING = """
from pathlib import Path

async def marking(payload: Ask, metadata: HandlerMetadata):
    Path(payload.text).touch()
    await gate("marking")
"""

FAILING = """
import asyncio, sys, time
from pathlib import Path
from organism import bootstrap

data = Path(sys.argv[1])

def wall_ns():
    if (data / "tenants/default/library.sqlite").exists():
        raise RuntimeError("the clock is broken")
    return time.time_ns()

asyncio.run(bootstrap.start(Path("organism.yaml"), data, bootstrap.Parts(wall_ns=wall_ns)))
"""
"""A start that fails, by a fault of ours, when the library is open."""


class SeesMark(Pysqlite):
    """A driver that notes, each time that the library's file is opened, whether the mark is there."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark
        self.seen: list[bool] = []

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        if Path(path).name == LIBRARY_FILE:
            self.seen.append(self._mark.exists())
        return super().connect(path, read_only=read_only)


async def test_no_handling_goes_on_before_the_library_has_recovered(world: MakeWorld, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    play = world(MARKING, {"marking": {}})
    await inject_and_crash_at(play, "marking", "marking", str(mark))
    mark.unlink()
    driver = SeesMark(mark)
    async with play.running(parts=Parts(driver=driver)) as o:
        await at_gate(o, "marking")
    assert driver.seen
    assert not any(driver.seen)
    assert mark.exists()


async def test_a_process_whose_start_fails_while_the_library_is_open_ends(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FAILING, str(tmp_path), stderr=PIPE, env={"PYTHONPATH": "."}
    )
    try:
        async with asyncio.timeout(60):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, b"the clock is broken" in said) == (1, True)
