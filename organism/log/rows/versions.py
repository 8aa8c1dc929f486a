"""Folding units into rows: versions, written with the commit of their unit, and live rows.

A unit that changes a row adds a version, valid from the unit's first position, and sets ``until`` of the version before
it. So the past is read as the present is, and a failed commit leaves nothing to undo but the cache here. Live rows are
the few that nearly every event changes: they are in memory only, with a checkpoint now and then; at a position they are
the checkpoint before it and a fold of the events since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.log.rows.spans import OpenSpans, SpanFolding
from organism.log.rows.tables import Changes, Written, row_lists, stored
from organism.log.snapshots import CHECKPOINT, Snapshot
from organism.views.views import R, ReadModel, Stored

FOREVER: Final = (1 << 63) - 1  # `until` of the current version
VERSION_BITS: Final = 20
"""A version's number is the position from which it is valid, followed by so many bits that tell apart the versions of
one unit. So versions in order of their numbers are rows in order of their last change."""
GENERATION_ROWS: Final = 512
CHECKPOINT_EVENTS: Final = 4096
"""Events from one checkpoint to the next: about so many are folded at most to see the rows as of a position."""

Version = tuple[int, Any]  # The number of the newest version of a row, and the row; None: it ended
LoadVersion = Callable[[ReadModel, str], Version | None]
"""(model, key) → the newest committed version, or None if there never was one."""


class Rows(dict[str, Any]):
    """Rows as a fold gets them: None for a missing one."""

    __slots__ = ()

    def __missing__(self, key: str) -> Any:
        return None


class _TouchedRows(Rows):
    """The rows that a unit touches: a fold asks for a row, gets it as it was before, and changes it."""

    __slots__ = ("_before",)

    def __init__(self, before: Callable[[str], Any]) -> None:
        super().__init__()
        self._before = before

    def __missing__(self, key: str) -> Any:
        row = self[key] = self._before(key)
        return row


class CurrentRows(Entity):
    """The rows of one stored model touched lately, as of the last unit taken in; others are loaded."""

    model: ReadModel
    _load: LoadVersion
    young: dict[str, Version] = field(default_factory=dict)
    old: dict[str, Version] = field(default_factory=dict)
    greatest: str = ""  # no key above this one was ever written

    def take(self, first: int, records: Sequence[Record[events.Event]], changes: Changes, committed: int) -> None:
        """Fold a unit at ``first``, and note the versions that it makes of the rows that it touches."""
        touched = _TouchedRows(self._before)
        self.model.fold(touched, records)
        young, number = self.young, first_version(first)
        for key, row in touched.items():
            before = young.get(key)
            if before is not None and before[1] is not None:
                changes.ended.append((before[0], first))
            elif row is None:
                continue
            if row is not None:
                changes.versions.append((number, key, write(self.model, row)))
                self.greatest = max(self.greatest, key)
            young[key] = (number, row)
            number += 1
        if len(young) > GENERATION_ROWS:
            uncommitted = first_version(committed + 1)
            needed = {key: found for key, found in self.old.items() if found[0] >= uncommitted and key not in young}
            self.old, self.young = young, needed

    def _before(self, key: str) -> Any:
        """The current row; None if there is none."""
        found = self.young.get(key) or self.old.get(key)
        if found is None and key <= self.greatest:
            found = self._load(self.model, key)
        if found is None:
            return None
        self.young[key] = found
        return found[1]


class LiveRows:
    """The rows of all models that are live, as of ``position``."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self._models = [model for model in models if model.is_live]
        self._rows = {model.name: Rows() for model in self._models}
        self.position = 0

    def take(self, records: Sequence[Record[events.Event]]) -> None:
        """Fold the next events."""
        for model in self._models:
            model.fold(self._rows[model.name], records)
        self.position = records[-1].position

    def rows(self, model: ReadModel) -> Iterator[tuple[str, Written]]:
        """Each row of a model, with its key."""
        return ((key, write(model, row)) for key, row in self._rows[model.name].items() if row is not None)

    def row(self, model: ReadModel[R], key: str) -> R | None:
        row: R | None = self._rows[model.name][key]
        return row

    def all_of(self, model: ReadModel[R]) -> list[R]:
        """Each row of a model as it would be written now."""
        rows: list[R] = [row for row in self._rows[model.name].values() if row is not None]
        if model.complete is not None:
            for row in rows:
                model.complete(row)
        return rows

    def checkpoint(self) -> Snapshot:
        rows = {
            model.name: {key: _whole(model, row) for key, row in self._rows[model.name].items()}
            for model in self._models
        }
        return Snapshot(CHECKPOINT, self.position, _encode(rows))

    def load(self, checkpoint: Snapshot) -> None:
        found = msgspec.json.decode(checkpoint.body, type=dict[str, dict[str, msgspec.Raw]])
        for model in self._models:
            rows = {key: _of_whole(model, bytes(row)) for key, row in found[model.name].items()}
            self._rows[model.name] = Rows(rows)
        self.position = checkpoint.position


