"""A graph's file that is not what was saved: it is made again, and the answers meanwhile are those of comparing."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from organism.rag.index import Graphs, installed
from organism.rag.store import SavedGraph
from tests.rag.test_damage_at_random import DAMAGES
from tests.rag.test_graph import LEAST, both, file_in, graph_of, recall, saved

SEEDS = 2


async def is_made_again(folder: Path, named: Mapping[str, SavedGraph], whole: Mapping[str, SavedGraph]) -> None:
    """The answers are right, and in the end the file is as it was."""
    graphs = Graphs(folder, installed(), LEAST)
    graphs.load(named)
    index, exact = both(graphs)
    assert recall(index, exact) >= 0.98
    await graph_of(graphs, index)
    assert recall(index, exact) >= 0.98
    assert await graphs.close() == whole


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_file_that_was_changed_at_random_is_made_again(tmp_path: Path, damage: str) -> None:
    whole = await saved(tmp_path)
    for seed in range(SEEDS):
        held = bytearray(file_in(tmp_path).read_bytes())
        DAMAGES[damage](held, random.Random(f"{damage} {seed}"))
        file_in(tmp_path).write_bytes(held)
        await is_made_again(tmp_path, whole, whole)


@pytest.mark.parametrize(
    "rest", ["nothing", "one byte", "97 bytes", "half", "almost all", "what a newer form begins with"]
)
async def test_a_file_that_is_whole_by_its_digest_alone_is_made_again(tmp_path: Path, rest: str) -> None:
    whole, file = await saved(tmp_path), file_in(tmp_path)
    held = file.read_bytes()
    file.write_bytes(
        {
            "nothing": b"",
            "one byte": held[:1],
            "97 bytes": held[:97],
            "half": held[: len(held) // 2],
            "almost all": held[: len(held) - len(held) // 1000],
            "what a newer form begins with": b"hnsw2\n" + held,
        }[rest]
    )
    named = {"x": whole["x"]._replace(digest=hashlib.sha256(file.read_bytes()).hexdigest())}
    await is_made_again(tmp_path, named, whole)
