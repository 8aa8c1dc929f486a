"""The built-in model finds the passage that answers a question, in English and in German."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from organism.rag.documents import MOST_DOCUMENTS
from organism.rag.search import Mode
from organism.testing import running
from tests.rag import questions
from tests.server.served import HELLO

LANGUAGES = ("en", "de")
PARTS: Final[tuple[Mode, ...]] = ("vector", "keyword")
LEAST_RECALL_3 = 0.43


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


async def test_a_hybrid_search_finds_more_than_each_of_its_parts() -> None:
    passages, asked = questions.read()
    async with running(HELLO) as o:
        library = o.tenant.library
        await questions.fill(library, passages)
        for language in LANGUAGES:
            mine = [each for each in asked if each.language == language]
            hybrid = await questions.quality(library, mine, "hybrid")
            assert hybrid.recall_3 >= LEAST_RECALL_3
            for mode in PARTS:
                part = await questions.quality(library, mine, mode)
                assert hybrid.recall_1 >= part.recall_1
                assert hybrid.recall_3 > part.recall_3
                assert hybrid.mrr > part.mrr
