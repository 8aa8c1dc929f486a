"""G1 and G6 below the driver: power cuts lose nothing that was acknowledged, failing disks cause no false answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from organism.errors import CommitUnknown, LogDamaged, LogUnavailable
from organism.views.views import Query
from tests.log.apsw_driver import ApswDriver
from tests.log.engines import anchor, created, found_out, open_durable, sent, unit, views
from tests.log.power import cut, messages, survive
from tests.log.storm import Storm


@pytest.fixture
def storm(request: pytest.FixtureRequest) -> Iterator[Storm]:
    storm = Storm(f"storm-{request.node.name}")
    yield storm
    storm.unregister()


@pytest.mark.parametrize("seed", range(12))
async def test_g1_a_power_cut_loses_nothing_that_was_acknowledged(storm: Storm, tmp_path: Path, seed: int) -> None:
    await survive(storm, tmp_path / "log", random.Random(seed), cuts=4)


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
    assert (await views(log).rows("messages", Query())).count == 1
    storm.fail_at = 0
    head = await back
    assert await log.commit(unit("thr-1", sent("msg-4"))) == head + 1
    assert (await messages(log))[0] == "msg-1"
    assert (await log.verify()).damage == ()
    await log.close()
