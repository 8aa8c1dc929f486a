"""Live rows: the few rows that nearly every event changes, all in memory and none written for each change.

A checkpoint of them all is kept now and then; as of any position they are the checkpoint before it and a fold of the
events since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from organism.log.log import EventFilter, ReadModel, Row
from organism.log.snapshots import Snapshot, Snapshots
from organism.log.units import Span, Units
from organism.log.versions import Written, hold_whole, write
from organism.model.events import Event

CHECKPOINT: Final = "live"
"""The name of the checkpoints among the snapshots."""
CHECKPOINT_EVENTS: Final = 4096
"""From one checkpoint to the next: about so many events at most are folded to see the rows as of any position."""


class _Rows(dict[str, Any]):
    def __missing__(self, key: str) -> None:
        return None


class LiveRows:
    """The rows of all models that are live, as of ``position``."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self._models = [model for model in models if model.is_live]
        self._rows = {model.name: _Rows() for model in self._models}
        self.position = 0
        self.is_whole = True

    def take(self, events: Sequence[Event]) -> None:
        """Fold the next events. Raises what a fold raises; from then on nothing is folded, and no row is shown."""
        if not self.is_whole:
            return
        self.is_whole = False
        for model in self._models:
            rows = self._rows[model.name]
            if model.fold is not None:
                model.fold(rows, events)
                continue
            for event in events:
                for key in model.keys[event.type](event) if event.type in model.keys else ():
                    rows[key] = model.apply(key, rows[key], event)
        self.position = events[-1].position
        self.is_whole = True

    def rows(self, model: ReadModel) -> Iterator[tuple[str, Written, int]]:
        """Each row of a model: its key, the row, and 0, since no version of it is stored."""
        hold_whole(self.is_whole)
        return ((key, write(model, row), 0) for key, row in self._rows[model.name].items() if row is not None)

    def row(self, model: ReadModel, key: str) -> Row | None:
        """One row with its private fields."""
        hold_whole(self.is_whole)
        row: Row | None = self._rows[model.name][key]
        return row

    def checkpoint(self) -> Snapshot:
        """All rows, for ``load``."""
        return Snapshot(CHECKPOINT, self.position, orjson.dumps(self._rows))

    def load(self, checkpoint: Snapshot) -> None:
        """Take all rows as they stood then."""
        self._rows = {name: _Rows(rows) for name, rows in orjson.loads(checkpoint.body).items()}
        self.position = checkpoint.position


def look_back(units: Units, snapshots: Snapshots, models: Sequence[ReadModel], position: int) -> LiveRows:
    """The live rows as they stood at a position of the log: the checkpoint before it, and the events since."""
    live = LiveRows(models)
    checkpoint = snapshots.load(units.connection, CHECKPOINT, position)
    if checkpoint is not None:
        live.load(checkpoint)
    while events := units.read(Span(live.position, position, CHECKPOINT_EVENTS), EventFilter()):
        live.take(events)
    return live
