"""The rounds of each pair, kept in a file of its own, so that a run can be taken up again pair by pair."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.arithmetic import Spread, Verdict, ratios, spread, verdict
from bench.load import Measurement
from bench.rows import Figure, Pair, Row, Side

Round = Mapping[Side, Measurement]


@dataclass(frozen=True, slots=True)
class Line:
    """A finished line of the table."""

    row: Row
    ratio: Spread
    top: Spread
    under: Spread | None
    rounds: int
    verdict: Verdict


def lines(pair: Pair, rounds: Sequence[Round]) -> list[Line]:
    """What the rounds of a pair say about each of its rows."""
    return [_line(row, rounds) for row in pair.rows]


def _line(row: Row, rounds: Sequence[Round]) -> Line:
    tops = [_number(each, row.top) for each in rounds]
    unders = [_number(each, row.under) for each in rounds] if row.under else []
    ratio = spread(ratios(tops, unders) if unders else tops)
    under = spread(unders) if unders else None
    return Line(row, ratio, spread(tops), under, len(rounds), verdict(ratio.median, row.bounds))


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
