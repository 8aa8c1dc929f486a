"""One writer: a second server leaves at once and touches nothing; one that slept through a takeover is fenced (G10)."""

from __future__ import annotations

import asyncio
import resource
import signal
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from pysqlite3 import dbapi2

from tests.faults.lives import Life, fork, spawn
from tests.faults.stage import Stage

pytestmark = pytest.mark.faults

TRIES = 3


def spent_s() -> float:
    """The processor's time of the processes that have ended: unlike the clock's it is the same on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def files(folder: Path) -> dict[str, tuple[int, str]]:
    """Each file below the folder: when it was written, and what it holds."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


async def asleep(stage: Stage) -> Life:
    """A server that holds its directory and stands still, so that whatever changes there is somebody else's doing.

    It was not stopped in the middle of a write: SQLite's own lock would keep everybody out.
    """
    life = await stage.serve()
    (await stage.api.call("POST", "/inject", {"to": "first", "payload": {"tag": "before"}, "wait": 20})).expect(200)
    await stage.api.rows("threads")
    life.signal(signal.SIGSTOP)
    while not all(may_write(database) for database in stage.setting.data.rglob("*.sqlite")):
        life.signal(signal.SIGCONT)
        await stage.api.rows("threads")
        life.signal(signal.SIGSTOP)
    return life


def may_write(database: Path) -> bool:
    """Whether nobody is in the middle of a write."""
    with closing(dbapi2.connect(str(database), timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except dbapi2.OperationalError:
            return False
        return True


async def test_a_second_server_on_the_same_directory_exits_within_a_second_and_touches_nothing(stage: Stage) -> None:
    first = await asleep(stage)
    before = files(stage.setting.data)
    seconds: list[float] = []
    for _ in range(TRIES):
        begun = spent_s()
        second = await spawn(stage.setting)
        assert await second.end() == 1
        seconds.append(spent_s() - begun)
        assert any("held by process" in line for line in second.said), second.said
    assert files(stage.setting.data) == before
    assert 0 < min(seconds) < 1, seconds
    first.signal(signal.SIGCONT)
    (await stage.api.inject("first", {"tag": "after"})).expect(202)
    assert await first.stop() == 0


async def test_of_two_servers_that_start_at_once_one_serves(stage: Stage) -> None:
    lives = [await fork(stage.setting) for _ in range(2)]
    urls = [await life.url() for life in lives]
    assert sorted(url is None for url in urls) == [False, True]
    loser, winner = sorted(zip(urls, lives, strict=True), key=lambda pair: pair[0] is not None)
    assert await loser[1].end() == 1
    stage.api.url = str(winner[0])
    (await stage.api.inject("first", {"tag": "one"})).expect(202)
    assert await winner[1].stop() == 0


async def test_a_server_that_slept_while_another_took_its_log_writes_no_more(stage: Stage) -> None:
    """Its lock was taken away under it (a file system may lose one): then the epoch in the commit is what stops it."""
    sleeper = await asleep(stage)
    old_url = stage.api.url
    (stage.setting.data / "tenants" / "default" / "lock").unlink()
    owner = await stage.serve()
    (await stage.api.inject("first", {"tag": "the owner's"})).expect(202)
    sleeper.signal(signal.SIGCONT)
    new_url, stage.api.url = stage.api.url, old_url
    refused = await stage.api.inject("first", {"tag": "the sleeper's"})
    assert refused.json["error"]["code"] == "fenced", refused
    stage.api.url = new_url
    tags = [event["content"]["tag"] async for event in stage.api.events() if event["type"] == "message_sent"]
    assert "the sleeper's" not in tags
    assert await owner.stop() == 0
    sleeper.kill()
    await asyncio.wait_for(sleeper.end(), 10)
    assert list(stage.chain_faults()) == []
