"""The disposable file: read models, the index of streams, snapshots. What is wrong with it is made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeVar

from organism.errors import LogUnavailable
from organism.log.cache import read_row
from organism.log.connect import Connector
from organism.log.driver import Connection, Failure, Parameters
from organism.log.log import Page, ReadModel, Row
from organism.log.opening import Truth
from organism.log.pages import Statement
from organism.log.queries import statements
from organism.log.tables import (
    definition,
    fingerprint,
    flush_definition,
    flush_statement,
    of_model,
)

SNAPSHOTS_KEPT: Final = 2
FULL_WAL_BYTES: Final = 32 << 20
"""So much is written before the WAL is moved into the database."""
WAL_FACTOR: Final = 3
"""What is flushed costs the WAL about so many times its own bytes: pages are written whole, and indexes have theirs."""
_SQL: Final = statements("views.sql")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A fold as it stood at a position of a timeline."""

    name: str
    position: int
    timeline: str
    body: bytes


def prepare(connector: Connector, models: Sequence[ReadModel], truth: Truth) -> int:
    """Make the file fit the models and the log; gives the position that its rows have reached, 0 if they start anew.

    A damaged file is thrown away: nothing is in it that the log does not have.
    """
    try:
        return _prepare(connector, models, truth)
    except connector.driver.errors as error:
        if connector.driver.failure(error) is not Failure.DAMAGED:
            raise
    connector.place.drop_views()
    return _prepare(connector, models, truth)


def _prepare(connector: Connector, models: Sequence[ReadModel], truth: Truth) -> int:
    connector.place.make_private(connector.place.views)
    with closing(connector.to_file(connector.place.views)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        position = _reached(connection, models, truth)
        if position is None:
            _make_anew(connection, models, truth)
        else:
            connection.execute(_SQL["claim"], (truth.epoch,))
        connection.execute("COMMIT")
        return position or 0


def _tables(connection: Connection) -> dict[str, str]:
    return dict(connection.execute(_SQL["tables"]).fetchall())


def _reached(connection: Connection, models: Sequence[ReadModel], truth: Truth) -> int | None:
    """How far the rows have come; None if they are of another log or were made by other models."""
    if "views_meta" not in _tables(connection):
        return None
    position, timeline = connection.execute(_SQL["state"]).fetchone() or (0, "")
    made = dict(connection.execute(_SQL["made_models"]).fetchall())
    fits = made == {model.name: fingerprint(model) for model in models}
    return position if fits and timeline == truth.timeline and position <= truth.position else None


def _make_anew(connection: Connection, models: Sequence[ReadModel], truth: Truth) -> None:
    """Empty tables; snapshots stay, since they do not depend on the models."""
    old = _tables(connection)
    for name in old.keys() - {"snapshots"}:
        connection.execute(_SQL["drop"].replace("$type", old[name]).replace("$table", name))
    for name in ("views_meta", "models", "streams"):
        connection.execute(_SQL[name])
    if "snapshots" not in old:
        connection.execute(_SQL["snapshots"])
    for model in models:
        for statement in definition(model):
            connection.execute(statement)
        connection.execute(_SQL["note_model"], (model.name, fingerprint(model)))
    connection.execute(_SQL["begin_state"], (truth.timeline, truth.epoch))


class Views:
    """Reads and writes of the disposable file over one connection, in the thread that owns it.

    ``schema`` is the file's name in that connection; ``epoch`` is the one under which it writes.
    """

    def __init__(self, models: Sequence[ReadModel], schema: str) -> None:
        self._schema = schema
        self.epoch = 0
        self._wal_bytes = 0
        self._connection: Connection | None = None
        self._models = {model.name: model for model in models}
        self._flush = flush_statement(models)

    @property
    def connection(self) -> Connection:
        """The connection; raises ``LogUnavailable`` if there is none just now."""
        if self._connection is None:
            raise LogUnavailable
        return self._connection

    def use(self, connection: Connection) -> None:
        """Work over this connection from now on."""
        for statement in flush_definition(list(self._models.values())):
            connection.execute(statement)
        self._connection = connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def flush(self, parameters: Parameters) -> None:
        """Write rows, streams and position in one transaction."""
        self.connection.execute(self._flush, (self.epoch, *parameters))
        self._wal_bytes += WAL_FACTOR * sum(len(texts) for texts in parameters[1:])

    def keep(self, parameters: Parameters) -> None:
        """``flush``, then ``tidy``."""
        self.flush(parameters)
        self.tidy()

    def tidy(self) -> None:
        """Now and then: move the WAL into the database."""
        if self._wal_bytes > FULL_WAL_BYTES:
            self._wal_bytes = 0
            self.connection.execute(f"PRAGMA {self._schema}.wal_checkpoint(PASSIVE)").fetchall()

    def position(self) -> int:
        """How far the rows in the file have come."""
        found = self.connection.execute(_SQL["state"]).fetchone()
        return int(found[0]) if found else 0

    def over(self, owed: Parameters, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(*arguments)`` as if ``owed`` were flushed, and write nothing: so reads go on on a full disk."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            self.connection.execute(self._flush, (self.epoch, *owed))
            return work(*arguments)
        finally:
            self.connection.execute("ROLLBACK")

    def greatest(self) -> dict[str, str]:
        """The greatest key of each read model; under the empty name the greatest stream."""
        found = {name: self.connection.execute(of_model("greatest", name)).fetchone() for name in self._models}
        found[""] = self.connection.execute(_SQL["greatest_stream"]).fetchone()
        return {name: (row[0] if row else None) or "" for name, row in found.items()}

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it, and the one before it."""
        sealed = sha256(snapshot.body).digest()
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            values = (snapshot.name, snapshot.position, snapshot.timeline, sealed, snapshot.body)
            self.connection.execute(_SQL["save_snapshot"], values)
            self.connection.execute(_SQL["drop_snapshots"], (snapshot.name, snapshot.name, SNAPSHOTS_KEPT))
        finally:
            self.connection.execute("COMMIT")

    def load_snapshot(self, name: str, timeline: str, head: int) -> Snapshot | None:
        """The newest whole one of this timeline that is not ahead of ``head``."""
        rows = self.connection.execute(_SQL["load_snapshots"], (name, timeline, head))
        for position, sealed, body in rows.fetchall():
            if sha256(body).digest() == sealed:
                return Snapshot(name, position, timeline, body)
        return None


def read_page(connection: Connection, statement: Statement) -> Page:
    """A page of rows, joined by the database."""
    joined, count, total = connection.execute(*statement).fetchone() or (b"[]", 0, 0)
    return Page(joined, count, total)


def payload_at(connection: Connection, position: int) -> bytes | None:
    """The content JSON of the event at ``position``; None if it was erased."""
    found = connection.execute(_SQL["payload"], (position,)).fetchone()
    return None if found is None else bytes(found[0])


def load_row(connection: Connection, model: str, key: str) -> Row | None:
    """One row with its private fields."""
    found = connection.execute(of_model("row", model), (key,)).fetchone()
    return None if found is None else read_row(*found)


def newest_snapshot(connector: Connector) -> int:
    """The position of the newest snapshot, as far as the file can be read; what lies before it was verified once."""
    try:
        with closing(connector.to_file(connector.place.views)) as connection:
            row = connection.execute(_SQL["newest_snapshot"]).fetchone()
    except connector.driver.errors:
        return 0
    return 0 if row is None or row[0] is None else int(row[0])
