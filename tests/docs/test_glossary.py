"""docs/glossary.md names each word once, in a line of its own."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.tree import read_repository

LINES = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text("utf-8").splitlines()
ROWS = [found[1] for line in LINES if (found := re.fullmatch(r"\| \*\*([^*]+)\*\* \| \S.*\S \|", line))]


def test_each_word_stands_there_once() -> None:
    assert len(ROWS) > 50
    assert [word for word in ROWS if ROWS.count(word) > 1] == []


def test_each_line_is_a_heading_or_one_word_with_its_meaning() -> None:
    others = [line for line in LINES if line.startswith("|") and not line.startswith("| **")]
    assert set(others) == {"| word | meaning |", "|---|---|"}
    assert sum(line.startswith("| **") for line in LINES) == len(ROWS)


def test_each_word_is_one_of_the_program() -> None:
    texts = (source.text for source in read_repository() if source.is_in("organism/") and source.path.endswith(".py"))
    program = re.sub(r"[\s_\-#.`]+", " ", " ".join(texts)).lower()
    assert [word for word in ROWS if word not in program] == []
