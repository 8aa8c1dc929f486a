"""L9 on a disk: what was erased is in no file afterwards, whatever stood in the way."""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from organism.errors import CommitUnknown
from organism.events.vocabulary import ContentErased
from organism.log.log import EventFilter
from organism.log.offline import verify_directory
from organism.log.sqlite import SqliteLog
from organism.sqlite.driver import Pysqlite
from organism.views.views import Query
from tests.log.apsw_driver import ApswDriver
from tests.log.engines import MODELS, START_US, created, open_durable, sent, turn, unit, views
from tests.log.faulty import FaultyDriver, Plan
from tests.log.power import cut
from tests.log.storm import Storm

SIZES = [20, 900, 5_000, 90_000]
"""Bytes of a text: several of them on a page, on a page and on others, on many others."""


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def log(tmp_path: Path, plan: Plan) -> AsyncIterator[SqliteLog]:
    opened = await open_durable(tmp_path / "log", FaultyDriver(plan))
    yield opened
    await opened.close()


def text_of(owner: str, number: int, size: int) -> str:
    """A text that is found again by any piece of it."""
    return f"{owner}'s text {number};" * (1 + size // 14)


def found_in(place: Path, piece: str) -> list[str]:
    """The files that hold the piece of text anywhere."""
    return sorted(path.name for path in place.iterdir() if piece.encode() in path.read_bytes())


async def fill(log: SqliteLog, owners: tuple[str, ...], count: int) -> None:
    """Texts of all sizes, those of the owners side by side."""
    for number in range(count):
        for owner in owners:
            text = text_of(owner, number, SIZES[number % len(SIZES)])
            await log.commit(unit(owner, sent(f"msg-{log.head:05}", text, owner=owner)))


async def erase(log: SqliteLog, owner: str) -> int:
    return await log.erase(owner, START_US)


@pytest.mark.parametrize("is_opened_again", [False, True])
async def test_l9_the_text_is_in_no_file_afterwards(tmp_path: Path, *, is_opened_again: bool) -> None:
    place = tmp_path / "log"
    log = await open_durable(place)
    await fill(log, ("ann", "bob", "eve"), 40)
    assert "log.sqlite-wal" in found_in(place, "bob's text")
    if is_opened_again:  # the text has left the WAL
        await log.close()
        assert found_in(place, "bob's text") == ["log.sqlite"]
        log = await open_durable(place)
    await erase(log, "bob")
    assert found_in(place, "bob's text") == []
    assert found_in(place, "ann's text") == found_in(place, "eve's text") == ["log.sqlite"]
    await fill(log, ("ann",), 10)
    await log.close()
    assert found_in(place, "bob's text") == []
    assert verify_directory(place).damage == ()


async def test_l9_rows_show_that_it_was_erased_at_every_position(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "secret")))
    before = log.head
    await log.commit(unit("thr-1", sent("msg-2", "other", owner="thr-2")))
    await erase(log, "thr-1")
    for at in (None, before, log.head):
        row = await views(log).row("messages", "msg-1", at) or b""
        assert row.endswith(b'"payload":{"erased":true}}')
        page = await views(log).rows("messages", Query(order_by="position", limit=1, at=at))
        assert page.rows == b"[" + row + b"]"
        assert (await views(log).rows("threads", Query(text="secret", at=at))).count == 0
    assert b"other" in (await views(log).row("messages", "msg-2") or b"")


async def test_l9_records_that_followers_share_lose_the_text_too(log: SqliteLog) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1", "secret")))
    _, record = await anext(log.follow(0))
    assert record.content is not None
    assert b"secret" in record.content.json
    await erase(log, "thr-1")
    assert (record.content.json, record.content.xml, record.content.erased) == (b"", b"", True)


