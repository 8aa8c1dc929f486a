"""Search in one index: by vectors, by words, or by both; in the reading thread, over one state of the store."""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, Literal

import numpy as np

from organism.rag import store
from organism.rag.documents import Document
from organism.rag.index import Graphs, Vectors
from organism.rag.store import InForce, Rows, Vector
from organism.rag.vectors import Ranking
from organism.sqlite.driver import Connection

Mode = Literal["vector", "keyword", "hybrid"]
MOST_INDICES: Final = 16
"""The vectors of so many indices of a tenant stay in memory, those that were asked last."""
MOST_WORDS: Final = 64
DEPTH: Final = 4
"""Each part of a hybrid search looks for so many times the documents that are wanted, and at least ``LEAST_DEPTH``."""
LEAST_DEPTH: Final = 20
RANK_CONSTANT: Final = 5
"""That of reciprocal rank fusion: how little the first ranks differ. By 60 a good model is outvoted too often."""
WEIGHTS: Final[Mapping[str, float]] = {"vector": 1.0, "keyword": 0.7}
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for in an index as of a generation: ``text`` by its words, ``vector`` by what is near it.

    ``vector`` is by the index's ``model``.
    """

    index: InForce
    mode: Mode
    text: str
    model: str
    vector: Vector | None
    count: int
    wanted: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found. A score compares with those of the same answer alone, but for cosines."""

    document: Document
    score: float


class Searcher:
    """The searches of one tenant. It belongs to the reading thread."""

    def __init__(self, graphs: Graphs, key: bytes) -> None:
        self._graphs = graphs
        self._key = key
        self._indices: OrderedDict[str, tuple[int, Vectors]] = OrderedDict()

    def search(self, connection: Connection, question: Question) -> list[Hit]:
        """The best hits, the best first. Raises ``StalePosition`` if the generation is over, ``LibraryDamaged``."""
        with store.snapshot(connection, question.index):
            among = _wanted(connection, question)
            rankings = {
                mode: self._ranking(connection, question, mode, among)
                for mode in ("vector", "keyword")
                if question.mode in {mode, "hybrid"}
            }
            ranking = fused(rankings) if question.mode == "hybrid" else rankings[question.mode]
            chosen = ranking[: question.count]
            documents = store.found(connection, question.index, [row for row, _ in chosen])
        return [Hit(document, score) for document, (_, score) in zip(documents, chosen, strict=True)]

    def _ranking(self, connection: Connection, question: Question, mode: str, among: Rows | None) -> Ranking:
        is_part = question.mode == "hybrid"
        count = max(LEAST_DEPTH, DEPTH * question.count) if is_part else question.count
        if mode == "keyword":
            rows = self._rows(connection, question.index) if among is None else among
            return _by_words(connection, question.text, count, rows)
        if question.vector is None:
            return ()
        vectors = self._vectors(connection, question, len(question.vector))
        return vectors.nearest(question.vector, count, among)

    def forget(self, _: Connection, index_id: str) -> None:
        """The index is gone."""
        self._indices.pop(index_id, None)
        self._graphs.forget(index_id)

    def _rows(self, connection: Connection, index: InForce) -> Rows:
        """Those of the index as of the generation, from memory if its vectors are there."""
        generation, held = self._indices.get(index.index_id, (-1, None))
        if held is not None and generation == index.generation:
            return held.rows
        return store.rows_in_force(connection, index)

    def _vectors(self, connection: Connection, question: Question, dim: int) -> Vectors:
        """The vectors of the index as of the generation, read as far as they changed."""
        index_id = question.index.index_id
        generation, held = self._indices.pop(index_id, (-1, None))
        if held is None or held.model != question.model:
            generation, held = -1, Vectors(index_id, question.model, dim, self._graphs)
        if generation != question.index.generation:
            rows = store.rows_in_force(connection, question.index)
            new = rows[~np.isin(rows, held.rows, assume_unique=True)]
            held.change(rows, store.vectors(connection, new, question.model, dim, self._key))
        self._indices[index_id] = (question.index.generation, held)
        while len(self._indices) > MOST_INDICES:
            self._indices.popitem(last=False)
        return held


def fused(rankings: Mapping[str, Ranking]) -> Ranking:
    """Reciprocal rank fusion, weighted: each ranking gives a row its weight over the rank, counted from a constant."""
    scores: dict[int, float] = {}
    for name, ranking in rankings.items():
        for rank, (row, _) in enumerate(ranking, 1):
            scores[row] = scores.get(row, 0.0) + WEIGHTS[name] / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


def expression_of(text: str) -> str:
    """What FTS5 is asked for: any of the text's words, each quoted, so that none is taken for an operator."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(unicodedata.normalize("NFC", text)))
    return " OR ".join(f'"{word}"' for word in list(words)[:MOST_WORDS])


def _by_words(connection: Connection, text: str, count: int, among: Rows) -> Ranking:
    expression, found = expression_of(text), list[tuple[int, float]]()
    for portion in store.rows_with_words(connection, expression) if expression else ():
        rows = np.array([row for row, _ in portion], dtype=np.int64)
        found += compress(portion, np.searchsorted(among, rows) < np.searchsorted(among, rows, "right"))
        if len(found) >= count:
            break
    return found[:count]


def _wanted(connection: Connection, question: Question) -> Rows | None:
    """The rows that the filter leaves; None without one."""
    if not question.wanted:
        return None
    return store.rows_matching(connection, question.index, question.wanted)
