"""Makes the rows of all read models again from the events, byte for byte as the commits wrote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from organism.events.record import Record
from organism.events.stored import decode_unit
from organism.events.vocabulary import Event
from organism.log.batch import Batch, TypeSpans
from organism.log.driver import Connection, statements
from organism.log.encode import heads_of
from organism.log.log import ReadModel
from organism.log.pages import newest_version
from organism.log.place import Anchor, Place
from organism.log.snapshots import CHECKPOINT_EVENTS, LiveRows, Snapshots
from organism.log.tables import Commits, definition, fill, fingerprint, home_of, of_model, stored, table_of
from organism.log.units import END, Units
from organism.log.verify import is_of_rows
from organism.log.versions import RowVersions

REBUILD: Final = "`organism log rebuild` has all rows made again"
ANY_KEY: Final = "\U0010ffff"  # No key is above it, so every row is looked up
_LOG: Final = statements("log.sql")


def are_made(connection: Connection, models: Sequence[ReadModel]) -> bool:
    """Whether the tables are those of these models, and were filled."""
    made = dict(connection.execute(_LOG["made_models"]).fetchall())
    wanted = {text.rstrip() for model in stored(models) for text in definition(model)}
    there = {
        text
        for kind, _, table, text in connection.execute(_LOG["defined"]).fetchall()
        if text is not None and is_of_rows(kind, table)
    }
    return made == {model.name: fingerprint(model) for model in models} and there == wanted


def unknown_tables(connection: Connection, models: Sequence[ReadModel]) -> list[str]:
    """Tables and views named like those of rows that are of none of these models: a rebuild drops them."""
    known = {name for model in stored(models) for name in (table_of(model.name), home_of(model))}
    return sorted(name for name, _ in _row_tables(connection) if name not in known)


def _row_tables(connection: Connection) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in connection.execute(_LOG["tables"]).fetchall() if is_of_rows(kind, name)]


def rebuild(connection: Connection, commits: Commits, head: Anchor, snapshots: Snapshots) -> None:
    """Drop all rows and make them again; the models are noted last, so a broken rebuild begins again."""
    models = commits.models
    connection.execute("BEGIN IMMEDIATE")
    for statement in ("doubt_models", "forget_streams", "forget_types", "forget_checkpoints"):
        connection.execute(_LOG[statement])
    for name, kind in _row_tables(connection):
        connection.execute(fill("drop", type=kind, table=name))
    _make_tables(connection, models)
    connection.execute("COMMIT")
    live, kept = LiveRows(models), 0

    def keep_checkpoints(records: Sequence[Record[Event]]) -> None:
        nonlocal kept
        live.take(records)
        if live.position >= kept + CHECKPOINT_EVENTS:
            kept = live.position
            snapshots.save(connection, live.checkpoint(), keeps_all=True)

    _fill_tables(commits, Units(connection), head.epoch, head.position, keep_checkpoints)
    for model in models:
        connection.execute(_LOG["note_model"], (model.name, fingerprint(model)))


def _make_tables(connection: Connection, models: Sequence[ReadModel]) -> None:
    for model in stored(models):
        for statement in definition(model):
            connection.execute(statement)


def _fill_tables(
    commits: Commits,
    units: Units,
    epoch: int,
    until: int,
    also: Callable[[Sequence[Record[Event]]], None] = lambda _: None,
) -> None:
    """Fold the units, and write what the commits wrote beside them. Each unit is handed to ``also``."""
    versions = RowVersions(commits.models, lambda model, key: newest_version(units.connection, model, key))
    for current in versions.current.values():
        current.greatest = ANY_KEY
    spans = TypeSpans()
    while portion := units.raw(versions.committed, until):
        batch = Batch()
        for first, body in portion:
            records = decode_unit(body).records()
            versions.take(first, records, batch.changes)
            also(records)
            spans.take(records, batch.types)
            batch.streams += [(stream, first, last) for stream, last in heads_of(records).items()]
        commits.write_again(units.connection, epoch, batch)
        versions.committed = portion[-1][0]


def row_damage(place: Place, models: Sequence[ReadModel]) -> list[str]:
    """Which tables do not hold what the events make of them, found by making all of it again in another file."""
    with place.looking() as connection:
        if not are_made(connection, models):
            return []
    with TemporaryDirectory() as folder, closing(_beside(place, Path(folder) / "rows.sqlite")) as connection:
        schema = statements("schema.sql")
        for statement in (schema["streams"], schema["types"]):
            connection.execute(statement)
        _make_tables(connection, models)
        commits = Commits(models)
        commits.install(connection, only_rows=True)
        connection.execute("BEGIN")  # from here on the log is seen as it is now
        _fill_tables(commits, Units(connection), 0, END)
        tables = ["streams", "types", *(home_of(model) for model in stored(models))]
        return [
            f"table {table}: it does not hold what the events make of it; {REBUILD}"
            for table in tables
            if connection.execute(_LOG["differs"].replace("$table", table)).fetchone() != (0,)
        ]


def _beside(place: Place, path: Path) -> Connection:
    """A connection to a new file, which sees the units of the log beside it."""
    path.touch()
    was_stopped = not place.wal.exists()
    connection = place.driver.connect(str(path))
    connection.execute(_LOG["attach"], (f"file:{place.log}?mode={'rw' if was_stopped else 'ro'}",))
    return connection


def greatest_keys(connection: Connection, models: Sequence[ReadModel]) -> dict[str, str]:
    """Of each model that has versions the greatest key: one above it was never written."""
    found = {
        model.name: connection.execute(of_model("greatest", model.name)).fetchone()
        for model in stored(models)
        if not model.shown
    }
    return {name: (row[0] if row else None) or "" for name, row in found.items()}
