"""Two curves for docs/benchmarks.md: how rate, memory, disk and start grow with messages, and with agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from bench import ours
from bench.harness import Effort, run
from bench.measures.growth import OVER, folder_of
from bench.places import RESULTS, ROOT
from bench.rows import Program

POINTS = {
    "messages": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "agents": (10, 30, 100, 300, 1_000, 3_000, 10_000),
}
QUICK_POINTS = {"messages": (1_000, 10_000), "agents": (10, 100)}
PATIENCE_SECONDS = 1800.0
MEASURE, DRAW = "bench.measures.growth", "bench.draw_growth"
DRAWING = "matplotlib"
"""The environment that draws."""
PICTURES = ROOT / "docs" / "img"

Say = Callable[[str], None]
Point = dict[str, float]


def measure_growth(effort: Effort, say: Say) -> None:
    """Measure each point of both curves and draw them. Raises ``ProgramFailed``."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for over in OVER:
        counts = (QUICK_POINTS if effort.is_quick else POINTS)[over]
        results = RESULTS / f"growth-{over}.json"
        results.write_text(json.dumps({"over": over, "points": _points(over, counts, effort, say)}), "utf-8")
        picture = (RESULTS if effort.is_quick else PICTURES) / f"growth-{over}.svg"
        run(Program(DRAW, DRAWING, arguments=(str(results), str(picture))), effort)
        say(f"The curve over {over} stands in {picture.relative_to(ROOT)}.")


def _points(over: str, counts: Sequence[int], effort: Effort, say: Say) -> list[Point]:
    ours.empty(folder_of(over, counts[0]) if over == "messages" else folder_of(over, counts[0]).parent)
    points: list[Point] = []
    for count in counts:
        loaded = run(Program(MEASURE, arguments=("load", over, str(count))), effort, PATIENCE_SECONDS)
        started = run(Program(MEASURE, arguments=("start", over, str(count))), effort, PATIENCE_SECONDS)
        points.append({"count": count, "hops_a_second": loaded.value, **loaded.also, "start_s": started.value})
        say(f"{count:,} {over}: " + ", ".join(f"{name} {value:,.4g}" for name, value in points[-1].items()))
    return points
