"""What a durable log is put together from, opened and closed in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from organism.log.batch import Touched
from organism.log.connect import Connector
from organism.log.crew import Crew
from organism.log.disk import Disk
from organism.log.driver import Connection
from organism.log.encode import decode, heads_of
from organism.log.folds import Folds
from organism.log.heads import Heads
from organism.log.log import ReadModel
from organism.log.opening import Claimant, Clock, Options, Truth, make_log
from organism.log.place import Place
from organism.log.rows import Rows
from organism.log.units import Units
from organism.log.upcast import Upcaster
from organism.log.views import load_row, newest_snapshot


@dataclass(frozen=True, slots=True)
class Parts:
    """The open parts of a log. ``stack`` lets them go in the reverse order of their opening."""

    options: Options
    truth: Truth
    crew: Crew
    disk: Disk
    rows: Rows
    stack: AsyncExitStack


async def open_parts(directory: Path, models: Sequence[ReadModel], clock: Clock, options: Options) -> Parts:
    """Open everything, or nothing."""
    place = Place(directory, options.key_path)
    connector = Connector(options.driver, place)
    async with AsyncExitStack() as stack:
        stack.callback(place.release)
        place.hold(clock.now_us)
        crew = Crew(connector, options, models)
        stack.push_async_callback(crew.close)
        await crew.writer.run(make_log, connector, options)
        place.make_private(place.views)
        since = await crew.writer.run(newest_snapshot, connector)
        claimant = Claimant(connector, place.read_key(), place.read_anchor())
        truth, position = await crew.begin(partial(claimant.claim, since=since))
        rows = Rows(
            crew,
            Folds(models, partial(crew.near, load_row), position),
            Heads(partial(crew.near, _head_of, options)),
        )
        await _greatest(crew, rows, position)
        await catch_up(crew, rows, truth.position, options.upcaster)
        disk = Disk(crew, connector, claimant.key, truth)
        return Parts(options, truth, crew, disk, rows, stack.pop_all())


def _head_of(connection: Connection, options: Options, stream: str) -> int:
    units = Units(options.upcaster)
    units.use(connection)
    return units.head_of(stream)


async def catch_up(crew: Crew, rows: Rows, head: int, upcaster: Upcaster) -> None:
    """Fold what the rows do not have yet: the last moments before a stop, or everything after they were deleted."""
    if not rows.folds.is_whole:
        return
    rows.folds.settle()
    known = rows.folds.position
    begin = await crew.reader.run(crew.units.begin_of, known + 1) - 1
    while known < head and (portion := await crew.reader.run(crew.units.raw, begin, head)):
        begin = portion[-1][0]
        streams: list[Touched] = []
        for first, body in portion:
            events = decode(orjson.loads(body), upcaster)
            rows.folds.owe([event for event in events if event.position > known])
            heads = heads_of(events)
            rows.heads.update(heads)
            streams += [(stream, first, last) for stream, last in heads.items()]
        rows.owe(streams)
        await rows.settle()
    await rows.flushed()


async def _greatest(crew: Crew, rows: Rows, head: int) -> None:
    """Tell the caches which keys were never written, so that they need not look."""
    greatest = await crew.keeper.run(crew.views.greatest)
    rows.heads.greatest, rows.heads.indexed = greatest.pop(""), head
    for name, key in greatest.items():
        rows.folds.caches[name].greatest = key
