"""The rows of one read model in memory: newer than its table, on their way to it, or touched lately.

Rows that change are *milestoned*: a row carries the milestone ``_since`` which it stands as it does, and when it is
about to change beyond one at which it stood, it is kept as it was. What begins and ends between two milestones is never
kept, so that the past costs the rows of short threads nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from organism.log.log import FinalRow, ReadModel, Row, Where
from organism.model.events import Event

GENERATION_ROWS: Final = 512
SPAN_EVENTS: Final = 4096
"""From one milestone to the next: so many events at most are folded to see the rows as of any position."""
SINCE: Final = "_since"

LoadRow = Callable[[str, str], Row | None]
Apply = Callable[[str, Row | None, Event], Row | None]
Written = tuple[bytes, bytes, int, int, Sequence[Any]]
"""A row as it is kept: its public JSON; its private JSON (empty if there is none); the position of the event whose
content completes it (0 for a model without content); the milestone since which it stands so (0 for a final row); the
values of its declared columns."""
Stood = tuple[str, int, Written]
"""A key, the milestone until which a row stood, and that row."""


def milestone_before(position: int) -> int:
    """The last milestone at or before ``position``."""
    return position - position % SPAN_EVENTS


def read_row(public: bytes, private: bytes) -> Row:
    """The row again, with its private fields."""
    row: Row = orjson.loads(public)
    if private:
        row.update(orjson.loads(private))
    return row


def folded_row(written: Written) -> Row:
    """The row as its fold made it."""
    row = read_row(written[0], written[1])
    row.pop(SINCE, None)
    return row


def columns_of(model: ReadModel, row: Row) -> list[Any]:
    """The values of the declared columns."""
    return [column_of(row, name) for name in model.columns]


def content_at(model: ReadModel, row: Row) -> int:
    """The position of the event whose content completes the row; 0 for a model without content."""
    return row["position"] if model.with_content else 0


def column_of(row: Row, name: str) -> Any:
    """The value of a declared column. It may hold a private field: ``x`` is then ``_x``."""
    value = row[name] if name in row else row.get(f"_{name}")
    return f"|{'|'.join(value)}|" if type(value) is list else value


def equal_to(model: ReadModel, where: Sequence[Where]) -> tuple[Sequence[str], Any]:
    """Columns of which one must equal a value, by the first such condition; no columns if there is none.

    It rules most rows out at little cost. What SQLite compares otherwise than Python does is left to SQLite.
    """
    for condition in where:
        names = condition.any_of or (condition.column,)
        kind = {str: "TEXT", int: "INTEGER"}.get(type(condition.value))
        if condition.op == "=" and all(model.columns.get(name) == kind for name in names):
            return names, condition.value
    return (), None


class Dirty(dict[str, Any]):
    """Rows that are newer than their table. Who asks for one is about to change it, so it is from then on."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[str], Any]) -> None:
        super().__init__()
        self._take = take

    def __missing__(self, key: str) -> Any:
        row = self[key] = self._take(key)
        return row


class RowCache(ABC):
    """One read model's rows in memory.

    ``dirty`` changed since the last milestone and are newer than the table; ``pending`` are newer too, but changed
    before it; ``leaving`` are on their way to the table. A key above ``greatest`` was never written: ids rise with
    time, so a new row needs no look-up.
    """

    __slots__ = ("_load", "dirty", "greatest", "leaving", "model", "pending")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        self.model = model
        self._load = load
        self.dirty = Dirty(self._take)
        self.pending: dict[str, Any] = {}
        self.leaving: dict[str, Any] = {}
        self.greatest = ""

    @abstractmethod
    def take(self, apply: Apply, key: str, event: Event) -> None:
        """Fold one event into one row."""

    @abstractmethod
    def write(self, row: Any) -> Written:
        """The one place where a row becomes bytes."""

    @abstractmethod
    def written(self, key: str) -> Written | None:
        """The row as it stands, from memory or from its table; None if there is none."""

    @abstractmethod
    def pass_milestone(self) -> None:
        """All that comes from here on is after the next milestone."""

    @abstractmethod
    def laid(self, where: Sequence[Where]) -> Mapping[str, Written | None]:
        """What is laid over the table for a read of the rows that fulfil ``where``, and perhaps some more.

        A None only hides the row of the table.
        """

    def count(self) -> int:
        """How many rows may be newer than their table, at most."""
        return len(self.dirty) + len(self.pending) + len(self.leaving)

    def leave(self) -> dict[str, Any]:
        """What has to be written now; nothing else may be taken away before ``left``."""
        leaving: dict[str, Any] = self.dirty
        if self.pending:
            leaving = self.pending
            leaving.update(self.dirty)
        self.leaving, self.pending, self.dirty = leaving, {}, Dirty(self._take)
        if leaving:
            self.greatest = max(self.greatest, *leaving)
        return leaving

    def stood(self) -> Sequence[Stood]:
        """The rows of the past that have to be written with those that ``leave`` gave."""
        return ()

    def left(self) -> None:
        """What ``leave`` gave is in the table."""
        self.leaving = {}

    def stay(self) -> None:
        """What ``leave`` gave could not be written: it is still owed."""
        self.leaving.update(self.pending)
        self.pending, self.leaving = self.leaving, {}

    def _take(self, key: str) -> Any:
        """The row, which is about to change."""
        return self._before(key)

    def _before(self, key: str) -> Any:
        """The row, if it is not dirty."""
        for rows in (self.pending, self.leaving):
            if key in rows:
                return rows[key]
        return self._kept(key)

    def _kept(self, key: str) -> Row | None:
        """The row as its table has it."""
        return None if key > self.greatest else self._load(self.model.name, key)


