"""The rounds of each pair, kept in a file of its own, so that a run can be taken up again pair by pair."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.arithmetic import Spread, Verdict, counting, ratios, spread, verdict, was_busy
from bench.load import Measurement
from bench.rows import Figure, Pair, Row, Side
from bench.usage import CPU_US, LOOP_US, OTHERS_SHARE, QUEUE_SHARE

Round = Mapping[Side, Measurement]


@dataclass(frozen=True, slots=True)
class Used:
    """What a side used of the machine, as medians; the fields are those of ``bench.usage.spent``."""

    loop_us: float
    cpu_us: float
    queue_share: float
    others_share: float


@dataclass(frozen=True, slots=True)
class Line:
    """A finished line of the table.

    ``quiet`` of its ``rounds`` are not marked as busy. If they are too few, ``is_busy``, and all rounds stand in the
    figures; else those that are not marked.
    """

    row: Row
    ratio: Spread
    top: Spread
    under: Spread | None
    used: Mapping[Side, Used]
    rounds: int
    quiet: int
    is_busy: bool
    verdict: Verdict


def lines(pair: Pair, rounds: Sequence[Round]) -> list[Line]:
    """What the rounds of a pair say about each of its rows."""
    return [_line(row, rounds) for row in pair.rows]


def _line(row: Row, rounds: Sequence[Round]) -> Line:
    sides = {figure.side for figure in (row.top, row.under) if figure and figure.is_of_load}
    marks = [any(is_marked(each[side]) for side in sides) for each in rounds]
    quiet = counting(marks)
    counted = rounds if quiet is None else [rounds[number] for number in quiet]
    tops = [_number(each, row.top) for each in counted]
    unders = [_number(each, row.under) for each in counted] if row.under else []
    ratio = spread(ratios(tops, unders) if unders else tops)
    return Line(
        row,
        ratio,
        top=spread(tops),
        under=spread(unders) if unders else None,
        used={side: used for side in Side if side in sides and (used := _used([each[side] for each in counted]))},
        rounds=len(rounds),
        quiet=marks.count(False),
        is_busy=quiet is None,
        verdict=verdict(ratio.median, row.bounds),
    )


def is_marked(measurement: Measurement) -> bool:
    """Whether others kept it waiting for a core for too long. One that does not know has no mark."""
    return was_busy(measurement.also.get(QUEUE_SHARE, 0), measurement.also.get(OTHERS_SHARE, 0))


def _used(measurements: Sequence[Measurement]) -> Used | None:
    if not all(OTHERS_SHARE in each.also for each in measurements):
        return None
    medians = (median(each.also[key] for each in measurements) for key in (LOOP_US, CPU_US, QUEUE_SHARE, OTHERS_SHARE))
    return Used(*medians)


def _number(measured: Round, figure: Figure) -> float:
    measurement = measured[figure.side]
    return measurement.value if figure.key == "value" else measurement.also[figure.key]


@dataclass(frozen=True, slots=True)
class Kept:
    """The rounds of a pair's last run, the day it was (ISO 8601), and whether it was but a quick one."""

    rounds: Sequence[Round]
    day: str = ""
    is_quick: bool = False


class Store:
    """Rounds on disk: one JSON file a pair, replaced whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, pair: Pair, kept: Kept) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        rounds = [{side.value: asdict(each[side]) for side in each} for each in kept.rounds]
        text = json.dumps({"day": kept.day, "is_quick": kept.is_quick, "rounds": rounds}, indent=1)
        unfinished = self._path(pair).with_suffix(".part")
        unfinished.write_text(text, "utf-8")
        unfinished.replace(self._path(pair))

    def load(self, pair: Pair) -> Kept:
        """The last run of this pair; no rounds if it never ran."""
        path = self._path(pair)
        if not path.exists():
            return Kept([])
        kept = json.loads(path.read_text("utf-8"))
        rounds = [{Side(side): Measurement(**fields) for side, fields in each.items()} for each in kept.pop("rounds")]
        return Kept(rounds, **kept)

    def _path(self, pair: Pair) -> Path:
        return self._folder / f"{pair.name}.json"
