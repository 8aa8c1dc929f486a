"""The graph over many vectors (hnswlib): a cache that follows its index in the background, while ``Exact`` answers.

hnswlib holds the interpreter's lock while it reads or writes a file. So graphs are loaded before anything is served,
and saved when the library closes. The store has the digest of each file, which is checked before hnswlib sees it: a
damaged one would cause wrong answers or a crash. Without the extra ``hnsw`` there is no graph.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import structlog

from organism.rag.store import Matrix, Rows, SavedGraph, Vector
from organism.rag.vectors import Exact, Ranking, normalized

LEAST_ROWS: Final = 10_000
"""Up to this many, comparing with each is as fast."""
NEIGHBOURS: Final = 16
EF_CONSTRUCTION: Final = 100
EF: Final = 128
"""How many candidates a search keeps: in 98 of 100 cases, ten are then found as by comparing with each."""
PORTION_ROWS: Final = 64
_log = structlog.get_logger("organism")


def installed() -> ModuleType | None:
    """hnswlib, None without the extra."""
    try:
        import hnswlib
    except ImportError:
        return None
    module: ModuleType = hnswlib
    return module


class Graph:
    """A graph over the vectors by ``model`` of ``rows``, rising; other rows that it has are marked in it."""

    def __init__(self, index: Any, model: str, rows: Rows, *, is_saved: bool = False) -> None:
        self._index = index
        self.model = model
        self.rows = rows
        self.dim: int = index.dim
        self.is_saved = is_saved

    @classmethod
    def empty(cls, hnswlib: ModuleType, model: str, dim: int) -> Graph:
        index = hnswlib.Index("ip", dim)
        index.init_index(1, M=NEIGHBOURS, ef_construction=EF_CONSTRUCTION, random_seed=1)
        return cls(index, model, np.empty(0, dtype=np.int64))

    @classmethod
    def load(cls, hnswlib: ModuleType, model: str, dim: int, file: Path) -> Graph:
        """One that was saved. Raises ``RuntimeError``."""
        index = hnswlib.Index("ip", dim)
        index.load_index(os.fsencode(file))
        rows = []
        for row in index.get_ids_list():
            with suppress(RuntimeError):  # it is marked: hnswlib shows that in no other way
                index.mark_deleted(row)
                index.unmark_deleted(row)
                rows.append(row)
        return cls(index, model, np.sort(np.array(rows, dtype=np.int64)), is_saved=True)

    def save(self, file: Path) -> None:
        self._index.save_index(os.fsencode(file))
        self.is_saved = True

    def can_follow(self, rows: Rows) -> bool:
        """Whether at least half of what it then has would be these rows."""
        missing = len(rows) - np.isin(rows, self.rows, assume_unique=True).sum()
        return bool(self._index.get_current_count() + missing <= 2 * len(rows))

    def follow(self, rows: Rows, matrix: Matrix, is_over: threading.Event) -> None:
        """Find only these rows; if there is no time left, some of them. No search runs meanwhile."""
        gone = self.rows[~np.isin(self.rows, rows, assume_unique=True)]
        missing = np.flatnonzero(~np.isin(rows, self.rows, assume_unique=True))
        self.is_saved &= not len(gone) and not len(missing)
        for row in gone.tolist():
            self._index.mark_deleted(row)
        count = self._index.get_current_count() + len(missing)
        if count > self._index.get_max_elements():
            self._index.resize_index(count + count // 4)  # holds the interpreter's lock for 4 ms a 100,000
        while len(missing) and not is_over.is_set():
            at, missing = missing[:PORTION_ROWS], missing[PORTION_ROWS:]
            self._index.add_items(matrix[at], rows[at], num_threads=1)
        self.rows = np.delete(rows, missing) if len(missing) else rows

    def nearest(self, query: Vector, count: int) -> Ranking:
        """(row, cosine) of the nearest to a vector of the length 1. Raises ``RuntimeError`` if too few are found."""
        count = min(count, len(self.rows))
        self._index.set_ef(max(EF, 2 * count))
        rows, distances = self._index.knn_query(query, count, num_threads=1)
        return [(row, 1.0 - far) for row, far in zip(rows[0].tolist(), distances[0].tolist(), strict=True)]


class Graphs:
    """The graphs of one tenant, made in threads of their own; they are saved in ``folder`` if there is one.

    ``hnswlib`` None: there are none. An index of up to ``least_rows`` has none.
    """

    def __init__(self, folder: Path | None, hnswlib: ModuleType | None, least_rows: int = LEAST_ROWS) -> None:
        self._folder = folder
        self._hnswlib = hnswlib
        self._least_rows = least_rows
        self._graphs: dict[str, Graph] = {}
        self._makers: dict[str, threading.Thread] = {}
        self._is_closed = threading.Event()

    def load(self, saved: Mapping[str, SavedGraph]) -> None:
        """Load the saved graphs of these indices whose files are whole; delete other files."""
        if self._hnswlib is None or self._folder is None:
            return
        for index_id, (model, dim, digest) in saved.items():
            file = self._folder / name_of(index_id)
            with suppress(RuntimeError, OSError, MemoryError):
                if digest_of(file) == digest:
                    self._graphs[index_id] = Graph.load(self._hnswlib, model, dim, file)
        names = set(map(name_of, self._graphs))
        for file in self._folder.glob("*"):
            if file.name not in names:
                with suppress(OSError):
                    file.unlink()

    def over(self, index_id: str, model: str, rows: Rows, matrix: Matrix) -> Graph | None:
        """The graph over exactly these rows; None if there is none yet: then a thread makes it.

        Neither array may change later.
        """
        if self._hnswlib is None or len(rows) <= self._least_rows:
            self._graphs.pop(index_id, None)
            return None
        graph = self._graphs.get(index_id)
        if graph is not None and graph.rows is rows and graph.model == model:
            return graph
        maker = self._makers.get(index_id)
        if (maker is None or not maker.is_alive()) and not self._is_closed.is_set():
            given = (index_id, model, self._graphs.pop(index_id, None), rows, matrix)
            maker = threading.Thread(target=self._make, args=given, name="library-graph", daemon=True)
            self._makers[index_id] = maker
            maker.start()
        return None

    def forget(self, index_id: str) -> None:
        """The index was deleted: delete its file."""
        self._graphs.pop(index_id, None)
        if self._folder is not None:
            (self._folder / name_of(index_id)).unlink(missing_ok=True)

    async def close(self) -> dict[str, SavedGraph]:
        """Wait until no thread works any more, and save what has changed, a graph that is half made too."""
        self._is_closed.set()
        for maker in list(self._makers.values()):
            await asyncio.to_thread(maker.join)
        return {} if self._folder is None else await asyncio.to_thread(self._save, self._folder)

    def _make(self, index_id: str, model: str, graph: Graph | None, rows: Rows, matrix: Matrix) -> None:
        assert self._hnswlib is not None  # noqa: S101 - nothing is made without it; narrows the type
        dim = matrix.shape[1]
        try:
            if graph is None or (graph.model, graph.dim) != (model, dim) or not graph.can_follow(rows):
                graph = Graph.empty(self._hnswlib, model, dim)
            graph.follow(rows, matrix, self._is_closed)
            self._graphs[index_id] = graph
        except (RuntimeError, MemoryError) as error:
            _log.warning("library_graph_not_made", index=index_id, error=str(error))

    def _save(self, folder: Path) -> dict[str, SavedGraph]:
        saved, new = {}, folder / "new"
        try:
            for index_id, graph in list(self._graphs.items()):
                if not graph.is_saved:
                    folder.mkdir(mode=0o700, exist_ok=True)
                    graph.save(new)
                    new.chmod(0o600)
                    saved[index_id] = SavedGraph(graph.model, graph.dim, digest_of(new))
                    new.rename(folder / name_of(index_id))
        except OSError as error:
            _log.warning("library_graph_not_saved", error=str(error))
        return saved


def name_of(index_id: str) -> str:
    """What the file of an index is called: a digest, so that no id can be a path."""
    return f"{hashlib.sha256(index_id.encode()).hexdigest()[:32]}.hnsw"


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class Vectors:
    """The vectors of an index: compared with each, or from some ten thousand on by the graph once it has them all."""

    def __init__(self, index_id: str, model: str, dim: int, graphs: Graphs) -> None:
        self._index_id = index_id
        self.model = model
        self._graphs = graphs
        self._exact = Exact(dim)

    @property
    def rows(self) -> Rows:
        return self._exact.rows

    def change(self, rows: Rows, added: Iterable[tuple[Rows, Matrix]]) -> None:
        """Hold the vectors of these rows, in rising order; ``added`` has those of the new rows, in the same order."""
        self._exact.change(rows, added)

    def nearest(self, query: Vector, count: int, among: Rows | None) -> Ranking:
        """(row, cosine) of the nearest, the nearest first; ``among`` only these rows."""
        exact = self._exact
        graph = self._graphs.over(self._index_id, self.model, exact.rows, exact.matrix)
        if among is None and graph is not None:
            with suppress(RuntimeError):  # too few are found because so many are marked
                return graph.nearest(normalized(query), count)
        return exact.nearest(query, count, among)

    def cosines(self, query: Vector, rows: Sequence[int]) -> dict[int, float]:
        """The cosine with each of these rows that it has."""
        return self._exact.cosines(query, rows)
