"""Vectors without a model, for tests: texts with the same words, or parts of words, are near each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from organism.errors import InvalidField
from organism.rag.vectors import Matrix

DIM: Final = 256
PART_CHARS: Final = 4
_WORD: Final = re.compile(r"\w+")


class Embedded(NamedTuple):
    """A vector for each text."""

    vectors: Matrix


class HashedWords:
    """The twin of ``Embeddings``; ``texts`` are all that it got. Vectors of different ``models`` differ."""

    def __init__(self, *models: str) -> None:
        self._models = models or ("hashed-words",)
        self.texts: list[str] = []

    @property
    def default(self) -> str:
        return self._models[0]

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        if model not in self._models:
            raise InvalidField(f"There is no embedding model {model[:80]!r}.", param="/model")
        self.texts += texts
        matrix: Matrix = np.zeros((len(texts), DIM), dtype=np.float32)
        for at, text in enumerate(texts):
            for word in _WORD.findall(text.lower()):
                for part in {word, *(word[i : i + PART_CHARS] for i in range(len(word) - PART_CHARS + 1))}:
                    matrix[at, crc32(f"{model} {part}".encode()) % DIM] += 1
        return Embedded(matrix)
