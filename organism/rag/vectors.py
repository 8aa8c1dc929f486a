"""The vectors of an index in memory, and search among them: exact, by the cosine with each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from organism.sqlite.async_connection import PORTION_ROWS

Rows = NDArray[np.int64]
Matrix = NDArray[np.float32]
"""A vector a row."""
Vector = NDArray[np.float32]
Ranking = Sequence[tuple[int, float]]
"""Rows with their scores, the best first."""


def normalized(matrix: Matrix) -> Matrix:
    """The vectors with the length 1; one without direction stays as it is."""
    lengths = np.sqrt(np.vecdot(matrix, matrix))[..., np.newaxis]
    unit: Matrix = matrix / (lengths + (lengths == 0))
    return unit


class Exact:
    """Compares a query with each vector: always right, and as fast as a graph up to some ten thousand."""

    def __init__(self, dim: int) -> None:
        self.rows: Rows = np.empty(0, dtype=np.int64)
        self.matrix: Matrix = np.empty((0, dim), dtype=np.float32)

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self.matrix.shape[1])

    def change(self, rows: Rows, added: Iterable[tuple[Rows, Matrix]]) -> None:
        """Hold the vectors of these rows, in rising order; ``added`` has those of the new rows, in the same order."""
        matrix: Matrix = np.empty((len(rows), self.dim), dtype=np.float32)
        stays = np.flatnonzero(np.isin(self.rows, rows, assume_unique=True))
        for at in np.array_split(stays, 1 + len(stays) // PORTION_ROWS):
            matrix[np.searchsorted(rows, self.rows[at])] = self.matrix[at]
        for portion, vectors in added:
            matrix[np.searchsorted(rows, portion)] = normalized(vectors)
        self.rows, self.matrix = rows, matrix

    def nearest(self, query: Vector, count: int, among: Rows | None) -> Ranking:
        """(row, cosine) of the nearest, the nearest first; ``among`` only these rows."""
        rows, matrix = self.rows, self.matrix
        if among is not None:
            at = np.flatnonzero(np.isin(rows, among, assume_unique=True))
            rows, matrix = rows[at], matrix[at]
        return best(rows, np.vecdot(matrix, normalized(query)), count)

    def cosines(self, query: Vector, rows: Sequence[int]) -> dict[int, float]:
        """The cosine with each of these rows that it has."""
        wanted = np.flatnonzero(np.isin(self.rows, np.array(rows, dtype=np.int64), assume_unique=True))
        found = np.vecdot(self.matrix[wanted], normalized(query))
        return dict(zip(self.rows[wanted].tolist(), found.tolist(), strict=True))


def best(rows: Rows, scores: Vector, count: int) -> Ranking:
    """The highest scores; of equal ones the earlier row."""
    if len(rows) > count:
        kth = np.partition(scores, len(scores) - count)[len(scores) - count]
        at = np.flatnonzero(scores >= kth)
        rows, scores = rows[at], scores[at]
    order = np.lexsort((rows, -scores))[:count]
    return [(int(rows[at]), float(scores[at])) for at in order]
