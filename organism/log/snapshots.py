"""Snapshots: folds as they stood at a position. They save time and can be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from organism.log.driver import Connection
from organism.log.queries import statements

SNAPSHOTS_KEPT: Final = 2
_SQL: Final = statements("log.sql")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A fold as it stood at a position."""

    name: str
    position: int
    body: bytes


def save_snapshot(connection: Connection, snapshot: Snapshot, *, keeps_all: bool = False) -> None:
    """Keep it, and of its name the one before it or all."""
    values = (snapshot.name, snapshot.position, sha256(snapshot.body).digest(), snapshot.body)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_SQL["save_snapshot"], values)
        if not keeps_all:
            connection.execute(_SQL["drop_snapshots"], (snapshot.name, snapshot.name, SNAPSHOTS_KEPT))
    finally:
        connection.execute("COMMIT")


def load_snapshot(connection: Connection, name: str, head: int) -> Snapshot | None:
    """The newest whole one that is not ahead of ``head``."""
    for position, sealed, body in connection.execute(_SQL["load_snapshots"], (name, head)):
        if sha256(body).digest() == sealed:
            return Snapshot(name, position, body)
    return None


def newest_snapshot(connection: Connection) -> int:
    """The position of the newest snapshot, 0 if there is none; what lies before it was verified once."""
    row = connection.execute(_SQL["newest_snapshot"]).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
