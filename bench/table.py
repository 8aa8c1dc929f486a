"""The table of the bench, for a terminal and for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence

from bench.arithmetic import Spread, Verdict, short
from bench.results import Line, Used
from bench.rows import Side

HEADINGS = (
    "ratio",
    "measured",
    "ours",
    "rival",
    "µs of ours: loop; all",
    "of the rival",
    "waited for a core (others' part of the cores)",
    "must",
    "aim",
    "verdict",
)
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"

Cells = tuple[str, ...]


def cells(line: Line) -> Cells:
    """A line as text, in the order of ``HEADINGS``; a spread stands as ``median (lowest to highest)``.

    What was measured on too busy a machine says so.
    """
    row, bounds = line.row, line.row.bounds
    return (
        row.what,
        f"{'*busy* ' if line.is_busy else ''}{_with_unit(_spread(line.ratio), row.unit)}",
        "" if line.under is None else _spread(line.top),
        "" if line.under is None else _spread(line.under),
        _microseconds(line.used.get(Side.OURS)),
        _microseconds(line.used.get(Side.RIVAL)),
        _waited(line),
        _with_unit(f"{bounds.better.value} {bounds.must:g}", row.unit) if bounds else "",
        _with_unit(f"{bounds.better.value} {bounds.aim:g}", row.unit) if bounds else "",
        line.verdict.value,
    )


def _spread(of: Spread) -> str:
    if of.low == of.high:
        return short(of.median)
    return f"{short(of.median)} ({short(of.low)} to {short(of.high)})"


def _microseconds(used: Used | None) -> str:
    return f"{short(used.loop_us)}; {short(used.cpu_us)}" if used else ""


def _waited(line: Line) -> str:
    """The share of each side, and how many rounds are not marked for it, unless all of them are."""
    shares = "; ".join(f"{used.queue_share:.0%} ({used.others_share:.0%})" for used in line.used.values())
    return shares if line.quiet == line.rounds else f"{shares}; {line.quiet} of {line.rounds} rounds quiet"


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}".strip()


def markdown(lines: Sequence[Line]) -> str:
    """A Markdown table; a missed bound is bold."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *map(_emphasised, lines)]
    return "\n".join(f"| {' | '.join(each)} |" for each in rows)


def _emphasised(line: Line) -> Cells:
    *others, last = cells(line)
    return (*others, f"**{last}**" if line.verdict is Verdict.MISSED else last)


def terminal(lines: Sequence[Line]) -> str:
    """The same in columns of equal width."""
    rows = [HEADINGS, *map(cells, lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def between_markers(page: str, text: str) -> str:
    """The page with what lies between its two markers replaced.

    Raises ``ValueError`` for a page that lacks them, or has them the wrong way round.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"Expected the lines {BEGIN} and {END}, in this order, and found no such pair.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
