"""How a batch gets into the tables, and how the derived ones are filled again from the events.

Derived are the log's indexes of streams and types, and the rows of the read models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from organism.events.stored import decode_unit
from organism.log.batch import Batch, TypeSpans
from organism.log.directory import LogDirectory
from organism.log.encode import DIGEST_BYTES, SALT_BYTES, heads_of
from organism.log.rows.pages import newest_version
from organism.log.rows.tables import columns_of, definition, fingerprint, stored, trigger
from organism.log.rows.versions import LiveRows, RowFolding
from organism.log.snapshots import Snapshot, Snapshots
from organism.log.units import END, unit_rows
from organism.log.verify import is_of_rows
from organism.sqlite.driver import Connection, Parameters, json_text, statements, uri_of
from organism.views.views import ReadModel

PAGE_BYTES: Final = 4096
PAGES_OF_A_COMMIT: Final = 3  # What it writes besides its own bytes: the pages that it shares with its neighbours
REBUILD: Final = "`organism log rebuild` has all rows made again"
_SQL: Final = statements("log", "log.sql")


class Commits:
    """The statement that writes a batch and the rows of these models."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self.models = models
        self._definition = [text for model in stored(models) for text in definition(model)]
        self._versions = {model.name: fingerprint(model) for model in models}
        self._columns = [name for model in stored(models) for name in columns_of(model)]
        self._statement = _SQL["commit"].replace("$values", ", ?" * len(self._columns))

    def install(self, connection: Connection, *, only_rows: bool = False) -> None:
        """Let a connection write commits; with ``only_rows`` it has no table for units and contents."""
        columns = "".join(f", NULL AS {name}" for name in self._columns)
        connection.execute(_SQL["commits"].replace("$columns", columns))
        for spread in ("indexes_spread",) if only_rows else ("commit_spreads", "indexes_spread"):
            connection.execute(_SQL[spread])
        for model in stored(self.models):
            connection.execute(trigger(model))

    def parameters(self, epoch: int, batch: Batch, chained: bytes, folding: RowFolding) -> tuple[Parameters, int]:
        """The parameters of the statement that writes the batch, and about how many bytes it adds to the WAL.

        ``chained`` is the commit's hash. The writing thread computes nothing.
        """
        blob: list[bytes] = []
        at = 1
        units = []
        for first, sealed, body in zip(batch.firsts, batch.digests, batch.bodies, strict=True):
            size = len(body)
            units.append((first, at, size))
            blob += (sealed, body)
            at += DIGEST_BYTES + size
        contents = []
        for position, owner, salt, json, xml in batch.contents:
            json_size, xml_size = len(json), len(xml)
            contents.append((position, owner, at, json_size, xml_size))
            blob += (salt, json, xml)
            at += SALT_BYTES + json_size + xml_size
        lists = (json_text(units), json_text(contents) if contents else None, json_text(batch.streams))
        types = json_text(batch.types) if batch.types else None
        erasures = json_text(batch.erasures) if batch.erasures else None
        values = folding.values(blob, at)
        joined = b"".join(blob)
        parameters = (epoch, batch.firsts[-1], chained, *lists, types, erasures, joined, *values)
        return parameters, len(joined) + PAGES_OF_A_COMMIT * PAGE_BYTES

    def write(self, connection: Connection, parameters: Parameters) -> None:
        """One statement, one transaction, one fsync."""
        connection.execute(self._statement, parameters)

    def are_current(self, connection: Connection) -> bool:
        """Whether the derived tables were filled by these models, and are as they define them."""
        rows = connection.execute(_SQL["defined"]).fetchall()
        there = {text for kind, _, table, text in rows if text is not None and is_of_rows(kind, table)}
        made = dict(connection.execute(_SQL["model_versions"]).fetchall())
        return made == self._versions and there == {text.rstrip() for text in self._definition}

    def unknown_tables(self, connection: Connection) -> list[str]:
        """Tables and views named like those of read models that are of none of these: ``rebuild`` drops them."""
        known = {name for _, name in self._defined()}
        return sorted(name for _, name in _tables(connection) if name not in known)

    def rebuild(self, connection: Connection, epoch: int, until: int, snapshots: Snapshots) -> None:
        """Drop the derived tables and fill new ones; their versions are noted last, so a broken attempt is repeated."""
        connection.execute("BEGIN IMMEDIATE")
        for statement in ("clear_model_versions", "clear_streams", "clear_types", "clear_checkpoints"):
            connection.execute(_SQL[statement])
        for kind, name in _tables(connection):
            connection.execute(_SQL["drop"].replace("$type", kind).replace("$table", name))
        for text in self._definition:
            connection.execute(text)
        connection.execute("COMMIT")
        self._fill(connection, epoch, until, partial(snapshots.save, connection, keeps_all=True))
        for version in self._versions.items():
            connection.execute(_SQL["set_model_version"], version)

    def damage(self, directory: LogDirectory) -> list[str]:
        """Which derived tables do not hold what the events make of them, found by filling others in another file."""
        with directory.reading() as connection:
            if not self.are_current(connection):
                return []
        with TemporaryDirectory() as folder, closing(beside(directory, Path(folder) / "rows.sqlite")) as connection:
            schema = statements("log", "schema.sql")
            for text in (schema["streams"], schema["types"], *self._definition):
                connection.execute(text)
            self.install(connection, only_rows=True)
            connection.execute("BEGIN")  # from here on the log is seen as it is now
            self._fill(connection, 0, END, lambda _: None)
            tables = ["streams", "types", *(name for kind, name in self._defined() if kind == "TABLE")]
            return [
                f"table {table}: it does not hold what the events make of it; {REBUILD}"
                for table in tables
                if connection.execute(_SQL["differs"].replace("$table", table)).fetchone() != (0,)
            ]

    def _defined(self) -> Iterator[tuple[str, str]]:
        """(TABLE or VIEW, name) of what the models have in the file."""
        for text in self._definition:
            _, kind, name, *_ = text.split(maxsplit=3)
            if kind != "INDEX":
                yield kind, name

    def _fill(self, connection: Connection, epoch: int, until: int, keep: Callable[[Snapshot], None]) -> None:
        """Fold the units into empty tables."""
        folding = RowFolding(self.models, partial(newest_version, connection), LiveRows(self.models), keep)
        spans, after = TypeSpans(), 0
        while portion := unit_rows(connection, after, until):
            batch, units = Batch(), [(first, decode_unit(body).records()) for first, body in portion]
            for first, records in units:
                folding.take(first, records)
                spans.take(records, batch.types)
                batch.streams += [(stream, first, last) for stream, last in heads_of(records).items()]
            lists, blob = (json_text(batch.streams), json_text(batch.types)), list[bytes]()
            values = folding.values(blob, 1)
            self.write(connection, (epoch, None, None, None, None, *lists, None, b"".join(blob), *values))
            for _, records in units:
                folding.committed(records)
            after = portion[-1][0]


def invalidate(connection: Connection) -> None:
    """Have the next start fill the derived tables again."""
    connection.execute(_SQL["clear_model_versions"])


def _tables(connection: Connection) -> list[tuple[str, str]]:
    """(table or view, name) of what is named like those of read models."""
    return [(kind, name) for name, kind in connection.execute(_SQL["tables"]).fetchall() if is_of_rows(kind, name)]


def beside(directory: LogDirectory, path: Path) -> Connection:
    """A connection to a new file, to which the log is attached."""
    directory.create_private(path)
    was_stopped = not directory.wal.exists()
    connection = directory.driver.connect(str(path))
    connection.execute(_SQL["attach"], (uri_of(directory.log, read_only=not was_stopped),))
    return connection
