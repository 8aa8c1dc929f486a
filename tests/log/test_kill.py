"""G1: a log that is killed at any instant has everything that was acknowledged, and opens as if nothing had been."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import closing
from pathlib import Path

import pytest

from organism.sqlite.driver import Pysqlite
from organism.views.views import Query
from tests.log.engines import MODELS, open_durable, views

WRITER = """
import asyncio, sys
from pathlib import Path
from organism.views.views import Query
from tests.log.engines import created, handled, open_durable, sent, unit, views

async def main():
    log = await open_durable(Path(sys.argv[1]))
    number = log.head

    def say(done, error):
        assert error is None, error
        print(done.last, flush=True)

    while True:
        for _ in range(1 + number % 5):
            number += 1
            each = unit(f"thr-{number % 50}", created(), sent(f"msg-{number:06}"), handled(f"msg-{number:06}"))
            each.then = say
            log.append(each)
        await log.commit(unit("thr-x", created()))
        await views(log).rows("messages", Query(limit=1))

asyncio.run(main())
"""


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(6))
async def test_g1_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    seen = 0
    for _ in range(3):
        seen = max(seen, await kill_after(tmp_path / "log", chance.randrange(1, 120)))
        log = await open_durable(tmp_path / "log")
        assert log.head >= seen
        assert (await log.verify()).damage == ()
        rows = [(await views(log).rows(model.name, Query(limit=100_000))).rows for model in MODELS]
        await log.close()
        with closing(Pysqlite().connect(str(tmp_path / "log" / "log.sqlite"))) as database:
            database.execute("DELETE FROM models")
        log = await open_durable(tmp_path / "log")
        assert [(await views(log).rows(model.name, Query(limit=100_000))).rows for model in MODELS] == rows
        await log.close()


async def kill_after(place: Path, lines: int) -> int:
    """Let a process write, kill it after so many acknowledgements; gives the last position that it told."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(place), stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": "."}
    )
    assert process.stdout is not None
    told = 0
    for _ in range(lines):
        told = int(await process.stdout.readline())
    process.kill()
    rest = await process.stdout.read()
    await process.wait()
    return max([told, *(int(line) for line in rest.split(b"\n")[:-1])])
