"""Who writes rows behind the log: the keeper's thread, and while there is much to write a process beside this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from organism.errors import OrganismError
from organism.log.batch import Touched
from organism.log.crew import Crew
from organism.log.folds import Folds
from organism.log.projector import Projector, Reached
from organism.log.tables import flush_parameters

MANY_UNITS: Final = 64
"""A flush of so many units is worth a process: it takes a quarter of a second to begin one."""
FEW_UNITS: Final = 8
"""So few are written here: a process that is only asked for these has nothing to stay for."""


class Pace(NamedTuple):
    """How long rows may lag behind the log, and how many units are written without waiting for that time."""

    seconds: float
    units: int


ALONE: Final = Pace(0.05, 1024)
"""A flush of more would hold up the loop, which folds it."""
HELPED: Final = Pace(0.1, 2048)
"""The larger a flush, the less it writes for a unit: a page is written once for all that is new in it."""

Told = Callable[[int | None, Exception | None], None]
"""How far the rows have come; None: they have to be written again, for that reason, or since their writer is gone."""


class RowWriters:
    """Writes what the folds and streams owe, one flush at a time. ``projector`` is None where no process can help."""

    def __init__(self, crew: Crew, projector: Projector | None) -> None:
        self._crew = crew
        self._projector = projector
        self._may_hire = True

    @property
    def pace(self) -> Pace:
        """The pace of whoever writes now."""
        return HELPED if self._projector is not None and self._projector.is_ready else ALONE

    def write(self, folds: Folds, streams: Sequence[Touched], told: Told) -> None:
        """Begin to write; ``told`` is called later, in the loop's thread. If a fold raises, nothing has begun."""
        projector = self._projector
        if projector is not None and projector.is_ready and len(streams) >= FEW_UNITS and self._is_held():
            folds.is_helped, folds.is_asking = True, False
            folds.leave()
            projector.project(folds.owed.head, partial(self._projected, folds, told))
            return
        if projector is not None and len(streams) >= MANY_UNITS and self._may_hire:
            projector.hire()
        folds.is_helped = False
        folds.settle()
        owed = flush_parameters(folds, streams)
        self._crew.keeper.post(partial(_kept, folds, folds.position, told), self._crew.views.keep, owed)

    async def alone(self) -> None:
        """Let the other process go, and have none until ``together``; return once it has closed its files."""
        self._may_hire = False
        if self._projector is not None:
            await self._projector.dismiss()

    def together(self) -> None:
        """There may be another process from now on."""
        self._may_hire = True

    def _is_held(self) -> bool:
        """What is read here meanwhile is read as it was before, so that no event is folded into a row that has it."""
        try:
            self._crew.beside.hold_still()
        except OrganismError:
            return False
        return True

    def _projected(self, folds: Folds, told: Told, reached: Reached | None) -> None:
        if reached is not None:
            self._crew.beside.let_go()
            folds.reached(reached.position, reached.greatest)
            told(reached.position, None)
            return
        try:
            folds.settle()  # on the rows as they were: nobody knows whether they are written, and so they are once more
        finally:
            self._crew.beside.let_go()
            folds.stay()
            told(None, None)


def _kept(folds: Folds, position: int, told: Told, _: Any, error: Exception | None) -> None:
    if error is None:
        folds.left()
        told(position, None)
    else:
        folds.stay()
        told(None, error)
