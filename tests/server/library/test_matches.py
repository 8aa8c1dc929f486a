"""Each result of a search says why it was found: by words, by meaning or by both, how near, and where its words are."""

from __future__ import annotations

from typing import Any

import pytest

from organism.rag.words import MOST_PLACES
from tests.server.library.asking import DAMM, PARK, TOR, LibraryClient
from tests.server.library.test_background import Held, accepted, with_library


async def results(library: LibraryClient, query: str, **fields: Any) -> dict[str, Any]:
    answer = await library.ok("POST", "/a/query", {"query": query, **fields})
    return {each["id"]: each for each in answer["results"]}


def highlighted(found: dict[str, Any]) -> list[str]:
    return [found["text"][start:end] for start, end in found["highlights"]]


async def test_what_has_a_word_is_told_from_what_is_only_near(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK, DAMM)
    found = await results(library, "Der größte Park", top_k=3)
    assert {name: each["matched"] for name, each in found.items()} == {
        "d1": ["vector"],
        "d2": ["keyword", "vector"],
        "d3": ["keyword", "vector"],
    }
    assert highlighted(found["d2"]) == ["Der", "der", "größte", "Park"]
    assert (highlighted(found["d3"]), highlighted(found["d1"])) == (["Der"], [])
    assert all(0 <= each["similarity"] <= 1 for each in found.values())


async def test_a_search_by_words_compares_no_vectors(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    (found,) = (await results(library, "park", mode="keyword")).values()
    assert (found["matched"], found["similarity"], highlighted(found)) == (["keyword"], None, ["Park"])


async def test_a_search_by_vectors_names_the_cosine_and_no_words(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    found = (await results(library, TOR["text"], mode="vector"))["d1"]
    assert (found["matched"], found["highlights"]) == (["vector"], [])
    assert found["similarity"] == pytest.approx(1.0)
    assert found["similarity"] <= 1


async def test_what_is_not_embedded_yet_has_no_similarity() -> None:
    async with with_library(Held()) as library:
        await accepted(library, "a/documents", PARK)
        (found,) = (await results(library, "query Park")).values()
        assert (found["matched"], found["similarity"]) == (["keyword"], None)


@pytest.mark.parametrize(
    ("text", "query", "places"),
    [
        ("Un CAFÉ, s'il vous plaît", "cafe plait", ["CAFÉ", "plaît"]),
        ("Un cafe\u0301 noir", "café", ["cafe\u0301"]),
        ("parking at the park", "park", ["park"]),
        ("🙂 emoji before park", "park", ["park"]),
        ("snake_case_name", "case", ["case"]),
        ("私は東京都に住む", "東京都", ["東京都"]),
        ("猫が好き。猫", "猫", ["猫", "猫"]),
        ("新しい\uff2c\uff29\uff2e\uff35\uff38の本", "linux", ["\uff2c\uff29\uff2e\uff35\uff38"]),
        ("ｶﾞﾗｽのﾃｰﾌﾞﾙ", "ガラス", ["ｶﾞﾗｽ"]),
        ("葛\U000e0100飾区の地図", "葛飾", ["葛\U000e0100飾"]),
        ("서울에서 친구를", "서울", ["서울"]),
        ("東京 and Tokyo", "tokyo 東京", ["東京", "Tokyo"]),
        ("AND OR NOT", '"or"', ["OR"]),
    ],
)
async def test_highlights_are_the_characters_of_the_words(
    library: LibraryClient, text: str, query: str, places: list[str]
) -> None:
    await library.put("a", {"id": "x", "text": text})
    (found,) = (await results(library, query, mode="keyword")).values()
    assert highlighted(found) == places


async def test_only_the_first_places_are_shown(library: LibraryClient) -> None:
    await library.put("a", {"id": "x", "text": "word " * 200})
    (found,) = (await results(library, "word")).values()
    assert found["highlights"] == [[at * 5, at * 5 + 4] for at in range(MOST_PLACES)]