async def test_l9_an_erasure_waits_for_who_reads_the_log_beside_it_and_holds_up_nobody(
    log: SqliteLog, tmp_path: Path
) -> None:
    place = tmp_path / "log"
    await fill(log, ("ann", "bob"), 3)
    reader = Pysqlite().connect(str(place / "log.sqlite"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM units").fetchall()
    erasing = asyncio.create_task(erase(log, "bob"))
    while log.head < 7:
        await turn()
    await log.commit(unit("thr-1", created()))
    assert await log.content(2) is None
    assert not erasing.done()
    assert found_in(place, "bob's text") != []
    reader.execute("COMMIT")
    reader.close()
    assert await erasing == 7
    assert found_in(place, "bob's text") == []


async def test_l9_a_log_that_closes_in_between_says_that_it_is_unknown_and_the_text_is_gone(
    tmp_path: Path, plan: Plan
) -> None:
    log = await open_durable(tmp_path / "log", FaultyDriver(plan))
    await fill(log, ("bob",), 4)
    plan.busy_moves = 1_000
    erasing = asyncio.create_task(erase(log, "bob"))
    while log.head < 5:
        await turn()
    await log.close()
    with pytest.raises(CommitUnknown, match="closed"):
        await erasing
    assert found_in(tmp_path / "log", "bob's text") == []


@pytest.mark.parametrize("code", ["SQLITE_FULL", "SQLITE_IOERR_FSYNC"])
async def test_l9_an_erasure_whose_commit_was_written_and_not_acknowledged_leaves_no_text(
    log: SqliteLog, plan: Plan, tmp_path: Path, code: str
) -> None:
    await fill(log, ("bob",), 4)
    back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    log.on_lost = back.set_result
    plan.fail_commits, plan.is_written_first = {5: code}, True
    with pytest.raises(CommitUnknown):
        await erase(log, "bob")
    assert await back == 5
    assert found_in(tmp_path / "log", "bob's text") == []
    assert (await log.verify()).damage == ()


async def test_l9_a_kill_between_the_commit_and_its_end_leaves_no_text_once_the_log_is_opened(
    log: SqliteLog, plan: Plan, tmp_path: Path
) -> None:
    place, copy = tmp_path / "log", tmp_path / "copy"
    await fill(log, ("ann", "bob"), 8)
    plan.busy_moves = 1_000
    erasing = asyncio.create_task(erase(log, "bob"))
    while log.head < 17:
        await turn()
    shutil.copytree(place, copy)  # what a kill would leave
    assert found_in(copy, "bob's text") == ["log.sqlite-wal"]
    plan.busy_moves = 0
    await erasing
    again = await open_durable(copy)
    assert found_in(copy, "bob's text") == []
    assert [await again.content(at) for at in (2, 16)] == [None, None]
    assert (await again.verify()).damage == ()
    await again.close()


ERASER = """
import asyncio, sys
from pathlib import Path
from tests.log.engines import open_durable, sent, unit
from tests.log.test_erasing import erase, fill

async def main():
    log = await open_durable(Path(sys.argv[1]))
    for number in range(log.head, log.head + 1_000):
        await fill(log, (f"own{number}", "ann"), 2)
        print(f"own{number} is there", flush=True)
        await erase(log, f"own{number}")
        print(f"own{number} is gone", flush=True)

asyncio.run(main())
"""


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(4))
async def test_l9_a_kill_at_any_instant_leaves_an_erasure_whole_or_none(tmp_path: Path, seed: int) -> None:
    place, chance, gone = tmp_path / "log", random.Random(seed), set()
    for _ in range(3):
        gone |= await killed_after(place, chance.randrange(1, 40))
        log = await open_durable(place)
        records = await log.read(0, None, EventFilter(content=True), 100_000)
        erased = {record.event.owner for record in records if isinstance(record.event, ContentErased)}
        assert gone <= erased
        for record in records:
            if record.content is not None:
                assert record.content.erased is (record.content.owner in erased)
        assert [owner for owner in erased if found_in(place, f"{owner}'s text")] == []
        assert (await log.verify()).damage == ()
        await log.close()


async def killed_after(place: Path, lines: int) -> set[str]:
    """Let a process write and erase, kill it after so many lines; gives the owners that it said are gone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ERASER, str(place), stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": "."}
    )
    assert process.stdout is not None
    said = [await process.stdout.readline() for _ in range(lines)]
    process.kill()
    said += (await process.stdout.read()).splitlines()
    await process.wait()
    return {line.decode().split()[0] for line in said if line.strip().endswith(b"gone")}


@pytest.fixture
def storm(request: pytest.FixtureRequest) -> Iterator[Storm]:
    storm = Storm(f"storm-{request.node.name}")
    yield storm
    storm.unregister()


@pytest.mark.parametrize("seed", range(8))
async def test_l9_a_power_cut_leaves_what_was_erased_erased(storm: Storm, tmp_path: Path, seed: int) -> None:
    place, chance = tmp_path / "log", random.Random(seed)
    for life in range(3):
        log = await open_durable(place, ApswDriver(storm.name))
        begin = log.head
        await fill(log, (f"own{life}", "ann"), 4)
        await erase(log, f"own{life}")
        if chance.random() < 0.5:
            await log.commit(unit("thr-1", created()))
        await cut(log, storm, chance, place)
        log = await open_durable(place, ApswDriver(storm.name))
        assert [await log.content(begin + at) for at in (1, 3, 5, 7)] == [None] * 4
        assert [
            name for name, platter in storm.platters.items() if f"own{life}'s text".encode() in platter.synced
        ] == []
        assert (await log.verify()).damage == ()
        assert (await views(log).rows(MODELS[0].name, Query())).total == 8 * (life + 1)
        await log.close()


async def test_l9_a_copy_that_a_killed_rebuild_left_is_gone_once_the_log_is_opened(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    await fill(log, ("bob",), 4)
    await log.close()
    shutil.copy(tmp_path / "log" / "log.sqlite", tmp_path / "log" / "log.sqlite.new")
    log = await open_durable(tmp_path / "log")
    await erase(log, "bob")
    assert found_in(tmp_path / "log", "bob's text") == []
    await log.close()
