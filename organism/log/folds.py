"""The rows of the read models: folded from what is on disk, kept while they are touched, written behind the log.

Rows are folded only from committed units, so a failed commit has nothing to take back here. They may lag behind the
head by what ``Folds.owed`` holds; every read settles that first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from organism.errors import OrganismError
from organism.log.log import ReadModel, Row
from organism.model.events import Event

GENERATION_ROWS: Final = 512
ERASED: Final = b'{"erased":true}'

MISSING: Final[Row] = MappingProxyType({})  # type: ignore[assignment] # it is only ever compared
"""Says that a row is not in memory; None says that there is no such row."""
LoadRow = Callable[[str, str], Row | None]


Written = tuple[bytes, bytes, int, list[Any]]
"""A row as it is kept: its public JSON; its private JSON (empty if there is none); the position of the event whose
content completes it (0 for a model without content); the values of its declared columns."""


def write_row(model: ReadModel, row: Row) -> Written:
    """The one place where a row becomes bytes.

    A column may hold a private field: ``x`` is then ``_x``. Of a final row only what is public is kept.
    """
    columns = []
    for name in model.columns:
        value = row[name] if name in row else row.get(f"_{name}")
        columns.append(f"|{'|'.join(value)}|" if type(value) is list else value)
    content_at = row["position"] if model.with_content else 0
    hidden = [name for name in row if name[0] == "_"]
    if not hidden:
        return orjson.dumps(row), b"", content_at, columns
    private = {name: row.pop(name) for name in hidden}
    public = orjson.dumps(row)
    row.update(private)
    return public, b"" if model.is_final else orjson.dumps(private), content_at, columns


def read_row(public: bytes, private: bytes) -> Row:
    """The row again, with its private fields."""
    row: Row = orjson.loads(public)
    if private:
        row.update(orjson.loads(private))
    return row


def with_payload(public: bytes, payload: bytes | None) -> bytes:
    """The row completed by its content; None was erased."""
    return b'%b,"payload":%b}' % (public[:-1], ERASED if payload is None else payload)


class RowCache:
    """One read model's rows in memory.

    ``dirty`` are newer than the table; ``leaving`` are on their way to it; the two generations are as in it. A key
    above ``greatest`` was never written: ids rise with time, so a new message needs no look-up.
    """

    __slots__ = ("_is_final", "_load", "_old", "_young", "dirty", "greatest", "leaving", "model")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        self.model = model
        self._is_final = model.is_final
        self._load = load
        self.dirty: dict[str, Row | None] = {}
        self.leaving: dict[str, Row | None] = {}
        self._young: dict[str, Row | None] = {}
        self._old: dict[str, Row | None] = {}
        self.greatest = ""

    def before(self, key: str) -> Row | None:
        """The row for the next event, if it is not dirty. A final row is never asked for again."""
        if self._is_final:
            return None
        for rows in (self.leaving, self._young, self._old):
            row = rows.get(key, MISSING)
            if row is not MISSING:
                return row
        return None if key > self.greatest else self._load(self.model.name, key)

    def find(self, key: str) -> Row | None:
        """The row as it stands, from memory or from its table."""
        row = self.peek(key)
        if row is MISSING:
            row = None if key > self.greatest else self._load(self.model.name, key)
            self._keep(key, row)
        return row

    def peek(self, key: str) -> Row | None:
        """The row, if it is in memory, else ``MISSING``."""
        for rows in (self.dirty, self.leaving, self._young, self._old):
            row = rows.get(key, MISSING)
            if row is not MISSING:
                return row
        return MISSING

    def leave(self) -> dict[str, Row | None]:
        """What has to be written now; nothing else may be taken away before ``left``."""
        self.leaving, self.dirty = self.dirty, {}
        if self.leaving:
            self.greatest = max(self.greatest, *self.leaving)
        return self.leaving

    def left(self) -> None:
        """What ``leave`` gave is in the table."""
        for key, row in self.leaving.items():
            if self.model.is_final:
                self._young.pop(key, None)
                self._old.pop(key, None)
            else:
                self._keep(key, row)
        self.leaving = {}

    def stay(self) -> None:
        """What ``leave`` gave could not be written: it is still owed."""
        self.dirty = self.leaving | self.dirty
        self.leaving = {}

    def _keep(self, key: str, row: Row | None) -> None:
        self._young[key] = row
        if len(self._young) > GENERATION_ROWS:
            self._old, self._young = self._young, {}


Touch = tuple[Callable[[Event], Sequence[str]], Callable[[str, Row | None, Event], Row | None], RowCache]
"""How an event of one type touches one read model: its keys, the fold, the rows."""


class Folds:
    """All read models. ``owed`` are committed events that no row has seen; ``position`` is how far the rows are."""

    __slots__ = ("_by_type", "caches", "is_whole", "owed", "position")

    def __init__(self, models: Sequence[ReadModel], load: LoadRow, position: int) -> None:
        self.caches = {model.name: RowCache(model, load) for model in models}
        self.owed: list[Event] = []
        self.position = position
        self.is_whole = True
        by_type: dict[str, list[Touch]] = {}
        for model in models:
            for kind, keys in model.keys.items():
                by_type.setdefault(kind, []).append((keys, model.apply, self.caches[model.name]))
        self._by_type = by_type

    def owe(self, events: Sequence[Event]) -> None:
        """These are on the disk now."""
        if self.is_whole:
            self.owed += events

    def settle(self) -> None:
        """Fold what is owed. Raises for good once a fold has failed: half-made rows are neither shown nor written."""
        if not self.is_whole:
            raise OrganismError("A read model could not take an event; its rows are made anew at the next start.")
        owed, self.owed = self.owed, []
        self.is_whole = False
        touches = self._by_type
        for event in owed:
            for keys, apply, cache in touches.get(event.type, ()):
                dirty = cache.dirty
                for key in keys(event):
                    row = dirty.get(key, MISSING)
                    dirty[key] = apply(key, cache.before(key) if row is MISSING else row, event)
        self.is_whole = True
        if owed:
            self.position = owed[-1].position

    def is_dirty(self) -> bool:
        """Whether any row is newer than its table."""
        return any(cache.dirty for cache in self.caches.values())

    def left(self) -> None:
        """What the caches let ``leave`` is in the tables."""
        for cache in self.caches.values():
            cache.left()

    def stay(self) -> None:
        """It is not, and still owed."""
        for cache in self.caches.values():
            cache.stay()

    def written(self, model: str, key: str) -> Written | None:
        """One row as it stands, as it would be written; None if there is none."""
        self.settle()
        cache = self.caches[model]
        row = cache.find(key)
        return None if row is None else write_row(cache.model, row)
