"""The library over the embedding model that ships: questions in German find what they mean, without its words."""

from __future__ import annotations

import pytest

from organism.rag.hashed_words import HashedWords
from tests.server.library.asking import DAMM, PARK, TOR, LibraryClient
from tests.server.served import Served


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
async def test_a_question_finds_the_passage_that_answers_it(hello: Served, mode: str) -> None:
    library = LibraryClient(hello, HashedWords())
    await library.put("berlin-info", TOR, PARK)
    await library.add("berlin-info", DAMM)
    assert (await library.found("berlin-info", "Wo ist der größte Park?", mode=mode))[0] == "d2"
    assert (await library.found("berlin-info", "Where can I go shopping?", mode=mode))[0] == "d3"
    assert (await library.ok("GET", "/berlin-info"))["embedding_model"] == "builtin"


async def test_a_model_that_the_configuration_does_not_name_is_refused(hello: Served) -> None:
    library = LibraryClient(hello, HashedWords())
    error = await library.refused(400, "POST", "/a/documents", {"documents": [TOR], "embedding_model": "none"})
    assert (error["code"], error["param"]) == ("invalid_field", "/embedding_model")
