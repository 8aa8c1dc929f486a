"""The log's tables in memory, for tests and for organisms that may forget: the same SQL, no threads and no disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from organism.log.batch import Batch
from organism.log.chain import GENESIS, RandomBytes
from organism.log.disk import Done, claim, make_tables
from organism.log.driver import Failure, in_memory, statements
from organism.log.log import ReadModel
from organism.log.place import Anchor
from organism.log.tables import Commits
from organism.log.verify import meta_mac

T = TypeVar("T")


class Memory:
    """``Disk`` for a log that is gone with its process. Everything is done at once, in the loop's thread."""

    def __init__(self, models: Sequence[ReadModel], random_bytes: RandomBytes) -> None:
        self.name = "memory"
        self.commits = Commits(models)
        self.done: Done | None = None
        self.key = random_bytes(32)
        self._connection = in_memory()
        timeline = random_bytes(16).hex()
        make_tables(self._connection)
        self._connection.execute(statements("log.sql")["begin_meta"], (timeline, meta_mac(self.key, 0, timeline)))
        begin = Anchor(0, GENESIS, 0, timeline)
        self.truth = claim(self._connection, self.key, begin, lambda _: 0, 0)
        self.head = self.truth.head
        self.commits.install(self._connection)

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(self._connection, *arguments)

    read_quickly = read_apart = write = read

    def read_now(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(self._connection, *arguments)

    def post(self, work: Callable[..., object], *arguments: Any) -> None:
        work(self._connection, *arguments)

    def commit(self, batch: Batch) -> None:
        """``done`` is called in a later iteration, as it is with a disk."""
        chained = batch.hash(self.key, self.head.hash)
        self.commits.write(self._connection, self.commits.make(self.head.epoch, batch, chained))
        self.head = Anchor(batch.last, chained, self.head.epoch, self.head.timeline)
        if self.done is not None:
            asyncio.get_running_loop().call_soon(self.done, batch, None)

    def failure(self, _error: Exception) -> Failure:
        return Failure.BROKEN

    def describe(self, error: Exception) -> str:
        return str(error)

    async def regain(self, error: Exception) -> NoReturn:
        raise error

    async def close(self) -> None:
        self._connection.close()
