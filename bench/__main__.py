"""The command line of the bench; `scripts/bench` makes the environments first and then starts this."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from bench import harness, machine, table
from bench.arithmetic import Verdict
from bench.growth import DRAWING, measure_growth
from bench.harness import Effort, ProgramFailed, ProgramSkipped
from bench.places import PAGE, RESULTS, ROOT
from bench.results import Kept, Store, lines
from bench.rows import OWN_ENVIRONMENT, PAIRS, Pair

REPEATS, SECONDS = 5, 2.5
QUICK_REPEATS, QUICK_SECONDS = 2, 1.0


def options(arguments: Sequence[str]) -> argparse.Namespace:
    names = ", ".join(pair.name for pair in PAIRS)
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures the product against rivals and raw limits, by turns, and prints one table of what "
        "was measured so far. Ends with 1 if something that must be reached is missed or a program failed.",
        epilog=f"Names: {names}.",
    )
    parser.add_argument(
        "--only", action="append", type=named, metavar="NAME", help="this pair, or those like 'door-*'; can be repeated"
    )
    parser.add_argument("--missing", action="store_true", help="take a run up again: the pairs without a result")
    parser.add_argument("--repeats", type=int, help=f"rounds of each pair ({REPEATS}; with --quick {QUICK_REPEATS})")
    parser.add_argument("--seconds", type=float, help=f"length of a round ({SECONDS}; with --quick {QUICK_SECONDS})")
    parser.add_argument("--quick", action="store_true", help="few short rounds, smaller logs: to try things out")
    parser.add_argument("--show", action="store_true", help="measure nothing, print what was measured so far")
    parser.add_argument("--growth", action="store_true", help="instead: the curves over messages and agents")
    parser.add_argument("--write", action="store_true", help="put the table of all pairs into docs/benchmarks.md")
    parser.add_argument("--environments", action="store_true", help="print the environments that this needs, and end")
    return parser.parse_args(arguments)


def named(pattern: str) -> list[Pair]:
    """The pairs of this name, or of names like it. Raises ``ArgumentTypeError`` if there is none."""
    pairs = [pair for pair in PAIRS if fnmatchcase(pair.name, pattern)]
    if not pairs:
        raise argparse.ArgumentTypeError(f"expected the name of a pair, got {pattern!r}")
    return pairs


def asked_for(asked: argparse.Namespace) -> list[Pair]:
    """The pairs that are meant: all, unless some are named."""
    return [pair for pair in PAIRS if not asked.only or pair in itertools.chain(*asked.only)]


def chosen(asked: argparse.Namespace, store: Store) -> list[Pair]:
    """The pairs to measure now."""
    if asked.show:
        return []
    return [pair for pair in asked_for(asked) if not (asked.missing and store.load(pair).rounds)]


def environments(pairs: Sequence[Pair]) -> list[str]:
    """What the programs of these pairs need besides the product's own."""
    programs = [program for pair in pairs for program in (pair.rival, pair.prepare) if program]
    return sorted({program.environment for program in programs} - {OWN_ENVIRONMENT})


def effort(asked: argparse.Namespace) -> Effort:
    repeats, seconds = (QUICK_REPEATS, QUICK_SECONDS) if asked.quick else (REPEATS, SECONDS)
    return Effort(asked.repeats or repeats, asked.seconds or seconds, asked.quick)


def say(text: str) -> None:
    print(f"• {text}", file=sys.stderr)


def measure_all(pairs: Sequence[Pair], how: Effort, store: Store) -> list[str]:
    """Measures each pair; one that fails does not keep the others from being measured. Gives the names that failed."""
    failed = []
    for pair in pairs:
        try:
            harness.measure(pair, how, store, say)
        except ProgramSkipped as reason:
            say(f"{pair.name} skipped: {reason}")
        except ProgramFailed as error:
            say(f"{pair.name} failed: {error}")
            failed.append(pair.name)
    return failed


def write(page: Path, results: Mapping[Pair, Kept]) -> str:
    """Puts the table into the page, unless some of it is of a quick run; says what it did."""
    if quick := [pair.name for pair, kept in results.items() if kept.is_quick]:
        return f"Not written: of a quick run are {', '.join(quick)}. Measure them again without --quick."
    measured = [line for pair, kept in results.items() for line in lines(pair, kept.rounds)]
    days = sorted({kept.day for kept in results.values()})
    where = f"Measured {' to '.join(sorted({days[0], days[-1]}))} on {machine.describe()}."
    page.write_text(table.between_markers(page.read_text("utf-8"), f"{where}\n\n{table.markdown(measured)}"), "utf-8")
    return f"The table stands in {page.relative_to(ROOT)}."


def main(arguments: Sequence[str]) -> int:
    asked, store = options(arguments), Store(RESULTS)
    if asked.environments:
        print(*([DRAWING] if asked.growth else environments(chosen(asked, store))))
        return 0
    if asked.growth:
        measure_growth(effort(asked), say)
        return 0
    failed = measure_all(chosen(asked, store), effort(asked), store)
    results = {pair: kept for pair in PAIRS if (kept := store.load(pair)).rounds}
    measured = [line for pair in asked_for(asked) if pair in results for line in lines(pair, results[pair].rounds)]
    if not measured:
        say("Nothing was measured yet: start it without --show.")
        return 1
    print(f"{machine.describe()}\n\n{table.terminal(measured)}")
    if asked.write:
        say(write(PAGE, results))
    missed = [line for line in measured if line.verdict is Verdict.MISSED]
    for line in missed:
        say(f"missed{', but the machine was busy' if line.is_busy else ''}: {line.row.what}")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
