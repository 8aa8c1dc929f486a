"""Makes the rows of all read models again from the events, byte for byte as the commits wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from organism.log.batch import Touched
from organism.log.commits import Commits
from organism.log.driver import Connection
from organism.log.encode import decode, heads_of
from organism.log.log import ReadModel
from organism.log.opening import Truth
from organism.log.pages import newest_version
from organism.log.queries import statements
from organism.log.spans import TypeSpan, TypeSpans
from organism.log.tables import definition, fill, fingerprint, of_model, stored
from organism.log.units import Units
from organism.log.upcast import Upcaster
from organism.log.versions import Changes, RowVersions

_LOG: Final = statements("log.sql")
OF_THE_LOG: Final = frozenset({"meta", "units", "content", "streams", "types", "models", "snapshots"})


def are_made(connection: Connection, models: Sequence[ReadModel]) -> bool:
    """Whether the tables hold the rows of these models."""
    made = dict(connection.execute(_LOG["made_models"]).fetchall())
    return made == {model.name: fingerprint(model) for model in models}


def rebuild(commits: Commits, models: Sequence[ReadModel], truth: Truth, upcaster: Upcaster) -> None:
    """Drop all rows, fold the log from its beginning, and write them again.

    The models are noted last, so that a rebuild that is broken off begins again at the next start.
    """
    connection = commits.connection
    _make_tables(connection, models)
    versions = RowVersions(models, lambda model, key: newest_version(connection, model, key))
    for current in versions.current.values():
        current.greatest = ANY_KEY
    spans = TypeSpans()
    units = Units(upcaster)
    units.use(connection)
    while portion := units.raw(versions.committed, truth.position):
        changes: dict[str, Changes] = {}
        streams: list[Touched] = []
        types: list[TypeSpan] = []
        for first, body in portion:
            events = decode(orjson.loads(body), upcaster)
            versions.take(first, events, changes)
            spans.take(events, types)
            streams += [(stream, first, last) for stream, last in heads_of(events).items()]
        commits.write_again(truth.epoch, changes, streams, types)
        versions.committed = portion[-1][0]
    for model in models:
        connection.execute(_LOG["note_model"], (model.name, fingerprint(model)))


ANY_KEY: Final = "\U0010ffff"
"""No key is above it, so every row is looked up."""


def _make_tables(connection: Connection, models: Sequence[ReadModel]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_LOG["doubt_models"])
    connection.execute(_LOG["forget_streams"])
    connection.execute(_LOG["forget_types"])
    connection.execute(_LOG["forget_checkpoints"])
    for name, kind in connection.execute(_LOG["tables"]).fetchall():
        if name not in OF_THE_LOG:
            connection.execute(fill("drop", type=kind, table=name))
    for model in stored(models):
        for statement in definition(model):
            connection.execute(statement)
    connection.execute("COMMIT")


def greatest_keys(connection: Connection, models: Sequence[ReadModel]) -> dict[str, str]:
    """The greatest key of each model whose rows change."""
    found = {
        model.name: connection.execute(of_model("greatest", model.name)).fetchone()
        for model in stored(models)
        if not model.shown
    }
    return {name: (row[0] if row else None) or "" for name, row in found.items()}
