"""The disposable file: read models, the index of streams, snapshots. What is wrong with it is mended by making it anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from organism.log.connect import Connector
from organism.log.driver import Connection
from organism.log.folds import read_row, with_payload
from organism.log.log import Page, Query, ReadModel, Row
from organism.log.queries import statements
from organism.log.tables import (
    definition,
    fingerprint,
    flush_definition,
    flush_statement,
    page_statement,
    table,
    total_statement,
)

SNAPSHOTS_KEPT: Final = 2


def prepare(connection: Connection, models: Sequence[ReadModel], timeline: str, head: int) -> int:
    """Make the tables fit the models and the log; gives the position that the rows have reached, 0 if they start anew."""
    sql = statements("views.sql")
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if "views_meta" in names:
        position, owner = connection.execute(sql["state"]).fetchone() or (0, "")
        made = dict(connection.execute("SELECT name, version FROM models").fetchall())
        if made == {model.name: fingerprint(model) for model in models} and owner == timeline and position <= head:
            return int(position)
    connection.execute("BEGIN IMMEDIATE")
    for name in names - {"snapshots"}:
        connection.execute(f"DROP TABLE {name}")
    if "snapshots" in names:
        connection.execute("DELETE FROM snapshots WHERE position > ?", (head,))
    for name in ("views_meta", "models", "streams", *(() if "snapshots" in names else ("snapshots",))):
        connection.execute(sql[name])
    for model in models:
        for statement in definition(model):
            connection.execute(statement)
        connection.execute("INSERT INTO models VALUES (?, ?)", (model.name, fingerprint(model)))
    connection.execute(sql["begin_state"], (timeline,))
    connection.execute("COMMIT")
    return 0


class Views:
    """Reads and writes of the disposable file over one connection, in the thread that owns it."""

    def __init__(self, connection: Connection, models: Sequence[ReadModel]) -> None:
        self.connection = connection
        self._models = {model.name: model for model in models}
        self._flush = flush_statement(models)
        for statement in flush_definition(models):
            connection.execute(statement)

    def flush(self, parameters: tuple[Any, ...]) -> None:
        """Write rows, streams and position in one transaction."""
        self.connection.execute(self._flush, parameters)

    def page(self, model: str, query: Query) -> Page:
        """A page of rows, joined by the database."""
        sql, values = page_statement(self._models[model], query)
        total_sql, total_values = total_statement(self._models[model], query)
        self.connection.execute("BEGIN")
        try:
            rows, count = self.connection.execute(sql, values).fetchone() or (b"[]", 0)
            (total,) = self.connection.execute(total_sql, total_values).fetchone() or (0,)
        finally:
            self.connection.execute("COMMIT")
        return Page(bytes(rows), count, total)

    def greatest(self) -> dict[str, str]:
        """The greatest key of each read model; under the empty name the greatest stream."""
        tables = {name: f"SELECT max(key) FROM {table(name)}" for name in self._models}
        tables[""] = "SELECT max(stream) FROM streams"
        return {name: (self.connection.execute(sql).fetchone() or ("",))[0] or "" for name, sql in tables.items()}

    def payload(self, position: int) -> bytes | None:
        """The content JSON of the event at ``position``; None if it was erased."""
        row = self.connection.execute("SELECT json FROM content WHERE position = ? AND length(salt) > 0", (position,))
        found = row.fetchone()
        return None if found is None else bytes(found[0])

    def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep it, and the one before it."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(
            "REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (name, position, sha256(body).digest(), body)
        )
        self.connection.execute(
            "DELETE FROM snapshots WHERE name = ?1 AND position NOT IN "
            "(SELECT position FROM snapshots WHERE name = ?1 ORDER BY position DESC LIMIT ?2)",
            (name, SNAPSHOTS_KEPT),
        )
        self.connection.execute("COMMIT")

    def load_snapshot(self, name: str, head: int) -> tuple[int, bytes] | None:
        """The newest whole one that is not ahead of ``head``."""
        rows = self.connection.execute(
            "SELECT position, digest, body FROM snapshots WHERE name = ? AND position <= ? ORDER BY position DESC",
            (name, head),
        )
        for position, sealed, body in rows.fetchall():
            if sha256(body).digest() == sealed:
                return position, body
        return None


def load_row(connection: Connection, model: str, key: str) -> Row | None:
    """One row with its private fields."""
    found = connection.execute(f"SELECT public, private FROM {table(model)} WHERE key = ?", (key,)).fetchone()  # noqa: S608
    return None if found is None else read_row(*found)
