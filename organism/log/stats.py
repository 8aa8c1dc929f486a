"""``organism log stats`` and ``doctor``: what a log's directory holds; reads only, also beside a running server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from organism.errors import LogDamaged
from organism.log.connect import looking
from organism.log.driver import Connection, Driver, Pysqlite
from organism.log.place import Place
from organism.log.queries import statements
from organism.log.verify import BEFORE_ALL, rows_after


@dataclass(slots=True)
class Stats:
    """What a log holds. Times are UTC in microseconds since 1970, 0 if there is no event."""

    position: int = 0
    units: int = 0
    commits: int = 0
    first_at: int = 0
    last_at: int = 0
    events: Counter[str] = field(default_factory=Counter)
    threads: int = 0
    file_bytes: dict[str, int] = field(default_factory=dict)

    def add(self, body: bytes, *, ends_commit: bool) -> None:
        """Count one more unit. Raises ``LogDamaged`` if it is none."""
        try:
            first, _, at, _, _, _, _, listed = orjson.loads(body)
        except (ValueError, TypeError) as error:
            raise LogDamaged(f"The unit after position {self.position} is damaged: {error}.") from error
        self.units += 1
        self.commits += ends_commit
        self.position = first + len(listed) - 1
        self.first_at = self.first_at or at
        self.last_at = at
        self.events.update(fields[0] for fields in listed)


def count(directory: Path, driver: Driver | None = None) -> Stats:
    """Count the log in ``directory``. Raises ``NotFound`` if there is none, ``LogDamaged`` if it cannot be read."""
    driver = driver or Pysqlite()
    stats = Stats()
    with _reading(directory, driver, stats) as connection:
        for rows in rows_after(connection, BEFORE_ALL):
            for _, _, body, chained in rows:
                stats.add(body, ends_commit=chained is not None)
    stats.file_bytes = {path.name: path.stat().st_size for path in sorted(directory.iterdir())}
    stats.threads = stats.events["thread_created"]
    return stats


def last_at(directory: Path, driver: Driver | None = None) -> int:
    """When the last event of the log in ``directory`` was, 0 if there is none. Raises as ``count`` does."""
    driver = driver or Pysqlite()
    last = Stats()
    with _reading(directory, driver, last) as connection:
        for _, _, body, _ in connection.execute(statements("log.sql")["last_unit"]).fetchall():
            last.add(body, ends_commit=True)
    return last.last_at


@contextmanager
def _reading(directory: Path, driver: Driver, stats: Stats) -> Iterator[Connection]:
    place = Place(directory)
    try:
        with looking(place, driver) as connection:
            yield connection
    except driver.errors as error:
        raise LogDamaged(f"{place.log.name} cannot be read after position {stats.position}: {error}.") from error
