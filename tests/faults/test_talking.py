"""``kill -9`` anywhere in an agent's turn: no recorded answer is asked for again, and the run is what it would be.

Each life is a fork of one process (``talking``); a file outside counts the calls of the model.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faults.lives import ROOT
from tests.faults.talking import TALK
from tests.flows.loop import FOLDED

pytestmark = pytest.mark.faults

UNITS = (*(f"append:{nth}" for nth in range(2, 21, 2)), *(f"committed:{nth}" for nth in range(3, 17, 3)))
BETWEEN = ("call:1", "call:2", "answered_call:1", "answered_call:2", "settled_call:1", "settled_call:2")
SHOWING = (
    *("block:1", "block:2", "block:3", "piece:1", "piece:3", "piece:6"),
    *("entry:1", "entry:3", "entry:6", "shown_entry:2", "shown_entry:5", "end:1"),
)
CASES = (*UNITS, *BETWEEN, *SHOWING)
IN_FLIGHT = {"answered_call", "settled_call", "block", "piece"}
"""Points at which the model was asked, and its answer is not on disk."""
AT_REST = {"call", "entry", "shown_entry", "end"}
"""Points at which no model was asked whose answer is not on disk."""


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came of each case."""
    return _played(tmp_path_factory.mktemp("talking"))


@cache
def _played(folder: Path) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "tests.faults.talking", str(folder), *CASES]
    run = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    told = [orjson.loads(line) for line in run.stdout.splitlines() if line.startswith(b'{"point"')]
    assert run.returncode == 0, run.stderr.decode()
    return {life["point"]: life for life in told}


def test_each_point_of_a_turn_has_its_case() -> None:
    assert {case.partition(":")[0] for case in CASES} >= set(TALK)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_turn_that_is_killed_is_in_the_end_what_it_is_unkilled(lives: dict[str, Any], case: str) -> None:
    life = lives[case]
    assert (life["died"], life["ended"]) == (-signal.SIGKILL, 0)
    assert life["folded"] == FOLDED
    assert (life["done"], life["is_last"], life["replies"]) == (1, True, ["theanswer"])


@pytest.mark.parametrize("case", CASES)
def test_no_recorded_answer_is_asked_for_again(lives: dict[str, Any], case: str) -> None:
    life = lives[case]
    again = len(life["calls"]) - len(set(life["calls"]))
    point = case.partition(":")[0]
    assert set(life["calls"]) == {"1", "4"}
    assert life["recorded"] == [1, 2, 3, 4]
    assert life["held"] == 0
    assert again in ({1} if point in IN_FLIGHT else {0} if point in AT_REST else {0, 1})
