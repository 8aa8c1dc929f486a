"""A graph over the vectors of an index (hnswlib)."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from organism.rag.vectors import Matrix, Ranking, Rows, Vector

NEIGHBOURS: Final = 16
EF_CONSTRUCTION: Final = 100
EF: Final = 128
"""How many candidates a search keeps: in 98 of 100 cases, ten are then found as by comparing with each."""
PORTION_ROWS: Final = 64


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
