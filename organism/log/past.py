"""Rows as they stood at any position: read at the milestone before it, and folded on from there.

Each row that changes is kept as it stood at the milestones (every ``SPAN_EVENTS`` events), once for as long as it stood
so. What came between the milestone and the position is folded again: one span at most, however long the log is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from organism.log.cache import SPAN_EVENTS, Written, milestone_before, read_row
from organism.log.crew import Crew
from organism.log.driver import Connection
from organism.log.folds import Folds, with_payload
from organism.log.log import EventFilter, Page, Query, ReadModel, Row
from organism.log.pages import Moment, page_statement
from organism.log.rows import Rows
from organism.log.tables import of_model
from organism.log.units import Span, Units
from organism.log.upcast import Upcaster
from organism.log.views import payload_at, read_page

T = TypeVar("T")
EVERYTHING: Final = EventFilter()
ANY_KEY: Final = "\U0010ffff"
"""No key is above it, so every row is looked up."""


class Past:
    """What there was at ``position``, over one connection in the thread that owns it."""

    def __init__(self, connection: Connection, upcaster: Upcaster, position: int) -> None:
        self._connection = connection
        self._upcaster = upcaster
        self._position = position
        self._milestone = milestone_before(position)

    def page(self, model: ReadModel, query: Query) -> Page:
        """A page of rows."""
        forward = {} if model.is_final else self._forward(model)
        moment = Moment(forward, self._position, self._milestone)
        return read_page(self._connection, page_statement(model, query, moment))

    def row(self, model: ReadModel, key: str) -> bytes | None:
        """The public JSON of one row, or None."""
        written = self._final(model, key) if model.is_final else self.fold([model]).written(model.name, key)
        if written is None:
            return None
        public, _, content_at, _, _ = written
        return with_payload(public, payload_at(self._connection, content_at)) if content_at else public

    def fold(self, models: Sequence[ReadModel]) -> Folds:
        """These models' folds; dirty are the rows that changed since the milestone."""
        folds = Folds(models, self._load, self._milestone)
        for cache in folds.caches.values():
            cache.greatest = ANY_KEY
        units = Units(self._upcaster)
        units.use(self._connection)
        folds.owe(units.read(Span(self._milestone, self._position, SPAN_EVENTS), EVERYTHING))
        folds.settle()
        return folds

    def _forward(self, model: ReadModel) -> Mapping[str, Written | None]:
        cache = self.fold([model]).caches[model.name]
        return {key: None if row is None else cache.write(row) for key, row in cache.dirty.items()}

    def _load(self, model: str, key: str) -> Row | None:
        at = self._milestone
        found = self._connection.execute(of_model("row_at", model), (key, at, key, at, at)).fetchone()
        return None if found is None else read_row(*found)

    def _final(self, model: ReadModel, key: str) -> Written | None:
        found = self._connection.execute(of_model("final_row_at", model.name), (key, self._position)).fetchone()
        return None if found is None else (found[0], b"", found[1], 0, ())


async def look_back(crew: Crew, rows: Rows, at: int, look: Callable[[Past], T]) -> T:
    """What ``look`` sees at a position, over a connection of its own, so that nobody waits for it."""
    if rows.heads.indexed < at:
        await rows.flushed()
        if rows.is_stuck:
            return await rows.read_over(lambda: look(Past(crew.views.connection, crew.upcaster, at)))
    return await crew.apart(lambda connection: look(Past(connection, crew.upcaster, at)))
