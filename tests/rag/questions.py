"""Sets of questions in `tests/golden`, each with the passage that answers it, and how well a library finds it.

- `retrieval`: paragraphs of `docs/` as they once were, and German ones told after them; the questions share as few
  words with them as a person would who has not read them.
- `manuals`: what manual pages say of commands; the questions are by purpose, or by the name of an option.
- `parts`: a catalogue of parts that differ in little but their numbers, by which the questions ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from organism.rag.documents import Document
from organism.rag.library import By, Library
from organism.rag.question import Mode

GOLDEN = Path(__file__).parents[1] / "golden"
INDEX = "passages"
DEPTH = 10
"""A passage that is not among so many is not found."""


class Passage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in an ISO 639-1 language."""

    id: str
    language: str
    text: str


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, and the id of the passage that answers it."""

    passage: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Quality:
    """The part of the questions whose passage came first, or among the first three; and the mean of 1 / its rank."""

    recall_1: float
    recall_3: float
    mrr: float


def read(name: str = "retrieval") -> tuple[list[Passage], list[Asked]]:
    """All passages and all questions of a set."""
    passages, questions = (GOLDEN / name / f"{part}.jsonl" for part in ("passages", "questions"))
    return (
        [msgspec.json.decode(line, type=Passage) for line in passages.read_bytes().splitlines()],
        [msgspec.json.decode(line, type=Asked) for line in questions.read_bytes().splitlines()],
    )


async def fill(library: Library, passages: list[Passage]) -> None:
    """Make the passages an index of the library."""
    given = [Document(each.id, each.text, {"language": each.language}) for each in passages]
    await library.replace(INDEX, given, None, By())


async def quality(library: Library, questions: list[Asked], mode: Mode) -> Quality:
    """How well the library finds the passages."""
    inverse = [await _inverse_rank(library, each, mode) for each in questions]
    count = len(inverse)
    return Quality(
        sum(each == 1 for each in inverse) / count, sum(each >= 1 / 3 for each in inverse) / count, sum(inverse) / count
    )


async def _inverse_rank(library: Library, asked: Asked, mode: Mode) -> float:
    """1 / rank of the passage, 0 if it is not found."""
    hits, _ = await library.query(INDEX, asked.text, DEPTH, mode, {})
    found = [hit.document.id for hit in hits]
    return 1 / (found.index(asked.passage) + 1) if asked.passage in found else 0.0
