"""Snapshots: the state of a fold at a position. They save time and can be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from organism.events.entity import Entity
from organism.log.encode import mac
from organism.sqlite.driver import Connection, statements

SNAPSHOTS_KEPT: Final = 2
_SQL: Final = statements("log", "log.sql")
CHECKPOINT: Final = "live"  # The name of snapshots of the live rows; a rebuild deletes them


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a fold at a position."""

    name: str
    position: int
    body: bytes


class Snapshots(Entity):
    """The snapshots of one log. A start trusts them as it does the log, so each carries a MAC under the log's key."""

    _key: bytes
    _timeline: str

    def save(self, connection: Connection, snapshot: Snapshot, *, keeps_all: bool = False) -> None:
        """Save it, and delete all of its name but the last two, unless it ``keeps_all``."""
        values = (snapshot.name, snapshot.position, self._mac(snapshot), snapshot.body)
        connection.execute(_SQL["save_snapshot"], values)
        if not keeps_all:
            connection.execute(_SQL["drop_snapshots"], (snapshot.name, snapshot.name, SNAPSHOTS_KEPT))

    def load(self, connection: Connection, name: str, head: int) -> Snapshot | None:
        """The newest snapshot up to ``head`` whose MAC is right."""
        while row := connection.execute(_SQL["load_snapshot"], (name, head)).fetchone():
            position, sealed, body = row
            snapshot = Snapshot(name, position, body)
            if self._mac(snapshot) == sealed:
                return snapshot
            head = position - 1
        return None

    def newest(self, connection: Connection) -> int:
        """The position of the newest snapshot whose MAC is right, else 0; what lies before it was verified once."""
        for name, position, sealed, body in connection.execute(_SQL["newest_snapshots"]):
            if self._mac(Snapshot(name, position, body)) == sealed:
                return int(position)
        return 0

    def _mac(self, snapshot: Snapshot) -> bytes:
        body = sha256(snapshot.body).hexdigest()
        return mac(self._key, "snapshot", snapshot.name, snapshot.position, self._timeline, body)
