"""A graph that grows from nothing, over several sizes, while documents come and go, finds what comparing finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from organism.rag.index import Graphs, Vectors, installed
from organism.rag.vectors import Exact
from tests.rag.test_graph import DIM, meant, portions, recall, rising, saved

LEAST, STEP, GONE, STEPS = 200, 250, 80, 10


async def test_a_graph_that_grows_step_by_step_finds_what_comparing_finds(tmp_path: Path) -> None:
    graphs, file = Graphs(tmp_path, installed(), LEAST), None
    index, exact = Vectors("x", DIM, graphs), Exact(DIM)
    rows = exact.rows
    for step in range(STEPS):
        new, vectors = rising(10_000 * (step + 1), STEP), meant(step + 1, STEP)
        rows = np.concatenate([rows[GONE:], new])
        for each in (index, exact):
            each.change(rows, portions(new, vectors))
        assert recall(index, exact) >= 0.98  # while it is made
        file = await saved(tmp_path, file)
        assert recall(index, exact) >= 0.98
    await graphs.close()
    assert len(exact.rows) == STEP + (STEPS - 1) * (STEP - GONE)


async def test_a_graph_that_shrinks_to_nothing_and_grows_again_finds_what_comparing_finds(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, installed(), LEAST)
    index, exact = Vectors("x", DIM, graphs), Exact(DIM)
    file = None
    for begin in (1, 100_000, 200_000):
        new, vectors = rising(begin, 2 * LEAST), meant(begin, 2 * LEAST)
        for each in (index, exact):
            each.change(exact.rows[:0], ())
        assert index.nearest(vectors[0], 10, None) == []
        for each in (index, exact):
            each.change(new, portions(new, vectors))
        file = await saved(tmp_path, file)
        assert recall(index, exact) >= 0.98
    await graphs.close()
