"""The built-in model finds the passage that answers a question, in English and in German."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, get_args

import pytest

from organism.rag.documents import MOST_DOCUMENTS, Document
from organism.rag.library import By
from organism.rag.question import Mode
from organism.testing import running
from tests.rag import questions
from tests.server.served import HELLO

LANGUAGES = ("en", "de")
SETS: Final = {"retrieval": 0.48, "manuals": 0.88, "parts": 0.95}
"""The part of the questions of each set whose passage must be among the first three."""
ORDINARY: Final = frozenset({"retrieval", "manuals"})
"""The sets whose questions are sentences: of those also the first hit is no worse than that of the better part."""
TOLERANCE: Final = 0.01


def repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_each_question_has_its_passage_in_its_own_language() -> None:
    passages, asked = questions.read()
    languages = {each.id: each.language for each in passages}
    assert len(passages) == len(languages) <= MOST_DOCUMENTS
    assert repeated([each.text for each in passages]) == []
    assert [each for each in asked if languages.get(each.passage) != each.language] == []
    assert repeated([each.text for each in asked]) == []


def test_there_are_questions_enough_in_both_languages() -> None:
    _, asked = questions.read()
    counted = Counter(each.language for each in asked)
    assert counted.keys() == set(LANGUAGES)
    assert counted.total() >= 200
    assert min(counted.values()) >= 80


@pytest.mark.parametrize(("name", "least_recall_3"), SETS.items())
async def test_a_hybrid_search_finds_as_much_as_the_better_of_its_parts(name: str, least_recall_3: float) -> None:
    passages, asked = questions.read(name)
    async with running(HELLO) as o:
        library = o.tenant.library
        await questions.fill(library, passages)
        by_mode = {mode: await questions.quality(library, asked, mode) for mode in get_args(Mode)}
    hybrid = by_mode["hybrid"]
    assert hybrid.recall_3 >= least_recall_3
    for part in by_mode.values():
        assert hybrid.recall_3 >= part.recall_3 - TOLERANCE
        if name in ORDINARY:
            assert hybrid.recall_1 >= part.recall_1 - TOLERANCE
            assert hybrid.mrr >= part.mrr


async def test_a_score_tells_a_document_that_fits_from_one_that_does_not_within_an_answer() -> None:
    """1 would be a text that means just what is asked and has all of its words as often as counts."""
    async with running(HELLO) as o:
        library = o.tenant.library
        given = {"belt": "Toothed belt BT-4711", "seal": "Hydraulic seal KX-3041", "park": "The largest park"}
        await library.replace("x", [Document(name, text) for name, text in given.items()], None, By())
        hits, _ = await library.query("x", "KX-3041", 3, "hybrid", {})
        scores = [hit.score for hit in hits]
        assert hits[0].document.id == "seal"
        assert scores == sorted(scores, reverse=True)
        assert max(scores) <= 1
        assert scores[0] > 2 * scores[1]
