"""G1 and G6 below the driver: power cuts lose nothing that was acknowledged, failing disks make nobody lie."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from organism.errors import CommitUnknown, LogDamaged, LogUnavailable
from organism.log.log import Query
from organism.log.sqlite import SqliteLog
from tests.log.apsw_driver import ApswDriver
from tests.log.engines import anchor, created, found_out, open_durable, sent, unit
from tests.log.storm import Storm


@pytest.fixture
def storm(request: pytest.FixtureRequest) -> Iterator[Storm]:
    storm = Storm(f"storm-{request.node.name}")
    yield storm
    storm.unregister()


async def write(log: SqliteLog, chance: random.Random, acknowledged: list[int]) -> None:
    """A few commits of a few units; notes each that was acknowledged, and stops at the first that was not."""
    for _ in range(chance.randrange(1, 8)):
        for number in range(chance.randrange(3)):
            log.append(unit(f"thr-{number}", created()))
        acknowledged.append(await log.commit(unit("thr-1", sent(f"msg-{log.head:04}", "x" * chance.randrange(9000)))))


@pytest.mark.parametrize("seed", range(12))
async def test_g1_a_power_cut_loses_nothing_that_was_acknowledged(storm: Storm, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged = [0]
    for _ in range(4):
        log = await open_durable(tmp_path / "log", ApswDriver(storm.name))
        assert log.head >= acknowledged[-1]
        assert (await log.verify()).damage == ()
        assert (await log.rows("messages", Query())).total == len(await messages(log))
        await write(log, chance, acknowledged)
        if chance.random() < 0.3:
            log.append(unit("thr-9", created()))
        await cut(log, storm, chance, tmp_path / "log")


async def test_g11_a_disk_that_lies_about_its_syncs_is_found_out(storm: Storm, tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log", ApswDriver(storm.name))
    await log.commit(unit("thr-1", created()))
    storm.is_lying = True
    for number in range(20):
        await log.commit(unit("thr-1", sent(f"msg-{number}", "x" * 9000)))
    anchor(log)
    await cut(log, storm, random.Random(1), tmp_path / "log")
    with pytest.raises(LogDamaged, match="the log ends here"):
        await open_durable(tmp_path / "log", ApswDriver(storm.name))


async def messages(log: SqliteLog) -> list[str]:
    return [event.data["message"] for event in await log.read(limit=10_000) if event.type == "message_sent"]


async def cut(log: SqliteLog, storm: Storm, chance: random.Random, place: Path) -> None:
    """The power goes: the process dies without a word, and the disk has what it has."""
    content = {path: platter.cut(chance) for path, platter in storm.platters.items()}
    content |= {str(place / name): (place / name).read_bytes() for name in ("key", "anchor")}
    await log.close()
    storm.platters.clear()
    lay(place, content)


def lay(place: Path, content: dict[str, bytes]) -> None:
    """Make the directory anew, with these files alone."""
    shutil.rmtree(place)
    place.mkdir(mode=0o700)
    for path, text in content.items():
        Path(path).touch(0o600)
        Path(path).write_bytes(text)


@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError])
@pytest.mark.parametrize("fail_at", range(1, 24, 2))
async def test_g6_a_disk_that_fails_once_makes_nobody_lie(
    storm: Storm, tmp_path: Path, fail_at: int, error: type[Exception]
) -> None:
    log = await open_durable(tmp_path / "log", ApswDriver(storm.name))
    storm.error, storm.fail_at, storm.calls = error, fail_at, 0
    acknowledged: list[str] = []
    unknown: list[str] = []
    for number in range(8):
        try:
            await log.commit(unit("thr-1", sent(f"msg-{number}", "x" * 6000)))
            acknowledged.append(f"msg-{number}")
        except (CommitUnknown, LogUnavailable) as refused:
            (unknown if isinstance(refused, CommitUnknown) else []).append(f"msg-{number}")
            await found_out(log)
    found = await messages(log)
    assert [message for message in found if message not in unknown] == acknowledged
    assert len(acknowledged) >= 7
    assert (await log.verify()).damage == ()
    await log.close()
    storm.fail_at = 0
    log = await open_durable(tmp_path / "log", ApswDriver(storm.name))
    assert await messages(log) == found
    await log.close()


async def test_g6_a_full_disk_stops_the_writers_alone_until_there_is_room(storm: Storm, tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log", ApswDriver(storm.name))
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    log.on_lost = back.set_result
    storm.error, storm.is_lasting, storm.fail_at = apsw.FullError, True, storm.calls + 1
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-2", "x" * 9000)))
    with pytest.raises(LogUnavailable):
        log.append(unit("thr-1", sent("msg-3")))
    assert await messages(log) == ["msg-1"]
    assert (await log.rows("messages", Query())).count == 1
    storm.fail_at = 0
    head = await back
    assert await log.commit(unit("thr-1", sent("msg-4"))) == head + 1
    assert (await messages(log))[0] == "msg-1"
    assert (await log.verify()).damage == ()
    await log.close()
