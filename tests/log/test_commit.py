"""Group commit, and how little of it each unit costs."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from organism.log.batch import GENERATION_STREAMS, Heads
from organism.log.disk import USED_WAL_BYTES
from organism.log.sqlite import EARLY_UNITS, SqliteLog
from tests.log.engines import anchor, created, open_durable, sent, unit
from tests.log.faulty import FaultyDriver, Plan


async def test_what_is_appended_in_one_iteration_goes_in_one_commit(tmp_path: Path) -> None:
    plan = Plan()
    log = await open_durable(tmp_path / "log", FaultyDriver(plan))
    for number in range(20):
        log.append(unit(f"thr-{number}", created()))
    assert plan.commits == 0
    await log.commit(unit("thr-x", created()))
    assert plan.commits == 1
    assert (await log.verify()).commits == 1
    await log.close()


async def test_what_is_appended_while_a_commit_is_under_way_goes_in_the_next_one(tmp_path: Path) -> None:
    plan = Plan()
    log = await open_durable(tmp_path / "log", FaultyDriver(plan))

    def again(left: int) -> None:
        if left:
            for number in range(10):
                log.append(unit(f"thr-{left}-{number}", created()))
            last = unit(f"thr-{left}", created())
            last.then = lambda *_: again(left - 1)
            log.append(last)

    again(5)
    await log.commit(unit("thr-x", created()))
    await log.close()
    assert plan.commits == 5
    assert log.head == 56


def append_each_iteration(log: SqliteLog, left: int) -> None:
    """Append that many units, one in each iteration of the loop."""
    log.append(unit(f"thr-{left}", created()))
    if left > 1:
        asyncio.get_running_loop().call_soon(append_each_iteration, log, left - 1)


async def test_a_commit_waits_while_each_iteration_brings_more(tmp_path: Path) -> None:
    plan = Plan()
    log = await open_durable(tmp_path / "log", FaultyDriver(plan))
    append_each_iteration(log, EARLY_UNITS - 1)
    await log.close()
    assert (plan.commits, log.head) == (1, EARLY_UNITS - 1)


async def test_a_commit_of_many_units_waits_for_no_more(tmp_path: Path) -> None:
    plan = Plan()
    log = await open_durable(tmp_path / "log", FaultyDriver(plan))
    append_each_iteration(log, 2 * EARLY_UNITS)
    await log.close()
    assert plan.commits > 1
    assert log.head == 2 * EARLY_UNITS


async def test_a_large_commit_is_whole(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    units = [unit(f"thr-{number}", created(), sent(f"msg-{number:04}", "ü" * 5000)) for number in range(3000)]
    for each in units:
        log.append(each)
    assert await log.commit(unit("thr-x", created())) == 6001
    found = await log.verify()
    assert (found.position, found.damage) == (6001, ())
    assert found.commits <= 3
    await log.close()


def test_heads_forget_what_is_committed_and_keep_what_is_not() -> None:
    asked: list[str] = []

    def look_up(stream: str) -> int:
        asked.append(stream)
        return 7

    heads = Heads(look_up)
    heads.greatest, heads.committed = "z", 5
    heads.put("committed", 5)
    heads.put("fresh", 6)
    for number in range(2 * GENERATION_STREAMS + 2):
        heads.put(f"filler-{number}", 1)
    assert heads.of("fresh") == 6
    assert heads.of("committed") == 7
    assert heads.of("zz") == 0
    assert asked == ["committed"]


async def test_a_wal_with_room_behind_its_end_is_read_to_its_end(tmp_path: Path) -> None:
    place, copy = tmp_path / "log", tmp_path / "copy"
    log = await open_durable(place)
    while (place / "log.sqlite-wal").stat().st_size < USED_WAL_BYTES * 8:
        await log.commit(unit("thr-1", sent(f"msg-{log.head:04}", "x" * 20_000)))
    assert (place / "log.sqlite-wal").read_bytes().endswith(bytes(100_000))
    last = await log.commit(unit("thr-1", sent("msg-last")))
    anchor(log)
    shutil.copytree(place, copy)  # what a kill would leave
    await log.close()
    log = await open_durable(copy)
    assert log.head == last
    assert (await log.verify()).damage == ()
    await log.close()
