"""The process that writes rows while there is much to write.

``python -m organism.log.projection DIRECTORY MODELS EPOCH`` reads positions from its standard input, one a line; folds
the log up to the newest; writes the rows to the disposable file; and answers with a line of JSON: how far the rows
have come, and the greatest key of each model. Whatever goes wrong ends it: the log's own process then writes the rows
itself. It ends with its input too, so it outlives nobody, and the epoch keeps it from writing into another life's
file.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

import orjson

from organism.errors import LogDamaged
from organism.log.batch import Touched
from organism.log.connect import Connector
from organism.log.driver import Pysqlite
from organism.log.encode import REMEDY, unfold
from organism.log.folds import Folds
from organism.log.log import ReadModel
from organism.log.place import Place
from organism.log.tables import flush_parameters
from organism.log.time_slice import LONG_NS, ask_for_slices
from organism.log.units import Units
from organism.log.upcast import Upcaster
from organism.log.views import Views, load_row

COLLECT_AFTER_OBJECTS: Final = 10_000
"""Nothing here makes cycles but errors."""
LITTLE_EVENTS: Final = 1024
"""So many events wait for a core that has nothing else to do."""
MUCH_EVENTS: Final = 10_240
"""So many are more than a flush: it falls behind. A few more, and the log's own process would fold them."""
PATIENCE_SECONDS: Final = 0.03
"""So long they wait."""
STEP_UNITS: Final = 16
IDLE_SECONDS: Final = 0.02
"""So long after the last answer nobody looks at the rows as they were before it."""
LEAVE_SECONDS: Final = 60.0
"""So long without a wish there is nothing to stay for."""
LINE_BYTES: Final = 1 << 16
NICENESS: Final = 11
"""Linux lets who wakes up go first only if it has had less than its share: beside one of so little weight, who commits
always has."""
QUICK_NICENESS: Final = 3
"""Once it has fallen behind."""


class Projection:
    """The rows of one log. ``position`` is how far they have come."""

    def __init__(self, connector: Connector, models: Sequence[ReadModel], epoch: int) -> None:
        connection = connector.to_views()
        self._upcaster = Upcaster()
        self._views = Views(models, "main")
        self._views.epoch = epoch
        self._views.use(connection)
        self._units = Units(self._upcaster)
        self._units.use(connection)
        self._folds = Folds(models, partial(load_row, connection), 0)
        self._keep_up()

    def answer(self) -> bytes:
        """How far the rows have come, as a line."""
        greatest = {name: cache.greatest for name, cache in self._folds.caches.items()}
        return orjson.dumps({"position": self._folds.position, "greatest": greatest}, option=orjson.OPT_APPEND_NEWLINE)

    def steps(self, head: int) -> Iterator[int]:
        """Fold the log up to ``head`` and write the rows, step by step; before each, how many events are to be done."""
        self._keep_up()
        while self._folds.position < head:
            known = self._folds.position
            yield head - known
            rows = self._units.raw(self._units.begin_of(known + 1) - 1, head)
            streams: list[Touched] = []
            for begin in range(0, len(rows), STEP_UNITS):
                yield head - known
                events, touched = unfold(rows[begin : begin + STEP_UNITS], known, self._upcaster)
                self._folds.owe(events)
                self._folds.settle()
                streams += touched
            if self._folds.position == known:
                raise LogDamaged(f"The log ends before position {head}, up to which rows are asked for. {REMEDY}")
            yield head - known
            self._views.flush(flush_parameters(self._folds, streams))
            self._folds.left()

    def _keep_up(self) -> None:
        """The log's own process wrote rows while nothing was asked for: those here are of the past then."""
        position = self._views.position()
        if position != self._folds.position:
            self._folds.reached(position, {name: key for name, key in self._views.greatest().items() if name})

    def tidy(self) -> None:
        """Nobody waits just now."""
        self._views.tidy()


def wishes(handle: int) -> Iterator[int]:
    """The newest position that was asked for, each time; 0 when nothing was for a moment.

    Ends with the input, and when nothing was asked for in a while.
    """
    text = b""
    while True:
        if not select.select([handle], [], [], IDLE_SECONDS)[0]:
            yield 0
            if not select.select([handle], [], [], LEAVE_SECONDS)[0]:
                return
        read = os.read(handle, LINE_BYTES)
        if not read:
            return
        *lines, text = (text + read).split(b"\n")
        if lines:
            yield int(lines[-1])


class Hands:
    """Three threads that take turns: one that runs when no core has anything else to do, this one, and a quick one.

    What little there is to do under a light load would hold up a commit by milliseconds if it were in the way of it;
    much of it must not wait for ever. The quick one has the niceness that this one has when it makes the hands.
    """

    def __init__(self) -> None:
        self._calm = ThreadPoolExecutor(1, initializer=_give_way)
        self._quick = ThreadPoolExecutor(1, initializer=ask_for_slices, initargs=(LONG_NS,))
        self._quick.submit(int).result()  # so that it is there before this thread is nicer

    def work(self, steps: Iterator[int]) -> None:
        """Do all steps."""
        patient_until = time.monotonic() + PATIENCE_SECONDS
        behind = next(steps, None)
        while behind is not None:
            if behind > MUCH_EVENTS:
                behind = self._quick.submit(next, steps, None).result()
            elif behind > LITTLE_EVENTS or time.monotonic() > patient_until:
                behind = next(steps, None)
            else:
                behind = self._calm.submit(next, steps, None).result()


def _give_way() -> None:
    """Linux lets a thread say so."""
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main(directory: str, models_at: str, epoch: str) -> None:
    """Serve one log until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent says when it is over
    os.nice(QUICK_NICENESS)
    hands = Hands()
    if sys.platform == "linux":  # elsewhere all threads of a process are equally nice
        os.nice(NICENESS - QUICK_NICENESS)
    ask_for_slices(LONG_NS)
    connector = Connector(Pysqlite(), Place(Path(directory)))
    with suppress(*connector.driver.errors, LogDamaged):  # who writes the rows now meets it too, and says so
        serve(Projection(connector, resolve_name(models_at), int(epoch)), hands)


def serve(projection: Projection, hands: Hands) -> None:
    """Do what is asked for and answer, until nothing more will be."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_OBJECTS, 50, 100)
    os.write(sys.stdout.fileno(), projection.answer())
    for head in wishes(sys.stdin.fileno()):
        if head:
            hands.work(projection.steps(head))
            os.write(sys.stdout.fileno(), projection.answer())
        else:
            projection.tidy()


if __name__ == "__main__":
    main(*sys.argv[1:])
