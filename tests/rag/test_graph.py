"""The graph finds what comparing with each finds, whatever came and went, and whatever became of its file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from organism.rag.index import Graph, Graphs, Vectors, installed
from organism.rag.store import Matrix, Rows
from organism.rag.vectors import Exact, normalized

DIM, COUNT, LEAST = 48, 2000, 500
QUERIES = 100
PATIENCE_SECONDS = 20


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


def listed(folder: Path) -> list[Path]:
    return [*folder.iterdir()]


async def saved(folder: Path, before: Path | None = None) -> Path:
    """The file of the graph, once there is another than before."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = [each for each in await asyncio.to_thread(listed, folder) if each.suffix == ".hnsw"]
            if len(found) == 1 and found[0] != before:
                return found[0]


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


async def test_it_finds_what_comparing_finds(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = both(graphs)
    assert recall(index, exact) == 1.0  # there is no graph yet
    await saved(tmp_path)
    await graphs.close()
    graph = graphs.made("x", "plain")
    assert graph is not None
    assert recall(graph, exact) >= 0.98


async def test_what_went_is_not_found_and_what_came_is(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = both(graphs)
    before = await saved(tmp_path)
    assert recall(index, exact) >= 0.98
    new, vectors = rising(3 * COUNT + 1, 40), meant(2, 40)
    rows = np.concatenate([exact.rows[::2], new])
    for each in (index, exact):
        each.change(rows, portions(new, vectors))
    assert recall(index, exact) >= 0.98
    assert {index.nearest(vector, 1, None)[0][0] for vector in vectors} == set(new.tolist())
    more, vectors = rising(6 * COUNT + 1, LEAST), meant(3, LEAST)
    rows = np.concatenate([rows, more])
    for each in (index, exact):
        each.change(rows, portions(more, vectors))
    await saved(tmp_path, before)
    assert recall(index, exact) >= 0.98
    few = rows[:3]
    for each in (index, exact):
        each.change(few, ())
    assert recall(index, exact) == 1.0
    for each in (index, exact):
        each.change(few[:0], ())
    assert index.nearest(vectors[0], 10, None) == []
    await graphs.close()


@pytest.mark.parametrize("count", [0, 1, 9, 10])
async def test_a_filter_may_leave_any_number(tmp_path: Path, count: int) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = both(graphs)
    await saved(tmp_path)
    among, query = exact.rows[5 : 5 + count], meant(4, 1)[0]
    found = index.nearest(query, 10, among)
    assert found == exact.nearest(query, 10, among)
    assert {row for row, _ in found} == set(among.tolist())
    await graphs.close()


async def test_a_saved_graph_is_used_again(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    both(graphs)
    file = await saved(tmp_path)
    await graphs.close()
    written = file.stat().st_mtime_ns
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = both(graphs)
    await graphs.close()
    assert recall(index, exact) >= 0.98
    assert (await saved(tmp_path), file.stat().st_mtime_ns) == (file, written)


def flip(file: Path) -> None:
    held = bytearray(file.read_bytes())
    for at in range(40, len(held), 1001):
        held[at] ^= 0xFF
    file.write_bytes(held)


def rename(file: Path) -> None:
    """The file says itself that it is whole."""
    flip(file)
    name, _, ending = file.name.split(".")
    file.rename(file.with_name(f"{name}.{'0' * 64}.{ending}"))


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
    "called otherwise": rename,
    "foreign": lambda file: file.write_bytes(b"no graph" * 1000),
    "missing": lambda file: file.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_made_again(tmp_path: Path, damage: str) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    both(graphs)
    file = await saved(tmp_path)
    whole = file.read_bytes()
    await graphs.close()
    DAMAGES[damage](file)
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = both(graphs)
    assert recall(index, exact) >= 0.98
    while (found := await saved(tmp_path)).read_bytes() != whole:
        assert found.parent == tmp_path
    assert recall(index, exact) >= 0.98
    await graphs.close()


async def test_the_graph_of_other_vectors_is_not_used(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    rows, vectors = rising(1, COUNT), meant(7, COUNT)
    Vectors("x", "plain", DIM, graphs).change(rows, portions(rows, vectors))
    file = await saved(tmp_path)
    await graphs.close()
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = both(graphs)
    await saved(tmp_path, file)
    assert recall(index, exact) >= 0.98
    await graphs.close()


async def test_a_graph_that_was_being_made_when_the_model_changed_is_not_used(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    rows, vectors = rising(1, COUNT), meant(7, COUNT)
    Vectors("x", "other", DIM, graphs).change(rows, portions(rows, vectors))
    index, exact = both(graphs)
    await saved(tmp_path)
    assert recall(index, exact) >= 0.98
    await graphs.close()


@pytest.mark.parametrize("is_installed", [True, False])
async def test_few_vectors_and_no_library_make_no_graph(tmp_path: Path, *, is_installed: bool) -> None:
    least = COUNT if is_installed else LEAST
    graphs = Graphs(tmp_path / "graphs", installed() if is_installed else None, least)
    index, exact = both(graphs)
    await graphs.close()
    assert recall(index, exact) == 1.0
    assert not (tmp_path / "graphs").exists()


async def test_an_index_that_is_gone_has_no_file(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    both(graphs)
    file = await saved(tmp_path)
    graphs.keep(["x"])
    assert file.exists()
    graphs.forget("x")
    assert not file.exists()
    (tmp_path / f"{file.name.partition('.')[0]}.new").touch()
    (tmp_path / f"{'0' * 32}.{'0' * 64}.hnsw").touch()
    graphs.keep(["x"])
    assert listed(tmp_path) == []
    await graphs.close()


def test_what_is_equally_near_comes_in_order() -> None:
    exact = Exact(2)
    rows = np.array([4, 7, 9, 12], dtype=np.int64)
    exact.change(rows, [(rows, np.array([[0, 1], [1, 0], [0, 2], [0, 0]], dtype=np.float32))])
    found = exact.nearest(np.array([0, 3], dtype=np.float32), 3, None)
    assert [row for row, _ in found] == [4, 9, 7]
    assert [score for _, score in found] == [1.0, 1.0, 0.0]
    assert normalized(np.zeros((1, 2), dtype=np.float32)).tolist() == [[0.0, 0.0]]
