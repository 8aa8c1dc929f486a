"""The graph over many vectors (hnswlib): a cache, made and saved in the background, while ``Exact`` answers.

A graph holds the rows that there were when it was made. Rows that went are marked in it; rows that came are compared
one by one, until they are so many that it is made again. Its file is called by its own digest, which is checked before
hnswlib sees it: of a damaged one it would make wrong answers, or a crash. Without the extra ``hnsw`` there is no graph.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import structlog

from organism.rag.store import Matrix, Rows, Vector
from organism.rag.vectors import Exact, Ranking, normalized

LEAST_ROWS: Final = 10_000
"""Up to so many, comparing with each is as fast."""
NEIGHBOURS: Final = 16
EF_CONSTRUCTION: Final = 100
EF: Final = 128
"""How many candidates a search keeps: with these, ten are found as by comparing with each in 98 of 100 cases."""
PORTION_ROWS: Final = 64
ENDING: Final = ".hnsw"
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
    """A graph over ``rows``, rising, of their vectors by ``model``."""

    def __init__(self, index: Any, rows: Rows, model: str) -> None:
        self._index = index
        self.rows = rows
        self.model = model

    def keep(self, rows: Rows) -> None:
        """Find these rows alone."""
        stays = np.isin(self.rows, rows, assume_unique=True)
        for row in self.rows[~stays].tolist():
            self._index.mark_deleted(row)
        self.rows = self.rows[stays]

    def nearest(self, query: Vector, count: int) -> Ranking:
        """(row, cosine) of the nearest to a vector of the length 1. Raises ``RuntimeError`` if too few are found."""
        count = min(count, len(self.rows))
        if not count:
            return []
        self._index.set_ef(max(EF, 2 * count))
        rows, distances = self._index.knn_query(query, count, num_threads=1)
        return [(int(row), 1.0 - float(far)) for row, far in zip(rows[0], distances[0], strict=True)]


class Graphs:
    """Makes the graphs of one tenant, in threads of their own; they are saved in ``folder`` if there is one.

    ``hnswlib`` None: there are none. An index of up to ``least_rows`` has none.
    """

    def __init__(self, folder: Path | None, hnswlib: ModuleType | None, least_rows: int = LEAST_ROWS) -> None:
        self._least_rows = least_rows
        self._folder = folder
        self._hnswlib = hnswlib
        self._makers: dict[str, threading.Thread] = {}
        self._made: dict[str, Graph] = {}
        self._is_closed = threading.Event()

    def is_wanted(self, exact: Exact, graph: Graph | None) -> bool:
        """Whether a graph is to be made: there are many vectors, and too many of them are in none."""
        if self._hnswlib is None or len(exact.rows) <= self._least_rows:
            return False
        return graph is None or len(exact.rows) - len(graph.rows) > self._least_rows // 10

    def make(self, index_id: str, model: str, rows: Rows, matrix: Matrix) -> None:
        """Begin to make the graph of an index, unless that is under way; neither array is changed any more."""
        maker = self._makers.get(index_id)
        if (maker is None or not maker.is_alive()) and not self._is_closed.is_set():
            maker = threading.Thread(
                target=self._run, args=(index_id, model, rows, matrix), name="library-graph", daemon=True
            )
            self._makers[index_id] = maker
            maker.start()

    def made(self, index_id: str, model: str) -> Graph | None:
        """The graph of the model's vectors that was made since it was asked for last."""
        graph = self._made.pop(index_id, None)
        return graph if graph is not None and graph.model == model else None

    def keep(self, index_ids: Iterable[str]) -> None:
        """There are these indices alone; what a crash or another index has left goes."""
        names = set(map(name_of, index_ids))
        for file in () if self._folder is None else self._folder.glob("*"):
            if file.name.partition(".")[0] not in names or file.suffix != ENDING:
                file.unlink(missing_ok=True)

    def forget(self, index_id: str) -> None:
        """The index is gone: so are its files."""
        self._made.pop(index_id, None)
        for file in self._files(index_id):
            file.unlink(missing_ok=True)

    async def close(self) -> None:
        """Wait until no thread works any more; what is half made is left."""
        self._is_closed.set()
        for maker in self._makers.values():
            await asyncio.to_thread(maker.join)

    def _run(self, index_id: str, model: str, rows: Rows, matrix: Matrix) -> None:
        try:
            index = self._index(index_id, rows, matrix)
            if index is not None:
                self._made[index_id] = Graph(index, rows, model)
        except (RuntimeError, OSError, MemoryError) as error:
            _log.warning("library_graph_not_made", index=index_id, error=str(error))

    def _index(self, index_id: str, rows: Rows, matrix: Matrix) -> Any:
        """The saved graph with what it lacks, or a new one; None if there is no time left."""
        index, held = self._loaded(index_id, rows, matrix)
        missing = np.flatnonzero(~np.isin(rows, held, assume_unique=True))
        for begin in range(0, len(missing), PORTION_ROWS):
            if self._is_closed.is_set():
                return None
            at = missing[begin : begin + PORTION_ROWS]
            index.add_items(matrix[at], rows[at], num_threads=1)
        if len(missing):
            self._save(index_id, index)
        return index

    def _loaded(self, index_id: str, rows: Rows, matrix: Matrix) -> tuple[Any, Rows]:
        """A graph with room for all rows, and which of them it has: that of the file, if it is whole and of these."""
        assert self._hnswlib is not None  # noqa: S101 - nothing is made without it; narrows the type
        dim = matrix.shape[1]
        for file in self._files(index_id):
            index = self._hnswlib.Index("ip", dim)
            with suppress(RuntimeError, OSError):
                if file.stem.rpartition(".")[2] == digest_of(file):
                    index.load_index(str(file), max_elements=2 * len(rows))
                    held = _held(index, rows, matrix)
                    if 2 * len(held) > index.get_current_count():  # else most of it is what has gone
                        return index, held
            file.unlink(missing_ok=True)
        index = self._hnswlib.Index("ip", dim)
        index.init_index(2 * len(rows), M=NEIGHBOURS, ef_construction=EF_CONSTRUCTION, random_seed=1)
        return index, rows[:0]

    def _save(self, index_id: str, index: Any) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        before, new = list(self._files(index_id)), self._folder / f"{name_of(index_id)}.new"
        index.save_index(str(new))
        new.chmod(0o600)
        new.rename(self._folder / f"{name_of(index_id)}.{digest_of(new)}{ENDING}")
        for file in before:
            file.unlink(missing_ok=True)

    def _files(self, index_id: str) -> Iterator[Path]:
        """The saved graphs of an index: one, unless a crash has left another."""
        yield from () if self._folder is None else self._folder.glob(f"{name_of(index_id)}.*{ENDING}")


