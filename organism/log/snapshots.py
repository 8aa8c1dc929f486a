"""Folds as they stood at a position: snapshots, and the live rows that are kept by them.

Snapshots save time and can be deleted. Live rows are the few rows that nearly every event changes: all of them are in
memory, and none is written for each change. A checkpoint of them is kept now and then; as of any position they are the
checkpoint before it and a fold of the events since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import orjson

from organism.events.entity import Entity
from organism.events.record import Record
from organism.events.vocabulary import Event
from organism.log.driver import Connection, statements
from organism.log.encode import mac
from organism.log.log import EventFilter, ReadModel, Row
from organism.log.units import Span, Units
from organism.log.versions import Rows, Written, hold_whole, write

SNAPSHOTS_KEPT: Final = 2
_SQL: Final = statements("log.sql")
CHECKPOINT: Final = "live"  # The name of the checkpoints among the snapshots
CHECKPOINT_EVENTS: Final = 4096
"""From one checkpoint to the next: about so many events at most are folded to see the rows as of any position."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A fold as it stood at a position."""

    name: str
    position: int
    body: bytes


class Snapshots(Entity):
    """The snapshots of one log. A start trusts them as it trusts the log, so each carries a MAC under its key."""

    _key: bytes
    _timeline: str

    def save(self, connection: Connection, snapshot: Snapshot, *, keeps_all: bool = False) -> None:
        """Keep it, and of its name the one before it or all."""
        values = (snapshot.name, snapshot.position, self._mac(snapshot), snapshot.body)
        connection.execute(_SQL["save_snapshot"], values)
        if not keeps_all:
            connection.execute(_SQL["drop_snapshots"], (snapshot.name, snapshot.name, SNAPSHOTS_KEPT))

    def load(self, connection: Connection, name: str, head: int) -> Snapshot | None:
        """The newest one that is not ahead of ``head`` and was made under the key."""
        for position, sealed, body in connection.execute(_SQL["load_snapshots"], (name, head)):
            snapshot = Snapshot(name, position, body)
            if self._mac(snapshot) == sealed:
                return snapshot
        return None

    def newest(self, connection: Connection) -> int:
        """The position of the newest one that was made under the key, else 0; what lies before it was verified once."""
        for name, position, sealed, body in connection.execute(_SQL["newest_snapshots"]):
            if self._mac(Snapshot(name, position, body)) == sealed:
                return int(position)
        return 0

    def _mac(self, snapshot: Snapshot) -> bytes:
        body = sha256(snapshot.body).hexdigest()
        return mac(self._key, "snapshot", snapshot.name, snapshot.position, self._timeline, body)


class LiveRows:
    """The rows of all models that are live, as of ``position``."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self._models = [model for model in models if model.is_live]
        self._rows = {model.name: Rows() for model in self._models}
        self.position = 0
        self.is_whole = True

    def take(self, records: Sequence[Record[Event]]) -> None:
        """Fold the next events. Raises what a fold raises; from then on nothing is folded, and no row is shown."""
        if not self.is_whole:
            return
        self.is_whole = False
        for model in self._models:
            model.fold(self._rows[model.name], records)
        self.position = records[-1].position
        self.is_whole = True

    def rows(self, model: ReadModel) -> Iterator[tuple[str, Written]]:
        """Each row of a model, with its key."""
        hold_whole(self.is_whole)
        return ((key, write(model, row)) for key, row in self._rows[model.name].items() if row is not None)

    def row(self, model: ReadModel, key: str) -> Row | None:
        hold_whole(self.is_whole)
        row: Row | None = self._rows[model.name][key]
        return row

    def checkpoint(self) -> Snapshot:
        return Snapshot(CHECKPOINT, self.position, orjson.dumps(self._rows))

    def load(self, checkpoint: Snapshot) -> None:
        self._rows = {name: Rows(rows) for name, rows in orjson.loads(checkpoint.body).items()}
        self.position = checkpoint.position


def look_back(connection: Connection, snapshots: Snapshots, models: Sequence[ReadModel], position: int) -> LiveRows:
    """The live rows as they stood at a position of the log: the checkpoint before it, and the events since."""
    live, units = LiveRows(models), Units(connection)
    checkpoint = snapshots.load(connection, CHECKPOINT, position)
    if checkpoint is not None:
        live.load(checkpoint)
    while records := units.read(Span(live.position, position, CHECKPOINT_EVENTS), EventFilter()):
        live.take(records)
    return live
