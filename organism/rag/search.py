"""Search in one index: by vectors, by words, or by both; in the searching thread, over one state of the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from organism.rag import store
from organism.rag.index import Graphs
from organism.rag.question import Hit, Match, Question
from organism.rag.store import InForce
from organism.rag.vectors import Exact, Matrix, Ranking, Rows, Vector, normalized
from organism.rag.words import places, terms
from organism.sqlite.driver import Connection

MOST_INDICES: Final = 16
"""How many indices of a tenant keep their vectors in memory: those searched last."""
CANDIDATES: Final = 40
"""How many hits each part of a hybrid search contributes; more if more are wanted."""
SATURATED: Final = 2.2
"""How many times its idf a word counts at most, however often a text has it: 1 + k1 of FTS5's BM25."""


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


@dataclass(frozen=True, slots=True)
class _LoadedIndex:
    """The rows of an index as of a generation, and the vectors of those that are embedded."""

    generation: int
    rows: Rows
    vectors: Vectors


class _Ranked(NamedTuple):
    """A row that was found, and by what; ``cosine`` is None if its vector was not compared."""

    row: int
    score: float
    cosine: float | None
    matched: tuple[Match, ...]


class Searcher:
    """The searches of one tenant. It belongs to the searching thread."""

    def __init__(self, graphs: Graphs, key: bytes) -> None:
        self._graphs = graphs
        self._key = key
        self._indices: OrderedDict[str, _LoadedIndex] = OrderedDict()

    def search(self, connection: Connection, question: Question) -> list[Hit]:
        """The best hits, the best first. Raises ``StalePosition`` if the generation is over, ``LibraryDamaged``."""
        with store.snapshot(connection, question.index):
            among = _wanted(connection, question)
            found = self._ranked(connection, question, among)
            documents = store.found(connection, question.index, [each.row for each in found])
        asked = terms(question.text)
        return [
            Hit(
                document,
                each.score,
                each.matched,
                None if each.cosine is None else min(1.0, max(0.0, each.cosine)),
                places(document.text, asked) if "keyword" in each.matched else (),
            )
            for document, each in zip(documents, found, strict=True)
        ]

    def _ranked(self, connection: Connection, question: Question, among: Rows | None) -> Sequence[_Ranked]:
        if question.mode == "hybrid":
            return self._by_both(connection, question, question.count, among)
        if question.mode == "vector":
            near = self._by_vector(connection, question, question.count, among)
            return [_Ranked(row, cosine, cosine, ("vector",)) for row, cosine in near]
        telling = self._by_words(connection, question, question.count, among)
        return [_Ranked(row, score, None, ("keyword",)) for row, score in telling]

    def _by_vector(self, connection: Connection, question: Question, count: int, among: Rows | None) -> Ranking:
        if question.vector is None:
            return ()
        return self._vectors(connection, question, question.vector).nearest(question.vector, count, among)

    def _by_words(self, connection: Connection, question: Question, count: int, among: Rows | None) -> Ranking:
        rows, found = self._rows(connection, question.index) if among is None else among, list[tuple[int, float]]()
        for portion in store.rows_with_words(connection, terms(question.text)):
            at = np.array([row for row, _ in portion], dtype=np.int64)
            found += compress(portion, np.searchsorted(rows, at) < np.searchsorted(rows, at, "right"))
            if len(found) >= count:
                break
        return found[:count]

    def _by_both(self, connection: Connection, question: Question, count: int, among: Rows | None) -> Sequence[_Ranked]:
        """Half of the score is the cosine, half is BM25 as a part of its maximum for these words.

        So rare words decide where a text has them, and words that all texts share do not outvote the meaning.
        """
        most, asked = max(CANDIDATES, count), terms(question.text)
        near = nearest = dict(self._by_vector(connection, question, most, among))
        telling = dict(self._by_words(connection, question, most, among))
        if question.vector is not None:
            vectors = self._vectors(connection, question, question.vector)
            near = nearest | vectors.cosines(question.vector, sorted(telling.keys() - near.keys()))
        telling |= store.scores_by_words(connection, asked, sorted(near.keys() - telling.keys()))
        reach = SATURATED * sum(store.idfs(connection, asked)) or 1.0
        scores = {row: near.get(row, 0.0) / 2 + telling.get(row, 0.0) / reach / 2 for row in near.keys() | telling}
        found_by: tuple[tuple[Match, dict[int, float]], ...] = ("keyword", telling), ("vector", nearest)
        return [
            _Ranked(row, score, near.get(row), tuple(name for name, rows in found_by if row in rows))
            for row, score in sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:count]
        ]

    def read_again(self, index_id: str) -> None:
        """Texts of the index were embedded: the next search reads their vectors."""
        if (loaded := self._indices.get(index_id)) is not None:
            self._indices[index_id] = replace(loaded, generation=-1)

    def forget(self, index_id: str) -> None:
        """The index was deleted."""
        self._indices.pop(index_id, None)
        self._graphs.forget(index_id)

    def _rows(self, connection: Connection, index: InForce) -> Rows:
        """The rows of the index as of the generation, from memory if its vectors are there."""
        loaded = self._indices.get(index.index_id)
        if loaded is not None and loaded.generation == index.generation:
            return loaded.rows
        return store.rows_in_force(connection, index)

    def _vectors(self, connection: Connection, question: Question, query: Vector) -> Vectors:
        """The vectors of the index as of the generation, read as far as they changed; some may not be made yet."""
        index_id, generation = question.index.index_id, question.index.generation
        loaded = self._indices.pop(index_id, None)
        if loaded is None or loaded.vectors.model != question.model:
            vectors = Vectors(index_id, question.model, len(query), self._graphs)
            loaded = _LoadedIndex(-1, vectors.rows, vectors)
        if loaded.generation != generation:
            rows, there = store.rows_in_force(connection, question.index), loaded.vectors.rows
            new = store.rows_embedded(connection, np.setdiff1d(rows, there, assume_unique=True), question.model)
            stays = there[np.isin(there, rows, assume_unique=True)]
            made = store.vectors(connection, new, question.model, len(query), self._key)
            loaded.vectors.change(np.sort(np.concatenate([stays, new])), made)
            loaded = _LoadedIndex(generation, rows, loaded.vectors)
        self._indices[index_id] = loaded
        while len(self._indices) > MOST_INDICES:
            self._indices.popitem(last=False)
        return loaded.vectors


def _wanted(connection: Connection, question: Question) -> Rows | None:
    """The rows that the filter leaves; None without one."""
    if not question.wanted:
        return None
    return store.rows_matching(connection, question.index, question.wanted)
