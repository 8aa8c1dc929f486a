"""How a batch gets into the tables, and how the derived ones are filled again from the events.

Derived are the log's indexes of streams and types, and the rows of the read models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from organism.events.stored import decode_unit
from organism.log.batch import Batch, TypeSpans
from organism.log.directory import LogDirectory
from organism.log.encode import DIGEST_BYTES, SALT_BYTES, heads_of
from organism.log.log import span_of
from organism.log.rows.pages import newest_version
from organism.log.rows.tables import column_of, columns_of, definition, fingerprint, stored, table_of, trigger
from organism.log.rows.versions import FOREVER, LiveRows, RowFolding, first_version
from organism.log.snapshots import Snapshot, Snapshots
from organism.log.units import unit_rows
from organism.log.verify import BEFORE_ALL, is_of_rows, last_position
from organism.sqlite.driver import Connection, Parameters, json_text, set_up, statements, uri_of
from organism.views.views import ReadModel

PAGE_ROWS: Final = 1024  # How many rows are compared in one read: a longer one would keep the WAL from being reset
AFTER_ALL: Final = b""  # To SQLite any blob is greater than any number and any text
_COMPARING: Final = ("next_page", "differs")
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
        whole = ("erasing", "contents_erased", "commit_spreads")
        for spread in ("indexes_spread",) if only_rows else (*whole, "indexes_spread"):
            connection.execute(_SQL[spread])
        for model in stored(self.models):
            connection.execute(trigger(model))

    def parameters(self, epoch: int, batch: Batch, chained: bytes, folding: RowFolding) -> Parameters:
        """The parameters of the statement that writes the batch.

        ``chained`` is the commit's hash. The writing thread computes nothing: the driver binds exact ``int``, ``str``
        and ``bytearray`` as they are, and looks for an adapter for all else, be it None or ``bytes``.
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
        listed = map(json_text, (units, contents, batch.streams, batch.types, batch.erasures))
        values = folding.values(blob, at)
        return (epoch, batch.firsts[-1], bytearray(chained), *listed, bytearray().join(blob), *values)

    def write(self, connection: Connection, parameters: Parameters) -> None:
        """One statement, one transaction, one fsync."""
        connection.execute(self._statement, parameters)

    def are_current(self, connection: Connection) -> bool:
        """Whether these models filled the derived tables, and still define them so."""
        rows = connection.execute(_SQL["defined"]).fetchall()
        there = {text for kind, _, table, text in rows if text is not None and is_of_rows(kind, table)}
        made = dict(connection.execute(_SQL["model_versions"]).fetchall())
        return made == self._versions and there == {text.rstrip() for text in self._definition}

    def unknown_tables(self, connection: Connection) -> list[str]:
        """Tables and views named like those of read models that belong to none of these: ``rebuild`` drops them."""
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
        """Which derived tables do not hold what the events make of them, found by filling others in another file.

        A server may be writing: all is compared as of the position at which this begins, in many short reads.
        """
        with directory.reading() as connection:
            last = connection.execute(_SQL["last_unit"]).fetchone()
            if last is None or not self.are_current(connection):
                return []
        first, head = last[0], last_position(last[0], last[2])
        with TemporaryDirectory() as folder, closing(attached(directory, Path(folder) / "rows.sqlite")) as connection:
            schema = statements("log", "schema.sql")
            for text in (schema["streams"], schema["types"], *self._definition):
                connection.execute(text)
            self.install(connection, only_rows=True)
            connection.execute("PRAGMA main.synchronous = OFF")  # what is compared here is then deleted
            self._fill(connection, 0, first, lambda _: None)
            return [
                f"table {each.table}: it does not hold what the events make of it; {REBUILD}"
                for each in self._as_of(first, head)
                if any(_differ(connection, each))
            ]

    def _as_of(self, first: int, head: int) -> Iterator[Derived]:
        """The derived tables as they were made of the events up to ``head``, the end of the unit at ``first``."""
        yield Derived("streams", "stream", "", f"first <= {first}")
        # later units may have noted more types in the head's span
        yield Derived("types", "type", "", f"(span < {span_of(head)} OR {_SQL['newest_unit']} = {first})")
        for model in stored(self.models):
            if model.is_final:
                yield Derived(table_of(model.name), "content_at", BEFORE_ALL, f"content_at <= {head}")
                continue
            made, until = f"version < {first_version(head + 1)}", f"iif(until > {head}, {FOREVER}, until)"
            names = ["version", "key", "public", "private", "content_at", *(column_of(model, n) for n in model.columns)]
            yield Derived(table_of(model.name), "version", BEFORE_ALL, made, ", ".join((*names, until)))

    def _defined(self) -> Iterator[tuple[str, str]]:
        """(TABLE or VIEW, name) of what the models have in the file."""
        for text in self._definition:
            _, kind, name, *_ = text.split(maxsplit=3)
            if kind != "INDEX":
                yield kind, name

    def _fill(self, connection: Connection, epoch: int, until: int, keep: Callable[[Snapshot], None]) -> None:
        """Fold the units into empty tables."""
        load = partial(newest_version, connection)
        folding = RowFolding(self.models, load, LiveRows(self.models), keep, _raise)
        spans, after = TypeSpans(), 0
        while portion := unit_rows(connection, after, until):
            batch, units = Batch(), [(first, decode_unit(body).records()) for first, body in portion]
            folding.take(units)
            for first, records in units:
                spans.take(records, batch.types)
                batch.streams += [(stream, first, last) for stream, last in heads_of(records).items()]
            lists, blob = (json_text(batch.streams), json_text(batch.types)), list[bytes]()
            values = folding.values(blob, 1)
            self.write(connection, (epoch, None, None, None, None, *lists, None, b"".join(blob), *values))
            for _, records in units:
                folding.committed(records)
            after = portion[-1][0]


def _raise(error: Exception) -> None:
    raise error


class Derived(NamedTuple):
    """A derived table: the column that orders its reads, the least value, and which rows and columns are compared."""

    table: str
    key: str
    least: Any
    made: str
    row: str = "*"


def _differ(connection: Connection, derived: Derived) -> Iterator[bool]:
    """For each page in turn, whether the log's rows differ from those in this file."""
    table, key, begin, made, row = derived
    parts = (("$table", table), ("$key", key), ("$made", made), ("$row", row))
    next_page, differs = (reduce(lambda text, part: text.replace(*part), parts, _SQL[name]) for name in _COMPARING)
    while begin is not None:
        ((end,),) = connection.execute(next_page, (begin, PAGE_ROWS - 1)).fetchall()
        ((is_other,),) = connection.execute(differs, (begin, AFTER_ALL if end is None else end)).fetchall()
        yield bool(is_other)
        begin = end


def invalidate(connection: Connection) -> None:
    """Have the next start fill the derived tables again."""
    connection.execute(_SQL["clear_model_versions"])


def _tables(connection: Connection) -> list[tuple[str, str]]:
    """(table or view, name) of what is named like those of read models."""
    return [(kind, name) for name, kind in connection.execute(_SQL["tables"]).fetchall() if is_of_rows(kind, name)]


def attached(directory: LogDirectory, path: Path) -> Connection:
    """A connection to a new file, to which the log is attached."""
    directory.create_private(path)
    was_stopped = not directory.wal.exists()
    connection = set_up(directory.driver.connect(str(path)))
    connection.execute(_SQL["attach"], (uri_of(directory.log, read_only=not was_stopped),))
    return connection
