"""The conversation that the product and its rivals are put to. Standard library only: it runs in every environment."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

TURNS, QUICK_TURNS = 1_000, 200
SAMPLES = 11
QUESTION = "And what about number {number}? Say it as you would to a friend who has a minute for it. " * 3
ANSWER = "It is as you would expect, and a little more: the one before it holds too, as does the next. " * 5


def question(number: int) -> str:
    return QUESTION.format(number=number)


def at_begin(taken: Sequence[float]) -> float:
    """The median of the turns around the tenth, in milliseconds."""
    return 1e3 * median(taken[10 - SAMPLES // 2 : 11 + SAMPLES // 2])


def at_end(taken: Sequence[float]) -> float:
    """The median of the last turns, in milliseconds."""
    return 1e3 * median(taken[-SAMPLES:])


def disk_bytes(folder: Path) -> int:
    """All files of a folder, whatever they hold."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