class RowFolding:
    """Folds units, in order, into the rows of all models: stored ones when taken in, live ones once committed.

    ``live.position`` is the last position that is known to be on the disk. ``keep`` gets a checkpoint from time to
    time, and ``on_fault`` what a fold raises; from then on nothing is folded: the rows have to be rebuilt.
    """

    def __init__(
        self,
        models: Sequence[ReadModel],
        load: LoadVersion,
        live: LiveRows,
        keep: Callable[[Snapshot], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self.live = live
        self._stored = stored(models)
        self._final = [model for model in self._stored if model.is_final and not model.span]
        self._spans = SpanFolding(models, OpenSpans(), 0)
        self._changes: defaultdict[str, Changes] = defaultdict(Changes)
        self._current = {model.name: CurrentRows(model, load) for model in self._stored if not model.is_final}
        self._by_type: dict[type[events.Event], list[CurrentRows]] = {}
        for rows in self._current.values():
            for kind in rows.model.types:
                self._by_type.setdefault(kind, []).append(rows)
        self._keep = keep
        self._on_fault = on_fault
        self._is_whole = True
        self._checkpoint = live.position

    def go_on(self, greatest: Mapping[str, str], opened: OpenSpans) -> None:
        """What is on the disk: the greatest key ever written of each model, and what lies in spans not ended yet."""
        for model, key in greatest.items():
            self._current[model].greatest = key
        self._spans = SpanFolding(self._stored, opened, self.live.position)

    def take(self, units: Sequence[tuple[int, Sequence[Record[events.Event]]]]) -> None:
        """Fold units, each given by its first position and its records, which have theirs."""
        if self._is_whole:
            try:
                for first, records in units:
                    self._take(first, records)
                for model, key, row in self._spans.take(list(chain.from_iterable(map(itemgetter(1), units)))):
                    self._changes[model.name].versions.append((0, key, write(model, row)))
            except Exception as error:  # noqa: BLE001 - whatever a fold raises
                self._fail(error)

    def values(self, blob: list[bytes], end: int) -> list[Any]:
        """What the units since the last call add, column by column; ``blob``, of ``end`` - 1 bytes, takes the texts."""
        changes, self._changes = self._changes, defaultdict(Changes)
        return row_lists(self._stored, changes, blob, end)

    def committed(self, records: Sequence[Record[events.Event]]) -> None:
        """These are on the disk, with the rows that follow from them."""
        if self._is_whole:
            try:
                self.live.take(records)
            except Exception as error:  # noqa: BLE001 - whatever a fold raises
                self._fail(error)
            else:
                self._keep_checkpoint(CHECKPOINT_EVENTS)

    def close(self) -> None:
        """Keep a last checkpoint, if anything has happened since."""
        if self._is_whole:
            self._keep_checkpoint(1)

    def _take(self, first: int, records: Sequence[Record[events.Event]]) -> None:
        for model in self._final:
            rows = Rows()
            model.fold(rows, records)
            if rows:
                self._changes[model.name].versions += [(0, key, write(model, row)) for key, row in rows.items()]
        touched: dict[CurrentRows, None] = {}
        for record in records:
            for current in self._by_type.get(type(record.event), ()):
                touched[current] = None
        for current in touched:
            current.take(first, records, self._changes[current.model.name], self.live.position)

    def _fail(self, error: Exception) -> None:
        self._is_whole = False
        self._on_fault(error)

    def _keep_checkpoint(self, least_events: int) -> None:
        """If one cannot be written, a read of the past takes longer."""
        if self.live.position >= self._checkpoint + least_events:
            self._checkpoint = self.live.position
            self._keep(self.live.checkpoint())


def first_version(position: int) -> int:
    """The least number of a version that is valid from ``position`` on."""
    return position << VERSION_BITS


def write(model: ReadModel, row: Any) -> Written:
    """The one place where a row becomes bytes."""
    if model.complete is not None:
        model.complete(row)
    values = [_joined(value) if type(value := get(row)) is list else value for get in model.values]
    public, private = (row.public, row.private) if type(row) is Stored else (row, None)
    content_at = public.position if model.with_content or model.is_final else 0
    return _encode(public), b"" if private is None else _encode(private), content_at, values


def folded_row(model: ReadModel[R], public: bytes, private: bytes) -> R:
    """The row that these bytes are of."""
    row: Any = msgspec.json.decode(public, type=model.row)
    if model.private is not None:
        row = Stored(row, msgspec.json.decode(private, type=model.private))
    found: R = row
    return found


def _whole(model: ReadModel, row: Any) -> msgspec.Raw:
    """The row as a checkpoint has it: one object, private fields included; null for a row that ended."""
    if row is None:
        return msgspec.Raw(b"null")
    public, private, *_ = write(model, row)
    return msgspec.Raw(b"%b,%b" % (public[:-1], private[1:]) if private else public)


def _of_whole(model: ReadModel, row: bytes) -> Any:
    """The fields that each class knows."""
    return None if row == b"null" else folded_row(model, row, b"" if model.private is None else row)


_encode: Final = msgspec.json.Encoder().encode


def _joined(names: Sequence[str]) -> str:
    """A list in its column."""
    return f"|{'|'.join(names)}|"