class FinalRows(RowCache):
    """Rows that never change once they are written, as ``FinalRow``: nothing of them is kept here then.

    Of a model that says how it is shown only what is read here becomes JSON.
    """

    __slots__ = ()

    def take(self, apply: Apply, key: str, event: Event) -> None:
        """See ``RowCache``."""
        row = apply(key, None, event)
        if row is not None:
            public = {name: value for name, value in row.items() if name[0] != "_"}
            self.dirty[key] = (key if self.model.shown else public, *columns_of(self.model, row))

    def write(self, row: FinalRow) -> Written:
        """See ``RowCache``."""
        return self._written(self.model.show(row) if self.model.shown else row[0], row[1:])

    def written(self, key: str) -> Written | None:
        """See ``RowCache``."""
        for rows in (self.dirty, self.pending, self.leaving):
            if key in rows:
                return self.write(rows[key])
        row = self._kept(key)
        return None if row is None else self._written(row, ())

    def laid(self, where: Sequence[Where]) -> Mapping[str, Written | None]:
        """See ``RowCache``. A row that is not in the table yet hides none there."""
        names, wanted = equal_to(self.model, where)
        places = [list(self.model.columns).index(name) + 1 for name in names]
        found: dict[str, FinalRow] = {}
        for rows in (self.leaving, self.pending, self.dirty):
            if not rows:
                continue
            if not places:
                found.update(rows)
            for place in places:
                found.update({key: row for key, row in rows.items() if row[place] == wanted})
        return {key: self.write(row) for key, row in found.items()}

    def pass_milestone(self) -> None:
        """See ``RowCache``. A row stands at each milestone after its position."""

    def _written(self, public: Row, values: Sequence[Any]) -> Written:
        return orjson.dumps(public), b"", content_at(self.model, public), 0, values


class ChangingRows(RowCache):
    """Rows that change. Those touched lately stay, in two generations that are as their table has them.

    ``milestone`` is the next one: what changes now stands so since then.
    """

    __slots__ = ("_leaving_stood", "_old", "_stood", "_young", "milestone")

    def __init__(self, model: ReadModel, load: LoadRow, milestone: int) -> None:
        super().__init__(model, load)
        self.milestone = milestone
        self._stood: list[Stood] = []
        self._leaving_stood: list[Stood] = []
        self._young: dict[str, Row | None] = {}
        self._old: dict[str, Row | None] = {}

    def take(self, apply: Apply, key: str, event: Event) -> None:
        """See ``RowCache``."""
        self.dirty[key] = apply(key, self.dirty[key], event)

    def write(self, row: Row) -> Written:
        """See ``RowCache``."""
        since = row.setdefault(SINCE, self.milestone)
        values = columns_of(self.model, row)
        hidden = [name for name in row if name[0] == "_"]
        private = {name: row.pop(name) for name in hidden}
        public = orjson.dumps(row)
        row.update(private)
        return public, orjson.dumps(private), content_at(self.model, row), since, values

    def written(self, key: str) -> Written | None:
        """See ``RowCache``."""
        if key in self.dirty:
            row = self.dirty[key]
        else:
            row = self._before(key)
            self._keep(key, row)
        return None if row is None else self.write(row)

    def laid(self, where: Sequence[Where]) -> Mapping[str, Written | None]:
        """See ``RowCache``."""
        names, wanted = equal_to(self.model, where)
        return {
            key: self.write(row) if row and (not names or wanted in [column_of(row, name) for name in names]) else None
            for key, row in {**self.leaving, **self.pending, **self.dirty}.items()
        }

    def pass_milestone(self) -> None:
        """See ``RowCache``."""
        for row in self.dirty.values():
            if row is not None:
                row.setdefault(SINCE, self.milestone)
        self.pending.update(self.dirty)
        self.dirty = Dirty(self._take)
        self.milestone += SPAN_EVENTS

    def leave(self) -> dict[str, Any]:
        """See ``RowCache``."""
        self._leaving_stood, self._stood = self._stood, []
        leaving = super().leave()
        for row in leaving.values():
            if row is not None:
                row.setdefault(SINCE, self.milestone)
        return leaving

    def stood(self) -> Sequence[Stood]:
        """See ``RowCache``."""
        return self._leaving_stood

    def left(self) -> None:
        """See ``RowCache``."""
        self._young.update(self.leaving)
        self._turn()
        self._leaving_stood = []
        super().left()

    def stay(self) -> None:
        """See ``RowCache``."""
        self._stood = self._leaving_stood + self._stood
        self._leaving_stood = []
        super().stay()

    def _take(self, key: str) -> Row | None:
        """It is kept as it stood, if a milestone has seen it so."""
        row: Row | None = self._before(key)
        if row is not None and row[SINCE] < self.milestone:
            self._stood.append((key, self.milestone, self.write(row)))
            row[SINCE] = self.milestone
        return row

    def _kept(self, key: str) -> Row | None:
        for rows in (self._young, self._old):
            if key in rows:
                return rows[key]
        return super()._kept(key)

    def _keep(self, key: str, row: Row | None) -> None:
        self._young[key] = row
        self._turn()

    def _turn(self) -> None:
        if len(self._young) > GENERATION_ROWS:
            self._old, self._young = self._young, {}
