"""A filter may leave nothing, one document, or fewer than are wanted: all of them come, and no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import get_args

import pytest
import pytest_asyncio

from organism.rag.documents import Document
from organism.rag.index import Graphs, installed
from organism.rag.library import By, Library
from organism.rag.question import Mode
from tests.rag.libraries import hits, library_with, organism
from tests.rag.test_graph import graphs_are_made

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT, TOP_K = 120, 5
PICKED = (0, 1, TOP_K - 1, TOP_K, TOP_K + 1)


def picked(at: int) -> dict[str, bool]:
    return {f"picked{some}": at % (COUNT // some) == 7 for some in PICKED if some}


def documents() -> list[Document]:
    """For each number of ``PICKED`` so many have it in their metadata, all over the index."""
    return [Document(f"n{at}", f"same words number{at}", picked(at)) for at in range(COUNT)]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["compared", "graph"])
async def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    data = tmp_path_factory.mktemp("filters")
    (data / "own").mkdir()
    graphs = Graphs(data / "own", installed(), 20 if request.param == "graph" else COUNT)
    async with organism(data) as o, library_with(o, data, graphs) as own:
        await own.replace("x", documents(), None, By())
        if request.param == "graph":
            await own.query("x", "same", 1, "vector", {})
            await graphs_are_made()
        yield own


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("count", PICKED)
async def test_a_filter_leaves_what_says_so_and_the_best_of_it_come(library: Library, mode: Mode, count: int) -> None:
    wanted = {f"picked{count}": True}
    found, _ = await library.query("x", "same words", TOP_K, mode, wanted)
    having = {each.id for each in documents() if each.metadata.get(f"picked{count}") is True}
    assert len(having) == count
    assert len(found) == min(count, TOP_K)
    assert {hit.document.id for hit in found} <= having


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_without_a_filter_as_many_come_as_are_wanted(library: Library, mode: Mode) -> None:
    for count in (1, TOP_K, 50):
        assert len(await hits(library, "x", "same words", mode, count)) == count
