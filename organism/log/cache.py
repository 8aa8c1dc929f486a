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

    ``dirty`` are newer than the table, ``leaving`` are on their way to it. A key above ``greatest`` was never written:
    ids rise with time, so a new row needs no look-up.
    """

    __slots__ = ("_load", "dirty", "greatest", "leaving", "model")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        self.model = model
        self._load = load
        self.dirty = Dirty(self._before)
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

    def leave(self) -> dict[str, Any]:
        """What has to be written now; nothing else may be taken away before ``left``."""
        self.leaving, self.dirty = self.dirty, Dirty(self._before)
        if self.leaving:
            self.greatest = max(self.greatest, *self.leaving)
        return self.leaving

    def left(self) -> None:
        """What ``leave`` gave is in the table."""
        self.leaving = {}

    def stay(self) -> None:
        """What ``leave`` gave could not be written: it is still owed."""
        later, self.dirty = self.dirty, Dirty(self._before)
        self.dirty.update(self.leaving)
        self.dirty.update(later)
        self.leaving = {}

    def _before(self, key: str) -> Row | None:
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
        for rows in (self.dirty, self.leaving):
            if key in rows:
                return self.write(rows[key])
        row = self._before(key)
        return None if row is None else self.write((row, []))


class ChangingRows(RowCache):
    """Rows that change. Those touched lately stay, in two generations that are as their table has them."""

    __slots__ = ("_old", "_young")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        super().__init__(model, load)
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

    def left(self) -> None:
        """See ``RowCache``."""
        for key, row in self.leaving.items():
            self._keep(key, row)
        super().left()

    def _before(self, key: str) -> Row | None:
        for rows in (self.leaving, self._young, self._old):
            row = rows.get(key, MISSING)
            if row is not MISSING:
                return row
        return super()._before(key)

    def _keep(self, key: str, row: Row | None) -> None:
        self._young[key] = row
        if len(self._young) > GENERATION_ROWS:
            self._old, self._young = self._young, {}
