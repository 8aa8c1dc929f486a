"""The rows of the read models: folded from what is on disk, kept while they are touched, written behind the log.

Rows are folded only from committed units, so a failed commit has nothing to take back here. They may lag behind the
head by what ``Folds.owed`` holds; every read settles that first.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Final

from organism.errors import OrganismError
from organism.log.cache import (
    SPAN_EVENTS,
    Apply,
    ChangingRows,
    FinalRows,
    LoadRow,
    RowCache,
    Written,
    milestone_before,
)
from organism.log.log import ReadModel
from organism.model.events import Event

ERASED: Final = b'{"erased":true}'
MOST_OWED: Final = 256
"""So many committed events may wait for their fold before it is done without being asked for."""
AT_ONCE: Final = 512
"""So many events are folded without a pause: two milliseconds."""


def with_payload(public: bytes, payload: bytes | None) -> bytes:
    """The row completed by its content; None was erased."""
    return b'%b,"payload":%b}' % (public[:-1], ERASED if payload is None else payload)


Touch = tuple[Callable[[Event], Sequence[str]], Apply, RowCache]
"""How an event of one type touches one read model: its keys, the fold, the rows."""


class Folds:
    """All read models. ``owed`` are committed events that no row has seen; ``position`` is how far the rows are."""

    __slots__ = ("_by_type", "caches", "is_whole", "owed", "position")

    def __init__(self, models: Sequence[ReadModel], load: LoadRow, position: int) -> None:
        milestone = milestone_before(position) + SPAN_EVENTS
        self.caches: dict[str, RowCache] = {
            model.name: FinalRows(model, load) if model.is_final else ChangingRows(model, load, milestone)
            for model in models
        }
        self.owed: list[Event] = []
        self.position = position
        self.is_whole = True
        self._by_type: dict[str, list[Touch]] = {}
        for model in models:
            if model.fold is None:
                for kind, keys in model.keys.items():
                    self._by_type.setdefault(kind, []).append((keys, model.apply, self.caches[model.name]))

    def model(self, name: str) -> ReadModel:
        """The read model of this name."""
        return self.caches[name].model

    def owe(self, events: Sequence[Event]) -> None:
        """These are on the disk now."""
        if self.is_whole:
            self.owed += events

    def is_overdue(self) -> bool:
        """Whether so much is owed that it has to be folded, though nobody asks for it."""
        return self.is_whole and len(self.owed) >= MOST_OWED

    def settle(self, most: int = sys.maxsize) -> None:
        """Fold what is owed, or the first ``most`` of it.

        Raises for good once a fold has failed: half-made rows are neither shown nor written.
        """
        if not self.is_whole:
            raise OrganismError("A read model could not take an event; its rows are made anew at the next start.")
        owed, self.owed = self.owed[:most], self.owed[most:]
        self.is_whole = False
        while owed:
            milestone = milestone_before(owed[0].position - 1) + SPAN_EVENTS
            count = milestone - owed[0].position + 1
            self._fold(owed[:count])
            if count <= len(owed):
                for cache in self.caches.values():
                    cache.pass_milestone()
            owed = owed[count:]
        self.is_whole = True

    async def settle_gently(self) -> None:
        """Fold what is owed but for a few events, with pauses, so that it holds up nobody else."""
        while len(self.owed) > AT_ONCE:
            self.settle(AT_ONCE)
            await asyncio.sleep(0)

    def _fold(self, owed: Sequence[Event]) -> None:
        for cache in self.caches.values():
            if cache.model.fold is not None:
                cache.model.fold(cache.dirty, owed)
        by_type = self._by_type
        for event in owed:
            if event.type in by_type:
                _touch(by_type[event.type], event)
        self.position = owed[-1].position

    def is_dirty(self) -> bool:
        """Whether any row is newer than its table."""
        return any(cache.dirty or cache.pending for cache in self.caches.values())

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
        return self.caches[model].written(key)


def _touch(touches: Sequence[Touch], event: Event) -> None:
    for keys, apply, cache in touches:
        for key in keys(event):
            cache.take(apply, key, event)
