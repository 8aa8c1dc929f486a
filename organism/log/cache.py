"""The rows of one read model in memory: newer than its table, on their way to it, or touched lately."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from organism.log.log import FinalRow, ReadModel, Row
from organism.model.events import Event

GENERATION_ROWS: Final = 512
MISSING: Final[Row] = MappingProxyType({})  # type: ignore[assignment] # it is only ever compared
"""Says that a row is not in memory; None says that there is no such row."""

LoadRow = Callable[[str, str], Row | None]
Apply = Callable[[str, Row | None, Event], Row | None]
Written = tuple[bytes, bytes, int, Sequence[Any]]
"""A row as it is kept: its public JSON; its private JSON (empty if there is none); the position of the event whose
content completes it (0 for a model without content); the values of its declared columns."""


Mark = tuple[str, int, Written | None]
"""A key, a milestone, and its row as it stood there; None if there was none."""


def read_row(public: bytes, private: bytes) -> Row:
    """The row again, with its private fields."""
    row: Row = orjson.loads(public)
    if private:
        row.update(orjson.loads(private))
    return row


def columns_of(model: ReadModel, row: Row) -> list[Any]:
    """The values of the declared columns. One may hold a private field: ``x`` is then ``_x``."""
    values = []
    for name in model.columns:
        value = row[name] if name in row else row.get(f"_{name}")
        values.append(f"|{'|'.join(value)}|" if type(value) is list else value)
    return values


class Dirty(dict[str, Any]):
    """Rows that are newer than their table. Who asks for one is about to change it, so it is from then on."""

    __slots__ = ("_before",)

    def __init__(self, before: Callable[[str], Any]) -> None:
        super().__init__()
        self._before = before

    def __missing__(self, key: str) -> Any:
        row = self[key] = self._before(key)
        return row


class RowCache(ABC):
    """One read model's rows in memory.

    ``dirty`` changed since the last milestone and are newer than the table; ``pending`` are newer too, but changed
    before it; ``leaving`` are on their way to the table. ``touched`` are the keys that changed since the last milestone
    and are not dirty any more. A key above ``greatest`` was never written: ids rise with
    time, so a new row needs no look-up.
    """

    __slots__ = ("_load", "dirty", "greatest", "leaving", "model", "pending", "touched")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        self.model = model
        self._load = load
        self.dirty = Dirty(self._before)
        self.pending: dict[str, Any] = {}
        self.touched: set[str] = set()
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

    def is_dirty(self) -> bool:
        """Whether any row is newer than the table."""
        return bool(self.dirty or self.pending)

    @abstractmethod
    def mark(self, milestone: int) -> None:
        """This is how the rows stand at a milestone: keep those that changed since the last one."""

    def leave(self) -> dict[str, Any]:
        """What has to be written now; nothing else may be taken away before ``left``."""
        self.leaving = self.pending
        self.leaving.update(self.dirty)
        self.pending, self.dirty = {}, Dirty(self._before)
        if self.leaving:
            self.greatest = max(self.greatest, *self.leaving)
        return self.leaving

    def left(self) -> None:
        """What ``leave`` gave is in the table."""
        self.leaving = {}

    def stay(self) -> None:
        """What ``leave`` gave could not be written: it is still owed."""
        self.leaving.update(self.pending)
        self.pending, self.leaving = self.leaving, {}

    def marks(self) -> Sequence[Mark]:
        """The rows at milestones that have to be written now, oldest milestone first."""
        return ()

    def _before(self, key: str) -> Any:
        """The row, if it is not dirty."""
        for rows in (self.pending, self.leaving):
            row = rows.get(key, MISSING)
            if row is not MISSING:
                return row
        return self._kept(key)

    def _kept(self, key: str) -> Row | None:
        """The row as its table has it."""
        return None if key > self.greatest else self._load(self.model.name, key)

    def _content_at(self, row: Row) -> int:
        return row["position"] if self.model.with_content else 0


class FinalRows(RowCache):
    """Rows that never change once they are written, as ``FinalRow``: nothing of them is kept here then."""

    __slots__ = ()

    def take(self, apply: Apply, key: str, event: Event) -> None:
        """See ``RowCache``."""
        row = apply(key, None, event)
        if row is not None:
            values = columns_of(self.model, row)
            self.dirty[key] = ({name: value for name, value in row.items() if name[0] != "_"}, values)

    def write(self, row: FinalRow) -> Written:
        """See ``RowCache``."""
        public, values = row
        return orjson.dumps(public), b"", self._content_at(public), values

    def written(self, key: str) -> Written | None:
        """See ``RowCache``."""
        for rows in (self.dirty, self.pending, self.leaving):
            if key in rows:
                return self.write(rows[key])
        row = self._kept(key)
        return None if row is None else self.write((row, []))

    def mark(self, milestone: int) -> None:
        """See ``RowCache``. They stand alike at every milestone."""


class ChangingRows(RowCache):
    """Rows that change. Those touched lately stay, in two generations that are as their table has them."""

    __slots__ = ("_leaving_marks", "_marks", "_old", "_young")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        super().__init__(model, load)
        self._marks: list[Mark] = []
        self._leaving_marks: list[Mark] = []
        self._young: dict[str, Row | None] = {}
        self._old: dict[str, Row | None] = {}

    def take(self, apply: Apply, key: str, event: Event) -> None:
        """See ``RowCache``."""
        self.dirty[key] = apply(key, self.dirty[key], event)

    def write(self, row: Row) -> Written:
        """See ``RowCache``."""
        values = columns_of(self.model, row)
        hidden = [name for name in row if name[0] == "_"]
        private = {name: row.pop(name) for name in hidden}
        public = orjson.dumps(row)
        row.update(private)
        return public, orjson.dumps(private) if private else b"", self._content_at(row), values

    def written(self, key: str) -> Written | None:
        """See ``RowCache``."""
        row = self.dirty.get(key, MISSING)
        if row is MISSING:
            row = self._before(key)
            self._keep(key, row)
        return None if row is None else self.write(row)

    def is_dirty(self) -> bool:
        """See ``RowCache``."""
        return bool(self._marks) or super().is_dirty()

    def mark(self, milestone: int) -> None:
        """See ``RowCache``."""
        for key in sorted(self.touched.union(self.dirty)):
            self._marks.append((key, milestone, self.written(key)))
        self.touched = set()
        self.pending.update(self.dirty)
        self.dirty = Dirty(self._before)

    def leave(self) -> dict[str, Any]:
        """See ``RowCache``."""
        self.touched.update(self.dirty)
        self._leaving_marks, self._marks = self._marks, []
        return super().leave()

    def left(self) -> None:
        """See ``RowCache``."""
        for key, row in self.leaving.items():
            self._keep(key, row)
        self._leaving_marks = []
        super().left()

    def stay(self) -> None:
        """See ``RowCache``."""
        self._marks = self._leaving_marks + self._marks
        self._leaving_marks = []
        super().stay()

    def marks(self) -> Sequence[Mark]:
        """See ``RowCache``."""
        return self._leaving_marks

    def _kept(self, key: str) -> Row | None:
        for rows in (self._young, self._old):
            row = rows.get(key, MISSING)
            if row is not MISSING:
                return row
        return super()._kept(key)

    def _keep(self, key: str, row: Row | None) -> None:
        self._young[key] = row
        if len(self._young) > GENERATION_ROWS:
            self._old, self._young = self._young, {}
