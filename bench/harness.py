"""Runs the two programs of a pair by turns, each in a process of its own, and keeps what they measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.load import SKIPPED, Measurement
from bench.places import ROOT, SCRATCH
from bench.results import Kept, Round, Store, is_marked
from bench.rows import OWN_ENVIRONMENT, Pair, Program, Side
from bench.usage import CPU_US, OTHERS_SHARE, QUEUE_SHARE

PATIENCE_SECONDS, PATIENCE_WITH_LOGS_SECONDS = 300.0, 900.0

Say = Callable[[str], None]


class ProgramFailed(Exception):
    """A program of the bench ended without a measurement; the text holds its last words."""


class ProgramSkipped(Exception):
    """What a program measures is not to be had on this machine; the text says what is missing, and what to do."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each pair is repeated, how long a round lasts, and whether the large logs are small ones."""

    repeats: int
    seconds: float
    is_quick: bool


def measure(pair: Pair, effort: Effort, store: Store, say: Say) -> None:
    """Ours, rival, ours, rival …; the store has all rounds so far after each one.

    Raises ``ProgramFailed`` and ``ProgramSkipped``; the rounds before it are kept.
    """
    if pair.prepare is not None:
        say(f"{pair.name}: preparing")
        run(pair.prepare, effort, PATIENCE_WITH_LOGS_SECONDS)
    rounds: list[Round] = []
    for number in range(min(effort.repeats, pair.most_repeats)):
        rounds.append(_round(pair, effort))
        store.save(pair, Kept(rounds, f"{datetime.now(UTC):%Y-%m-%d}", effort.is_quick))
        say(f"{pair.name}: round {number + 1}: {_figures(rounds[-1])}")


def _round(pair: Pair, effort: Effort) -> Round:
    programs = {Side.OURS: pair.ours, Side.RIVAL: pair.rival}
    return {side: run(program, effort) for side, program in programs.items() if program is not None}


def _figures(measured: Round) -> str:
    return ", ".join(map(_figure, measured.values())) + (" – busy" if any(map(is_marked, measured.values())) else "")


def _figure(each: Measurement) -> str:
    used = each.also
    figure = f"{each.name} {each.value:,.4g} {each.unit}"
    if OTHERS_SHARE not in used:
        return figure
    return f"{figure} ({used[CPU_US]:,.0f} µs each, waited {used[QUEUE_SHARE]:.0%}, others {used[OTHERS_SHARE]:.0%})"


def run(program: Program, effort: Effort, patience_seconds: float = PATIENCE_SECONDS) -> Measurement:
    """What the program measured: the last line of its standard output.

    Raises ``ProgramFailed`` and ``ProgramSkipped``.
    """
    command = [str(interpreter(program.environment)), "-m", program.module, *program.arguments]
    command += ["--seconds", str(effort.seconds)]
    command += ["--in-flight", str(program.in_flight)] if program.in_flight else []
    command += ["--quick"] if effort.is_quick and program.environment == OWN_ENVIRONMENT else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    try:
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=patience_seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{program.module} did not end within {patience_seconds:g} s: it hangs.") from error
    if ended.returncode == SKIPPED:
        raise ProgramSkipped(ended.stderr.strip())
    if ended.returncode:
        raise ProgramFailed(f"{program.module} ended with {ended.returncode}:\n{ended.stderr[-2000:].strip()}")
    return measurement(program, ended.stdout)


def measurement(program: Program, output: str) -> Measurement:
    """The measurement in the last line of what the program printed. Raises ``ProgramFailed``."""
    last = output.rstrip().rpartition("\n")[2]
    try:
        return Measurement(**json.loads(last))
    except (ValueError, TypeError) as error:
        raise ProgramFailed(f"{program.module}: expected one line of JSON at the end, got {last!r}.") from error


def interpreter(environment: str) -> Path:
    """The Python of an environment; that of this process for the product's own. Raises ``ProgramSkipped``."""
    if environment == OWN_ENVIRONMENT:
        return Path(sys.executable)
    python = SCRATCH / environment / "bin" / "python"
    if not python.exists():
        raise ProgramSkipped(
            f"The environment {environment} is not there: start the bench by scripts/bench, which makes it, or says "
            "why it cannot."
        )
    return python
