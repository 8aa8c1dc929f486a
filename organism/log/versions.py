"""Row versions: what each unit makes of the read models, folded when it is taken in and written with its commit.

The tables only grow: a unit that changes a row adds a version that stands ``since`` the unit's first position, and
notes ``until`` where the version before it stood. So the past is read as the present is, and a commit that fails
leaves nothing to take back but what is remembered here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from organism.errors import OrganismError
from organism.log.log import FinalRow, ReadModel, Row
from organism.model.events import Event

FOREVER: Final = (1 << 63) - 1
"""``until`` of a version that stands."""
VERSION_BITS: Final = 20
"""A version's number is the position from which on it stands, and behind that so many bits that tell apart what one
unit makes. So versions in order of their numbers are rows in order of their last change."""
GENERATION_ROWS: Final = 512

Written = tuple[bytes, bytes, int, Sequence[Any]]
"""A row as it is stored: its public JSON; its private JSON (empty if there is none); the position of the event whose
content completes it (0 for a model without content); the values of its declared columns."""
Standing = tuple[int, Row | None]
"""The number of the newest version of a row, and the row; None: it ended."""
LoadRow = Callable[[str, str], Standing | None]
"""(model, key) → the newest committed version, or None if there never was one."""


@dataclass(slots=True)
class Changes:
    """What a batch adds to one model: versions of rows, rows of a model that is ``shown``, and what they end."""

    versions: list[tuple[int, str, Written]] = field(default_factory=list)
    """(number, key, row) of new versions."""
    final: list[FinalRow] = field(default_factory=list)
    ended: list[tuple[int, int]] = field(default_factory=list)
    """(number, until) of versions that stand no more."""


class TouchedRows(dict[str, Any]):
    """The rows that a unit touches. One that is asked for is about to change, and is found as it stood before."""

    __slots__ = ("_before",)

    def __init__(self, before: Callable[[str], Row | None]) -> None:
        super().__init__()
        self._before = before

    def __missing__(self, key: str) -> Row | None:
        row = self[key] = self._before(key)
        return row


class CurrentRows:
    """The rows of one model touched lately, as of the last unit taken in; others are loaded.

    Two generations bound the memory. What is not committed yet is never forgotten, since nobody could load it.
    A key above ``greatest`` was never written: ids rise with time, so most new rows need no look-up.
    """

    __slots__ = ("_load", "_old", "_young", "greatest", "model")

    def __init__(self, model: ReadModel, load: LoadRow) -> None:
        self.model = model
        self._load = load
        self._young: dict[str, Standing] = {}
        self._old: dict[str, Standing] = {}
        self.greatest = ""

    def before(self, key: str) -> Row | None:
        """The row as it stands; None if there is none."""
        found = self._young.get(key) or self._old.get(key)
        if found is None and key <= self.greatest:
            found = self._load(self.model.name, key)
        if found is None:
            return None
        self._young[key] = found
        return found[1]

    def change(self, touched: Mapping[str, Row | None], first: int, changes: Changes, committed: int) -> None:
        """Note the versions that a unit at ``first`` makes of the rows that it touched."""
        model, young = self.model, self._young
        number = first_version(first)
        for key, row in touched.items():
            before = young.get(key)
            if before is not None and before[1] is not None:
                if model.is_final:
                    continue
                changes.ended.append((before[0], first))
            elif row is None:
                continue
            if row is not None:
                changes.versions.append((number, key, write(model, row)))
                self.greatest = max(self.greatest, key)
            young[key] = (number, row)
            number += 1
        if len(young) > GENERATION_ROWS:
            uncommitted = first_version(committed + 1)
            kept = {key: found for key, found in self._old.items() if found[0] >= uncommitted and key not in young}
            self._old, self._young = young, kept

    def forget(self) -> None:
        """A commit failed: what is remembered may rest on it."""
        self._young, self._old = {}, {}


Touch = tuple[Callable[[Event], Sequence[str]], CurrentRows]
"""How an event of one type touches one read model: its keys, the rows."""


class RowVersions:
    """Folds units into row versions. ``committed`` is the last position that is known to be on the disk."""

    def __init__(self, models: Sequence[ReadModel], load: LoadRow) -> None:
        kept = [model for model in models if not model.is_live]
        self.current = {model.name: CurrentRows(model, load) for model in kept if not model.shown}
        self.committed = 0
        self.is_whole = True
        self._final = [model for model in kept if model.shown]
        self._folded = [rows for rows in self.current.values() if rows.model.fold is not None]
        self._by_type: dict[str, list[Touch]] = {}
        for rows in self.current.values():
            if rows.model.fold is None:
                for kind, keys in rows.model.keys.items():
                    self._by_type.setdefault(kind, []).append((keys, rows))

    def take(self, first: int, events: Sequence[Event], batch: dict[str, Changes]) -> None:
        """Add to ``batch`` what a unit makes of the rows; its events have their positions, from ``first`` on.

        Raises what a fold raises. From then on nothing is folded: the rows have to be made again from the log.
        """
        if not self.is_whole:
            return
        self.is_whole = False
        for model in self._final:
            if rows := final_rows(model, events):
                _changes(batch, model.name).final.extend(rows)
        for current in self._folded:
            touched = TouchedRows(current.before)
            current.model.fold(touched, events)  # type: ignore[misc]  # those in this list have one
            if touched:
                current.change(touched, first, _changes(batch, current.model.name), self.committed)
        for event in events:
            if event.type in self._by_type:
                self._take_each(first, events, batch)
                break
        self.is_whole = True

    def forget(self) -> None:
        """A commit failed: what is remembered may rest on it."""
        for current in self.current.values():
            current.forget()

    def _take_each(self, first: int, events: Sequence[Event], batch: dict[str, Changes]) -> None:
        touched: dict[str, TouchedRows] = {}
        for event in events:
            for keys, current in self._by_type.get(event.type, ()):
                model = current.model
                rows = touched.setdefault(model.name, TouchedRows(current.before))
                for key in keys(event):
                    rows[key] = model.apply(key, rows[key], event)
        for name, rows in touched.items():
            self.current[name].change(rows, first, _changes(batch, name), self.committed)


def first_version(position: int) -> int:
    """The least number of a version that stands from ``position`` on."""
    return position << VERSION_BITS


def _changes(batch: dict[str, Changes], model: str) -> Changes:
    found = batch.get(model)
    if found is None:
        found = batch[model] = Changes()
    return found


def hold_whole(is_whole: bool) -> None:  # noqa: FBT001 - the condition is all that it is about
    """Raise if a fold has failed: half-made rows are never shown."""
    if not is_whole:
        raise OrganismError("A read model could not take an event; its rows are made again at the next start.")


def final_rows(model: ReadModel, events: Sequence[Event]) -> list[FinalRow]:
    """The rows that events make of a model that is ``shown``."""
    if model.fold is not None:
        rows: dict[str, FinalRow] = {}
        model.fold(rows, events)
        return list(rows.values())
    found: list[FinalRow] = []
    for event in events:
        for key in model.keys[event.type](event) if event.type in model.keys else ():
            row = model.apply(key, None, event)
            if row is not None:
                found.append((key, *columns_of(model, row)))
    return found


def write(model: ReadModel, row: Row) -> Written:
    """The one place where a row becomes bytes."""
    values = columns_of(model, row)
    hidden = [name for name in row if name[0] == "_"]
    if not hidden:
        return orjson.dumps(row), b"", content_at(model, row), values
    private = {name: row.pop(name) for name in hidden}
    public = orjson.dumps(row)
    row.update(private)
    return public, orjson.dumps(private), content_at(model, row), values


def folded_row(public: bytes, private: bytes) -> Row:
    """The row again, with its private fields."""
    row: Row = orjson.loads(public)
    if private:
        row.update(orjson.loads(private))
    return row


def columns_of(model: ReadModel, row: Row) -> list[Any]:
    """The values of the declared columns."""
    return [_column_of(row, name) for name in model.columns]


def _column_of(row: Row, name: str) -> Any:
    """The value of a declared column. It may hold a private field: ``x`` is then ``_x``."""
    value = row[name] if name in row else row.get(f"_{name}")
    return f"|{'|'.join(value)}|" if type(value) is list else value


def content_at(model: ReadModel, row: Row) -> int:
    """The position of the event whose content completes the row; 0 for a model without content."""
    return row["position"] if model.with_content else 0
