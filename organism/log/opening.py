"""Opening a log: check what was acknowledged, fence off whoever wrote before. Nothing damaged is overwritten."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import orjson

from organism.errors import Fenced, LogDamaged
from organism.log.chain import GENESIS, RandomBytes
from organism.log.connect import Connector
from organism.log.driver import Connection, Driver, Pysqlite
from organism.log.encode import REMEDY
from organism.log.place import Anchor
from organism.log.queries import statements
from organism.log.upcast import Upcaster
from organism.log.verify import Walk, walk

SHOWN_DAMAGES: Final = 3
LAYOUT: Final = 2
"""The layout of the tables in schema.sql."""
_SQL: Final = statements("log.sql")


class Clock(Protocol):
    """The log's time."""

    def now_us(self) -> int:
        """UTC in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is given to a log but its models: where its key lies, where chance comes from, what it stands on.

    A commit that is under way for ``stalled_after_s`` has stalled.
    """

    key_path: Path | None = None
    random_bytes: RandomBytes = os.urandom
    driver: Driver = field(default_factory=Pysqlite)
    upcaster: Upcaster = field(default_factory=Upcaster)
    stalled_after_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Truth:
    """What a fresh connection found: the last whole commit, and the right to write after it."""

    position: int
    hash: bytes
    at: int
    timeline: str
    epoch: int


def make_log(connector: Connector, options: Options) -> None:
    """Make a new log: first anchor and key, then the tables at once. One that was begun and not made is gone on with.

    The anchor comes first: a key beside it is this log's own, any other is refused.
    """
    place = connector.place
    place.make_private(place.log)
    with closing(connector.to_file(place.log)) as connection:
        if connection.execute(_SQL["is_made"]).fetchone() != (0,):
            return
        if not place.anchor_path.exists():
            place.refuse_key()
            place.make_anchor(Anchor(0, GENESIS))
        elif anchored := place.read_anchor().position:
            raise LogDamaged(f"{place.log} is empty, and its anchor knows it up to position {anchored}. {REMEDY}")
        if not place.key_path.exists():
            place.make_key(options.random_bytes)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements("schema.sql").values():
            connection.execute(statement)
        connection.execute(_SQL["begin_meta"], (options.random_bytes(16).hex(),))
        connection.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who wants to write: it holds the key, and verifies the tail before it takes the log.

    ``epoch`` is the one under which it wrote before, 0 for a new process.
    """

    connector: Connector
    key: bytes
    anchor: Anchor
    epoch: int = 0

    def claim(self, connection: Connection, since: int) -> Truth:
        """Verify what lies after ``since``, then raise the epoch: from now on only this connection's commits are taken.

        Raises ``LogDamaged`` with the positions, ``Fenced`` if somebody else took the log meanwhile.
        """
        connection.execute("BEGIN IMMEDIATE")  # a life that was killed may have left a commit under way
        with ExitStack() as stack:
            stack.callback(self._roll_back, connection)
            truth = self._take(connection, self._verified(connection, since))
            connection.execute("COMMIT")
            stack.pop_all()
        return truth

    def _roll_back(self, connection: Connection) -> None:
        with suppress(*self.connector.driver.errors):  # some failures have done it
            connection.execute("ROLLBACK")

    def _verified(self, connection: Connection, since: int) -> Walk:
        (layout,) = connection.execute("PRAGMA user_version").fetchone() or (0,)
        if layout != LAYOUT:
            remedy = "run the newer program that wrote it" if layout > LAYOUT else "begin with a new data directory"
            raise LogDamaged(f"{self.connector.place.log} has layout {layout}, this program knows {LAYOUT}: {remedy}.")
        state = walk(connection, self.key, since, self.anchor)
        if state.damage:
            raise LogDamaged(_damage_text(state.damage))
        return state

    def _take(self, connection: Connection, state: Walk) -> Truth:
        epoch, timeline = connection.execute(_SQL["epoch"]).fetchone() or (0, "")
        if self.epoch not in (0, epoch):
            raise Fenced
        connection.execute(_SQL["raise_epoch"])
        last = connection.execute(_SQL["last_unit"]).fetchone()
        at = 0 if last is None else orjson.loads(last[2])[2]
        return Truth(state.head, state.hash, at, timeline, epoch + 1)


def doubt_rows(connection: Connection) -> None:
    """Have the next start make the rows of all read models again."""
    connection.execute(_SQL["doubt_models"])


def _damage_text(damage: list[str]) -> str:
    shown = "; ".join(damage[:SHOWN_DAMAGES])
    more = f"; and {len(damage) - SHOWN_DAMAGES} more" if len(damage) > SHOWN_DAMAGES else ""
    return f"{shown}{more}. {REMEDY} Nothing was overwritten."
