"""The graph finds what comparing with each finds, whatever came and went, and whatever became of its file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from organism.model.redact import Redactor
from organism.rag.graph import Graph
from organism.rag.index import Graphs, installed
from organism.rag.library import By, Library
from organism.rag.search import Vectors
from organism.rag.store import SavedGraph, Store
from organism.rag.vectors import Exact, Matrix, Rows, normalized
from organism.sqlite.driver import Pysqlite
from organism.testing import Running
from tests.rag.libraries import WORDS, agrees, content, organism, texts

DIM, COUNT, LEAST = 48, 2000, 500
QUERIES = 100


def meant(seed: int, count: int) -> Matrix:
    """Vectors in heaps, as those of texts lie."""
    chance = np.random.default_rng(seed)
    heaps = np.random.default_rng(0).normal(size=(40, DIM))
    return (heaps[chance.integers(0, 40, count)] + 0.7 * chance.normal(size=(count, DIM))).astype(np.float32)


def rising(begin: int, count: int) -> Rows:
    return np.arange(begin, begin + 3 * count, 3, dtype=np.int64)


def portions(rows: Rows, vectors: Matrix) -> Iterator[tuple[Rows, Matrix]]:
    for begin in range(0, len(rows), 256):
        yield rows[begin : begin + 256], vectors[begin : begin + 256]


def files_in(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.is_file()]


def file_in(folder: Path) -> Path:
    """The one file of a folder."""
    (found,) = files_in(folder)
    return found


async def graphs_are_made() -> None:
    """Wait for the threads that make graphs."""
    for thread in threading.enumerate():
        if thread.name == "library-graph":
            await asyncio.to_thread(thread.join)


async def graph_of(graphs: Graphs, index: Vectors, dim: int = DIM) -> Graph:
    """The graph over just what the index has, once it is there: a search begins to make it."""
    index.nearest(np.ones(dim, dtype=np.float32), 1, None)
    await graphs_are_made()
    graph = graphs.over("x", index.model, index.rows, np.empty((0, DIM), dtype=np.float32))
    assert graph is not None
    return graph


def recall(vectors: Vectors | Graph, exact: Exact) -> float:
    """How many of the nearest ten are found."""
    hits = total = 0
    for query in normalized(meant(99, QUERIES)):
        wanted = {row for row, _ in exact.nearest(query, 10, None)}
        found = vectors.nearest(query, 10, *(() if isinstance(vectors, Graph) else (None,)))
        total += len(wanted)
        assert len(found) == len(wanted)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        hits += len(wanted & {row for row, _ in found})
    return hits / total


def both(graphs: Graphs) -> tuple[Vectors, Exact]:
    """An index of vectors, and the same compared one by one."""
    rows, vectors = rising(1, COUNT), meant(1, COUNT)
    index, exact = Vectors("x", "plain", DIM, graphs), Exact(DIM)
    index.change(rows, portions(rows, vectors))
    exact.change(rows, portions(rows, vectors))
    return index, exact


async def test_it_finds_what_comparing_finds() -> None:
    graphs = Graphs(None, installed(), LEAST)
    index, exact = both(graphs)
    assert index.nearest(exact.matrix[7], 10, None) == exact.nearest(exact.matrix[7], 10, None)  # there is no graph yet
    assert recall(await graph_of(graphs, index), exact) >= 0.98
    assert recall(index, exact) >= 0.98
    await graphs.close()


async def test_what_went_is_not_found_and_what_came_is() -> None:
    graphs = Graphs(None, installed(), LEAST)
    index, exact = both(graphs)
    await graph_of(graphs, index)
    rows = exact.rows
    for number in range(1, 7):  # it grows threefold, beyond its first room; a tenth goes each time
        new, vectors = rising(int(rows[-1]) + 2, COUNT // 2), meant(number, COUNT // 2)
        rows = np.concatenate([np.delete(rows, slice(number, None, 10)), new])
        for each in (index, exact):
            each.change(rows, portions(new, vectors))
        assert index.nearest(vectors[0], 1, None) == exact.nearest(vectors[0], 1, None)
        await graph_of(graphs, index)
        assert recall(index, exact) >= 0.98
        assert [index.nearest(vector, 1, None)[0][0] for vector in vectors[:40]] == new[:40].tolist()
    while len(rows) > 2 * LEAST:
        rows = rows[::2]
        for each in (index, exact):
            each.change(rows, ())
        await graph_of(graphs, index)
        assert recall(index, exact) >= 0.98
    for each in (index, exact):
        each.change(rows[:3], ())
    assert recall(index, exact) == 1.0
    index.change(rows[:0], ())
    assert index.nearest(meant(0, 1)[0], 10, None) == []
    await graphs.close()


async def test_a_graph_is_never_more_than_twice_its_rows(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path / "still", installed(), LEAST)
    await graph_of(graphs, both(graphs)[0])
    await graphs.close()
    still = file_in(tmp_path / "still").stat().st_size
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, _ = both(graphs)
    for number in range(1, 6):
        new = rising(int(index.rows[-1]) + 2, COUNT // 2)
        index.change(np.concatenate([index.rows[len(new) :], new]), portions(new, meant(number, len(new))))
        await graph_of(graphs, index)
    await graphs.close()
    assert still <= file_in(tmp_path).stat().st_size <= 2 * still


async def test_rows_that_come_back_are_found() -> None:
    graphs = Graphs(None, installed(), LEAST)
    index, exact = both(graphs)
    gone, vectors = exact.rows[::3], meant(1, COUNT)[::3]
    await graph_of(graphs, index)
    index.change(np.setdiff1d(exact.rows, gone), ())
    await graph_of(graphs, index)
    assert [index.nearest(vector, 1, None)[0][0] for vector in vectors[:40]] != gone[:40].tolist()
    index.change(exact.rows, portions(gone, vectors))
    assert index.nearest(vectors[0], 10, None) == exact.nearest(vectors[0], 10, None)
    await graph_of(graphs, index)
    assert [index.nearest(vector, 1, None)[0][0] for vector in vectors[:40]] == gone[:40].tolist()
    await graphs.close()


@pytest.mark.parametrize("count", [0, 1, 9, 10])
async def test_a_filter_may_leave_any_number(count: int) -> None:
    graphs = Graphs(None, installed(), LEAST)
    index, exact = both(graphs)
    await graph_of(graphs, index)
    among, query = exact.rows[5 : 5 + count], meant(4, 1)[0]
    found = index.nearest(query, 10, among)
    assert found == exact.nearest(query, 10, among)
    assert {row for row, _ in found} == set(among.tolist())
    await graphs.close()


async def saved(folder: Path) -> Mapping[str, SavedGraph]:
    """What is saved when a graph has been made."""
    graphs = Graphs(folder, installed(), LEAST)
    await graph_of(graphs, both(graphs)[0])
    return await graphs.close()


async def test_a_saved_graph_is_used_again_and_saved_when_it_changes(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load(await saved(tmp_path))
    index, exact = both(graphs)
    await graph_of(graphs, index)
    assert recall(index, exact) >= 0.98
    assert await graphs.close() == {}
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load(await saved(tmp_path))
    index, exact = both(graphs)
    for each in (index, exact):
        each.change(exact.rows[::2], ())
    await graph_of(graphs, index)
    changed = await graphs.close()
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load(changed)
    index, _ = both(graphs)
    index.change(exact.rows, ())
    await graph_of(graphs, index)
    assert recall(index, exact) >= 0.98
    assert await graphs.close() == {}


async def test_a_graph_that_is_half_made_is_saved_and_made_to_its_end(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    both(graphs)[0].nearest(meant(0, 1)[0], 1, None)
    half = await graphs.close()
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load(half)
    index, exact = both(graphs)
    await graph_of(graphs, index)
    assert recall(index, exact) >= 0.98
    await graphs.close()


def flip(file: Path) -> None:
    held = bytearray(file.read_bytes())
    for at in range(40, len(held), 1001):
        held[at] ^= 0xFF
    file.write_bytes(held)


def lead_elsewhere(file: Path) -> None:
    """Another neighbour of the first element: hnswlib would believe it."""
    held = bytearray(file.read_bytes())
    held[100:104] = (1).to_bytes(4, "little")
    file.write_bytes(held)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-5000]),
    "empty": lambda file: file.write_bytes(b""),
    "bits flipped": flip,
    "another neighbour": lead_elsewhere,
    "foreign": lambda file: file.write_bytes(b"no graph" * 1000),
    "missing": lambda file: file.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_made_again(tmp_path: Path, damage: str) -> None:
    before = await saved(tmp_path)
    DAMAGES[damage](file_in(tmp_path))
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load(before)
    assert files_in(tmp_path) == []
    index, exact = both(graphs)
    await graph_of(graphs, index)
    assert recall(index, exact) >= 0.98
    assert await graphs.close() == before


async def test_a_file_that_only_its_digest_calls_whole_is_made_again(tmp_path: Path) -> None:
    before, file = (await saved(tmp_path))["x"], file_in(tmp_path)
    file.write_bytes(file.read_bytes()[:-5000])
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load({"x": before._replace(digest=hashlib.sha256(file.read_bytes()).hexdigest())})
    assert not file.exists()
    await graphs.close()


async def test_a_graph_of_an_index_that_was_emptied_and_filled_again_finds_what_comparing_finds() -> None:
    graphs = Graphs(None, installed(), LEAST)
    index, exact = Vectors("x", "plain", DIM, graphs), Exact(DIM)
    for begin in (1, 100_000, 200_000):
        new, vectors = rising(begin, COUNT), meant(begin, COUNT)
        for each in (index, exact):
            each.change(exact.rows[:0], ())
        assert index.nearest(vectors[0], 10, None) == []
        for each in (index, exact):
            each.change(new, portions(new, vectors))
        await graph_of(graphs, index)
        assert recall(index, exact) >= 0.98
    await graphs.close()


async def test_vectors_of_another_model_have_another_graph() -> None:
    graphs = Graphs(None, installed(), LEAST)
    await graph_of(graphs, both(graphs)[0])
    other = Vectors("x", "other", 2 * DIM, graphs)
    rows, vectors = rising(10 * COUNT, COUNT), np.hstack([meant(5, COUNT), meant(6, COUNT)])
    other.change(rows, portions(rows, vectors))
    assert (await graph_of(graphs, other, 2 * DIM)).dim == 2 * DIM
    assert [other.nearest(vector, 1, None)[0][0] for vector in vectors[:40]] == rows[:40].tolist()
    await graphs.close()


async def test_the_same_rows_by_another_model_have_another_graph() -> None:
    graphs = Graphs(None, installed(), LEAST)
    rows, vectors = rising(1, COUNT), meant(7, COUNT)
    before = Vectors("x", "other", DIM, graphs)
    before.change(rows, portions(rows, vectors))
    before.nearest(vectors[0], 1, None)  # a graph of the other model is begun
    index, exact = both(graphs)
    await graph_of(graphs, before)
    await graph_of(graphs, index)
    assert recall(index, exact) >= 0.98
    await graphs.close()


@pytest.mark.parametrize("is_installed", [True, False])
async def test_few_vectors_and_no_library_make_no_graph(tmp_path: Path, *, is_installed: bool) -> None:
    least = COUNT if is_installed else LEAST
    graphs = Graphs(tmp_path / "graphs", installed() if is_installed else None, least)
    graphs.load({})
    index, exact = both(graphs)
    assert recall(index, exact) == 1.0
    assert await graphs.close() == {}
    assert not (tmp_path / "graphs").exists()


async def test_a_folder_that_cannot_be_written_keeps_nothing_from_closing(tmp_path: Path) -> None:
    (tmp_path / "graphs").touch()
    assert await saved(tmp_path / "graphs") == {}


async def test_an_index_that_is_gone_has_no_file(tmp_path: Path) -> None:
    before = await saved(tmp_path)
    graphs = Graphs(tmp_path, installed(), LEAST)
    graphs.load(before)
    graphs.forget("x")
    assert files_in(tmp_path) == []
    await saved(tmp_path)
    (tmp_path / "new").touch()
    graphs.load({})
    assert files_in(tmp_path) == []
    assert await graphs.close() == {}


@pytest.mark.parametrize("since", ["nothing", "restored", "embedded by another model"])
async def test_a_library_uses_the_graph_of_what_it_has_and_no_other(tmp_path: Path, since: str) -> None:
    data, folder = tmp_path / "data", tmp_path / "graphs"
    file = data / "tenants/default/library.sqlite"
    async with organism(data) as o:
        await o.tenant.library.replace("x", texts(**{f"d{at}": f"text {at}" for at in range(30)}), None, By())
    old = file.read_bytes()
    async with organism(data) as o:
        library = with_graphs(o, file, folder)
        await library.open()
        await library.query("x", "text", 5, "vector", {})
        await graphs_are_made()
        await library.close()
        if since == "embedded by another model":
            await o.tenant.library.reembed("x", "other", By())
    made = file_in(folder).stat().st_mtime_ns
    if since == "restored":
        file.write_bytes(old)
    async with organism(data) as o:
        library = with_graphs(o, file, folder)
        await library.open()
        assert [each.stat().st_mtime_ns for each in files_in(folder)] == ([made] if since == "nothing" else [])
        await agrees(library, "x", await content(library, "x") or {}, "text 7")
        await library.close()
    assert (file_in(folder).stat().st_mtime_ns == made) is (since == "nothing")


def with_graphs(o: Running, file: Path, folder: Path) -> Library:
    """The organism's library, whose indices have graphs from 21 documents on."""
    return Library(
        *(Store(file, Pysqlite()), o.views, WORDS),
        graphs=Graphs(folder, installed(), 20),
        recorder=o.tenant,
        head=lambda: o.log.head,
        now_us=lambda: 0,
        random_bytes=os.urandom,
        redactor=Redactor(),
    )


def test_what_is_equally_near_comes_in_order() -> None:
    exact = Exact(2)
    rows = np.array([4, 7, 9, 12], dtype=np.int64)
    exact.change(rows, [(rows, np.array([[0, 1], [1, 0], [0, 2], [0, 0]], dtype=np.float32))])
    found = exact.nearest(np.array([0, 3], dtype=np.float32), 3, None)
    assert [row for row, _ in found] == [4, 9, 7]
    assert [score for _, score in found] == [1.0, 1.0, 0.0]
    assert normalized(np.zeros((1, 2), dtype=np.float32)).tolist() == [[0.0, 0.0]]
