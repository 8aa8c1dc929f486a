"""Power cuts below the driver: a log is written, the power goes, and the next life must have what was acknowledged."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from organism.events.vocabulary import MessageSent
from organism.log.sqlite import SqliteLog
from organism.views.views import Query
from tests.log.apsw_driver import ApswDriver
from tests.log.engines import created, open_durable, sent, unit, views
from tests.log.storm import Storm


async def messages(log: SqliteLog) -> list[str]:
    """The messages of the log."""
    return [record.event.message for record in await log.read(limit=10_000) if isinstance(record.event, MessageSent)]


async def survive(storm: Storm, place: Path, chance: random.Random, cuts: int) -> None:
    """Write until the power goes, so many times. Raises ``AssertionError`` if anything acknowledged is lost."""
    acknowledged = [0]
    for _ in range(cuts):
        log = await open_durable(place, ApswDriver(storm.name))
        assert log.head >= acknowledged[-1]
        assert (await log.verify()).damage == ()
        assert (await views(log).rows("messages", Query())).total == len(await messages(log))
        await _write(log, chance, acknowledged)
        if chance.random() < 0.3:
            log.append(unit("thr-9", created()))
        await cut(log, storm, chance, place)


async def _write(log: SqliteLog, chance: random.Random, acknowledged: list[int]) -> None:
    """A few commits of a few units; notes each that was acknowledged."""
    for _ in range(chance.randrange(1, 8)):
        for number in range(chance.randrange(3)):
            log.append(unit(f"thr-{number}", created()))
        acknowledged.append(await log.commit(unit("thr-1", sent(f"msg-{log.head:04}", "x" * chance.randrange(9000)))))


async def cut(log: SqliteLog, storm: Storm, chance: random.Random, place: Path) -> None:
    """The power goes: the process dies without a word, and the disk has what it has."""
    content = {path: platter.cut(chance) for path, platter in storm.platters.items()}
    content |= {str(place / name): (place / name).read_bytes() for name in ("key", "anchor")}
    await log.close()
    storm.platters.clear()
    _lay(place, content)


def _lay(place: Path, content: dict[str, bytes]) -> None:
    """Make the directory again, with these files alone."""
    shutil.rmtree(place)
    place.mkdir(mode=0o700)
    for path, text in content.items():
        Path(path).touch(0o600)
        Path(path).write_bytes(text)
