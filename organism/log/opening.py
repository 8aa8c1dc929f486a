"""Opening a log: check what was acknowledged, fence off any earlier writer. Nothing damaged is overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import orjson

from organism.errors import Fenced, LogDamaged
from organism.log.chain import RandomBytes
from organism.log.connect import Connector
from organism.log.driver import Connection, Pysqlite, statements
from organism.log.encode import REMEDY, Upcaster
from organism.log.place import Anchor, Place
from organism.log.verify import Walk, before_last_commit, defined_wrongly, meta_mac, of_another_time, walk
from organism.model.ids import DEFAULT_TENANT

Since = Callable[[Connection], int]
"""Gives the position up to which a log was verified before."""
SHOWN_DAMAGES: Final = 3
_SQL: Final = statements("log.sql")


class Clock(Protocol):
    """The log's time."""

    def now_us(self) -> int:
        """UTC in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is given to a log but its models: where its key lies, where chance comes from, what it stands on.

    ``tenant`` is the name of the directory that the tenant's log has in a data directory; the chain is bound to it. A
    commit that is under way for ``stalled_after_s`` has stalled.
    """

    key_path: Path | None = None
    tenant: str = DEFAULT_TENANT
    random_bytes: RandomBytes = os.urandom
    driver: Pysqlite = field(default_factory=Pysqlite)
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

    @property
    def head(self) -> Anchor:
        """The same for the file outside the database."""
        return Anchor(self.position, self.hash, self.epoch, self.timeline)


def make_log(connector: Connector, options: Options) -> None:
    """Make a new log: first anchor and key, then all tables at once. One that was begun and not made is continued."""
    place = connector.place
    if place.log.exists() and _has_tables(connector):
        return
    timeline = _begin(place, options.random_bytes).timeline
    place.make_private(place.log)
    with closing(connector.to_file(place.log)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        make_tables(connection)
        connection.execute(_SQL["begin_meta"], (timeline, meta_mac(place.read_key(), 0, timeline)))
        connection.execute("COMMIT")


def make_tables(connection: Connection) -> None:
    for statement in statements("schema.sql").values():
        connection.execute(statement)


def _has_tables(connector: Connector) -> bool:
    with closing(connector.to_file(connector.place.log)) as connection:
        return connection.execute(_SQL["is_made"]).fetchone() != (0,)


def _begin(place: Place, random_bytes: RandomBytes) -> Anchor:
    """The first anchor of a log without tables. Raises ``LogDamaged`` if there was a log, or may have been one."""
    if place.anchor_path.exists():
        anchor = place.read_anchor(None)
        if anchor.epoch:
            raise LogDamaged(
                f"{place.log} is missing or empty, and its anchor knows it up to position {anchor.position}. {REMEDY}"
            )
        if place.key_path.exists():
            return place.read_anchor(place.read_key())
    elif place.key_path.exists():  # it may be all that can tell whether another log is whole
        raise LogDamaged(
            f"{place.key_path} is there and {place.log} is new: it may be the key of another log, so it is not "
            "overwritten. Put the log back that it belongs to, or move the file away, or name another: --key FILE."
        )
    return place.make_key(random_bytes)


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who wants to write: it holds the key, and verifies the tail before it takes the log.

    ``epoch`` is the one under which it wrote before, 0 for a new process.
    """

    connector: Connector
    key: bytes
    anchor: Anchor
    epoch: int = 0

    def claim(self, connection: Connection, since: Since) -> Truth:
        """Verify what lies after ``since``, then raise the epoch: from now on only this connection's commits are taken.

        Raises ``LogDamaged`` with the positions, ``Fenced`` if another process took the log meanwhile.
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

    def _verified(self, connection: Connection, since: Since) -> Walk:
        if damage := defined_wrongly(connection):
            raise LogDamaged(_damage_text(damage))
        (epoch,) = connection.execute(_SQL["epoch"]).fetchone() or (0,)
        if self.epoch not in (0, epoch):
            raise Fenced
        state = walk(connection, self.key, before_last_commit(connection, since(connection)), self.anchor)
        state.damage += of_another_time(connection, self.key, self.anchor)
        if state.damage:
            raise LogDamaged(_damage_text(state.damage))
        return state

    def _take(self, connection: Connection, state: Walk) -> Truth:
        before, timeline, _ = connection.execute(_SQL["meta"]).fetchone() or (0, "", b"")
        epoch = before + 1
        connection.execute(_SQL["raise_epoch"], (epoch, meta_mac(self.key, epoch, timeline)))
        last = connection.execute(_SQL["last_unit"]).fetchone()
        at = 0 if last is None else orjson.loads(last[2])[2]
        return Truth(state.head, state.hash, at, timeline, epoch)


def doubt_rows(connection: Connection) -> None:
    """Have the next start make the rows of all read models again."""
    connection.execute(_SQL["doubt_models"])


def _damage_text(damage: list[str]) -> str:
    shown = "; ".join(damage[:SHOWN_DAMAGES])
    more = f"; and {len(damage) - SHOWN_DAMAGES} more" if len(damage) > SHOWN_DAMAGES else ""
    return f"{shown}{more}. {REMEDY} Nothing was overwritten."
