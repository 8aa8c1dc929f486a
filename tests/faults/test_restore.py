"""A restore that is killed leaves the old logs, the new ones, or a directory in which no server starts."""

from __future__ import annotations

import asyncio
import shutil
import signal
from itertools import count
from pathlib import Path

import pytest

from organism.errors import LogDamaged
from tests.cli.command import names, organism
from tests.faults.lives import FORKS
from tests.faults.steps import die_at
from tests.rag import libraries

pytestmark = pytest.mark.faults


async def killed(step: int, file: Path, data: Path) -> bool:
    """Restore it, by a process that dies at this step; False if it has ended before."""
    words = ("log", "restore", str(file), "--force", "--data", str(data))
    process = FORKS.Process(target=die_at, args=(step, str(data), *words))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


async def end_of(data: Path) -> int:
    """Where the log ends, which is whole."""
    whole = await organism("log", "verify", "--data", data, "--json")
    assert whole.code == 0, whole.err
    found: int = whole.json["position"]
    return found


async def test_a_restore_that_is_killed_at_any_step_leaves_old_logs_or_new_ones_or_refuses(tmp_path: Path) -> None:
    async with libraries.organism(tmp_path / "old") as o:
        await o.inject("greeter", {"name": "Dan"}, wait=True)
    old, file = await end_of(tmp_path / "old"), tmp_path / "backup"
    assert (await organism("log", "backup", file, "--data", tmp_path / "old")).code == 0
    async with libraries.organism(tmp_path / "old") as o:
        await o.inject("greeter", {"name": "Eve"}, wait=True)
    new, old = old, await end_of(tmp_path / "old")
    left: list[int | None] = []
    for step in count(1):
        data = tmp_path / f"step-{step}"
        shutil.copytree(tmp_path / "old", data)
        if not await killed(step, file, data):
            break
        if "tenants" in names(data):
            left.append(await end_of(data))
        else:
            left.append(None)
            with pytest.raises(LogDamaged, match="did not end"):
                async with libraries.organism(data):
                    pass
        if left.count(left[-1]) == 1:
            assert (await organism("log", "restore", file, "--force", "--data", data)).code == 0
            assert await end_of(data) == new
            assert "tenants.new" not in names(data)
            assert [name for name in names(data) if name.startswith("tenants.2")]
    assert left == sorted(left, key=(old, None, new).index)
    assert set(left) == {old, None, new}
