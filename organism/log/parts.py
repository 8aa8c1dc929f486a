"""What a durable log is put together from, opened and closed in the right order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from organism.log.connect import Connector
from organism.log.crew import Crew
from organism.log.disk import Disk
from organism.log.driver import Connection
from organism.log.heads import Heads
from organism.log.live import LiveRows, look_back
from organism.log.log import ReadModel
from organism.log.opening import Claimant, Clock, Options, Truth, make_log
from organism.log.pages import newest_version
from organism.log.place import Place
from organism.log.queries import statements
from organism.log.rebuild import are_made, greatest_keys, rebuild
from organism.log.snapshots import Snapshots
from organism.log.units import Units
from organism.log.versions import RowVersions

_log = structlog.get_logger("organism")


@dataclass(frozen=True, slots=True)
class Parts:
    """The open parts of a log. ``stack`` closes them in the reverse order of their opening."""

    options: Options
    models: Mapping[str, ReadModel]
    truth: Truth
    crew: Crew
    disk: Disk
    snapshots: Snapshots
    heads: Heads
    versions: RowVersions
    live: LiveRows
    stack: AsyncExitStack


async def open_parts(directory: Path, models: Sequence[ReadModel], clock: Clock, options: Options) -> Parts:
    """Open everything, or nothing."""
    place = Place(directory, options.key_path, options.tenant)
    connector = Connector(options.driver, place)
    async with AsyncExitStack() as stack:
        stack.callback(place.release)
        place.hold(clock.now_us)
        crew = Crew(connector, options, models)
        stack.push_async_callback(crew.close)
        await crew.writer.run(make_log, connector, options)
        key = place.read_key()
        anchor = place.read_anchor(key)
        claimant, snapshots = Claimant(connector, key, anchor), Snapshots(key, anchor.timeline)
        truth = await crew.begin(lambda connection: claimant.claim(connection, snapshots.newest))
        if not await crew.write(are_made, models):
            if truth.position:
                _log.warning("rows_made_again", log=directory.name, events=truth.position)
            await crew.writer.run(rebuild, crew.commits, truth, options.upcaster, snapshots)
        heads = Heads(partial(crew.near, _head_of, options))
        versions = RowVersions(models, partial(crew.near, newest_version))
        heads.committed = versions.committed = truth.position
        heads.greatest = await crew.write(_greatest_stream)
        for name, greatest in (await crew.write(greatest_keys, models)).items():
            versions.current[name].greatest = greatest
        live = await crew.reader.run(look_back, crew.units, snapshots, models, truth.position)
        disk = Disk(crew, connector, key, truth)
        named = {model.name: model for model in models}
        return Parts(options, named, truth, crew, disk, snapshots, heads, versions, live, stack.pop_all())


def _head_of(connection: Connection, options: Options, stream: str) -> int:
    units = Units(options.upcaster)
    units.use(connection)
    return units.head_of(stream)


def _greatest_stream(connection: Connection) -> str:
    found = connection.execute(statements("log.sql")["greatest_stream"]).fetchone()
    return (found[0] if found else None) or ""
