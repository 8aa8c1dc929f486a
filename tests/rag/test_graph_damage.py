"""A graph's file that is not what was saved: it is made again, and the answers meanwhile are those of comparing."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest

from organism.rag.index import Graphs, Vectors, installed
from tests.rag.test_damage_at_random import DAMAGES
from tests.rag.test_graph import COUNT, DIM, LEAST, both, meant, portions, recall, rising, saved

SEEDS = 2


async def graph_of(folder: Path, dim: int) -> Path:
    """The file of the graph of ``both``, or of vectors with another number of dimensions."""
    graphs = Graphs(folder, installed(), LEAST)
    if dim == DIM:
        both(graphs)
    else:
        rows = rising(1, COUNT)
        vectors = np.resize(meant(1, COUNT), (COUNT, dim)).astype(np.float32)
        Vectors("x", dim, graphs).change(rows, portions(rows, vectors))
    file = await saved(folder)
    await graphs.close()
    return file


async def is_made_again(folder: Path, whole: bytes) -> None:
    """The answers are right, and in the end the file is as it was."""
    graphs = Graphs(folder, installed(), LEAST)
    index, exact = both(graphs)
    assert recall(index, exact) >= 0.98
    while (await saved(folder)).read_bytes() != whole:
        assert recall(index, exact) >= 0.98
    await graphs.close()
    assert recall(index, exact) >= 0.98


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_file_that_was_changed_at_random_is_made_again(tmp_path: Path, damage: str) -> None:
    whole = (await graph_of(tmp_path, DIM)).read_bytes()
    for seed in range(SEEDS):
        held = bytearray(whole)
        DAMAGES[damage](held, random.Random(f"{damage} {seed}"))
        (await saved(tmp_path)).write_bytes(held)
        await is_made_again(tmp_path, whole)


@pytest.mark.parametrize("size", [0, 1, 97, 0.5, 0.999])
async def test_a_file_that_was_cut_while_it_was_saved_is_made_again(tmp_path: Path, size: float) -> None:
    file = await graph_of(tmp_path, DIM)
    whole = file.read_bytes()
    rest = whole[: int(size * len(whole)) if isinstance(size, float) else size]
    name, _, ending = file.name.split(".")
    file.unlink()
    file.with_name(f"{name}.{hashlib.sha256(rest).hexdigest()}.{ending}").write_bytes(rest)
    await is_made_again(tmp_path, whole)


@pytest.mark.parametrize("dim", [DIM - 8, 2 * DIM])
async def test_the_graph_of_vectors_of_another_size_is_not_used(tmp_path: Path, dim: int) -> None:
    (tmp_path / "own").mkdir()
    whole = (await graph_of(tmp_path / "own", DIM)).read_bytes()
    (tmp_path / "other").mkdir()
    await graph_of(tmp_path / "other", dim)
    await is_made_again(tmp_path / "other", whole)


async def test_a_file_of_a_newer_form_is_made_again(tmp_path: Path) -> None:
    file = await graph_of(tmp_path, DIM)
    whole = file.read_bytes()
    held = b"hnsw2\n" + whole
    file.unlink()
    file.with_name(f"{file.name.split('.')[0]}.{hashlib.sha256(held).hexdigest()}.hnsw").write_bytes(held)
    await is_made_again(tmp_path, whole)
