"""What a durable log is put together from, opened and closed in the right order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from organism.log.commits import Commits
from organism.log.connect import Connector
from organism.log.driver import Connection
from organism.log.encode import decode, streams_of
from organism.log.folds import Folds
from organism.log.heads import Heads
from organism.log.log import ReadModel, Verification
from organism.log.opening import Clock, Options, Truth, claim, make_log
from organism.log.place import Anchor, Place
from organism.log.rows import Rows
from organism.log.units import Units
from organism.log.verify import verify
from organism.log.views import Views, load_row, prepare
from organism.log.worker import Worker

Near = Callable[..., Any]
"""``near(work, *arguments)`` runs ``work(connection, *arguments)`` at once, for the loop's thread."""


@dataclass(slots=True)
class Threads:
    """``writer`` commits over ``log``, ``reader`` does everything else over ``shared``; an exclusive driver has one for both."""

    writer: Worker
    reader: Worker
    log: Connection
    shared: Connection
    near: Near


@dataclass(slots=True)
class Parts:
    """The open parts of a log. ``stack`` lets them go in the reverse order of their opening."""

    connector: Connector
    options: Options
    key: bytes
    truth: Truth
    threads: Threads
    commits: Commits
    views: Views
    units: Units
    rows: Rows
    stack: AsyncExitStack

    async def verify(self, after: int, anchor: Anchor) -> Verification:
        """Verify over a connection and a thread of its own, so that nobody waits for it."""
        if self.connector.driver.exclusive:
            return await self.threads.reader.run(verify, self.threads.shared, self.key, after, anchor)
        async with AsyncExitStack() as stack:
            worker = await _worker(stack, "log-verify", self.options)
            connection = await _connection(stack, worker, self.connector.to_read)
            return await worker.run(verify, connection, self.key, after, anchor)

    async def close(self, anchor: Anchor) -> None:
        """Anchor the head on the disk and let everything go."""
        self.connector.place.write_anchor(anchor, is_synced=True)
        await self.stack.aclose()


async def open_parts(directory: Path, models: Sequence[ReadModel], clock: Clock, options: Options) -> Parts:
    """Open everything, or nothing."""
    place = Place(directory, options.key_path)
    connector = Connector(options.driver, place)
    async with AsyncExitStack() as stack:
        place.hold(clock.now_us)
        stack.callback(place.release)
        writer = await _worker(stack, "log-writer", options)
        await writer.run(make_log, connector, options)
        key = place.read_key()
        await writer.run(_make_views, connector)
        log = await _connection(stack, writer, connector.to_log)
        truth = await writer.run(claim, log, connector, key, 0)
        threads = await _threads(stack, writer, log, connector, options)
        position = await threads.reader.run(prepare, threads.shared, models, truth.timeline, truth.position)
        views = await threads.reader.run(Views, threads.shared, models)
        units = Units(threads.shared, options.upcaster)
        heads = Heads(partial(threads.near, _head_of, options))
        folds = Folds(models, partial(threads.near, load_row), position)
        rows = Rows(threads.reader, views, folds, heads)
        parts = Parts(connector, options, key, truth, threads, Commits(log), views, units, rows, stack)
        await _catch_up(parts)
        parts.stack = stack.pop_all()
    return parts


def _make_views(connector: Connector) -> None:
    connection = connector.to_file(connector.place.views)
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    finally:
        connection.close()


async def _threads(
    stack: AsyncExitStack, writer: Worker, log: Connection, connector: Connector, options: Options
) -> Threads:
    if options.driver.exclusive:
        return Threads(writer, writer, log, log, lambda work, *given: writer.wait_for(work, log, *given))
    reader = await _worker(stack, "log-reader", options)
    shared = await _connection(stack, reader, connector.to_views)
    beside = connector.to_read()
    stack.callback(beside.close)
    return Threads(writer, reader, log, shared, lambda work, *given: work(beside, *given))


async def _worker(stack: AsyncExitStack, name: str, options: Options) -> Worker:
    worker = Worker(name, options.driver.errors)
    stack.push_async_callback(worker.stop)
    return worker


async def _connection(stack: AsyncExitStack, worker: Worker, connect: Callable[[], Connection]) -> Connection:
    connection = await worker.run(connect)
    stack.push_async_callback(worker.run, connection.close)
    return connection


def _head_of(connection: Connection, options: Options, stream: str) -> int:
    return Units(connection, options.upcaster).head_of(stream)


async def _catch_up(parts: Parts) -> None:
    """Fold what the rows do not have yet: the last moments before a stop, or everything after they were deleted."""
    folds, rows = parts.rows.folds, parts.rows
    position, head = folds.position, parts.truth.position
    while position < head:
        for _, body in await parts.threads.reader.run(parts.units.raw, position, head):
            events = decode(orjson.loads(body), parts.options.upcaster)
            folds.owed += [event for event in events if event.position > position]
            rows.owe(streams_of(events))
        folds.settle()
        position = folds.position
        await rows.settle()
    greatest = await parts.threads.reader.run(parts.views.greatest)
    rows.heads.greatest, rows.heads.indexed = greatest.pop(""), head
    for name, key in greatest.items():
        folds.caches[name].greatest = key