def _held(index: Any, rows: Rows, matrix: Matrix) -> Rows:
    """Those of the rows that the graph has; others are marked in it. Raises ``RuntimeError`` for another's graph."""
    labels = np.sort(np.asarray(index.get_ids_list(), dtype=np.int64))
    held = labels[np.isin(labels, rows, assume_unique=True)]
    for row in np.setdiff1d(labels, held).tolist():
        with suppress(RuntimeError):  # it is marked already
            index.mark_deleted(row)
    at = np.searchsorted(rows, held)
    for begin in range(0, len(held), PORTION_ROWS):
        portion = slice(begin, begin + PORTION_ROWS)
        if not np.array_equal(index.get_items(held[portion], return_type="numpy"), matrix[at[portion]]):
            raise RuntimeError("It is the graph of other vectors.")
    return held


def name_of(index_id: str) -> str:
    """How the files of an index begin: a digest, so that no id can be a path."""
    return hashlib.sha256(index_id.encode()).hexdigest()[:32]


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class Vectors:
    """The vectors of an index: compared with each, and from some ten thousand on by a graph beside."""

    def __init__(self, index_id: str, model: str, dim: int, graphs: Graphs) -> None:
        self._index_id = index_id
        self.model = model
        self._graphs = graphs
        self._exact = Exact(dim)
        self._graph: Graph | None = None
        self._young = Exact(dim)  # what the graph has not

    @property
    def rows(self) -> Rows:
        return self._exact.rows

    def change(self, rows: Rows, added: Iterable[tuple[Rows, Matrix]]) -> None:
        """Hold the vectors of these rows, rising: those that are new come with ``added``, rising too."""
        self._exact.change(rows, added)
        self._follow()

    def nearest(self, query: Vector, count: int, among: Rows | None) -> Ranking:
        """(row, cosine) of the nearest, the nearest first; ``among`` only these rows."""
        if (made := self._graphs.made(self._index_id, self.model)) is not None:
            self._graph = made
            self._follow()
        if among is None and self._graph is not None:
            with suppress(RuntimeError):  # too few are found: so many are marked
                old = self._graph.nearest(normalized(query), count)
                young = self._young.nearest(query, count, None)
                return sorted([*old, *young], key=lambda each: (-each[1], each[0]))[:count]
        return self._exact.nearest(query, count, among)

    def _follow(self) -> None:
        """Tell the graph what has gone, and have another one made if it lacks too much."""
        graph, exact = self._graph, self._exact
        if graph is not None:
            graph.keep(exact.rows)
            self._young = exact.without(graph.rows)
        if self._graphs.is_wanted(exact, graph):
            self._graphs.make(self._index_id, self.model, exact.rows, exact.matrix)
