"""The library over many vectors, which lie in clusters of unequal sizes and along few directions, as those of texts do.

``build`` makes the indices unless they are there: of 10,240 and of 100,096 documents with vectors of 384 numbers, with
their saved graphs. ``recall`` is the part of the ten nearest that a search finds; ``latency`` is the time of a search
for ten, by turns with one in the very same graph by hnswlib itself, which gives numbers of rows and no documents.
``stalls`` is the longest time that the event loop did not turn while eight asked, and how long a start and a stop take.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

import hnswlib
import numpy as np
import uvloop
from numpy.typing import NDArray

from bench import ours
from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from bench.places import SCRATCH
from organism.bootstrap import Parts
from organism.rag.documents import MOST_DOCUMENTS, Document
from organism.rag.graph import EF
from organism.rag.index import name_of
from organism.rag.library import By, Library
from tests.rag import questions

Matrix = NDArray[np.float32]
DIM: Final = 384
CLUSTERS: Final = 1000
NEAREST: Final = 10
QUERIES: Final = 500
ASKERS: Final = 8
TICK_SECONDS: Final = 0.001
SIZES: Final = {"small": 40 * MOST_DOCUMENTS, "large": 391 * MOST_DOCUMENTS}
FOLDER: Final = SCRATCH / "library"
STORE: Final = FOLDER / "data"
UNSAVED: Final = FOLDER / "unsaved"


def drawn(seed: int, count: int) -> Matrix:
    """Vectors of the length 1: a cluster's size falls with its number, a direction's weight with its own."""
    weights = np.arange(1, DIM + 1) ** -0.5
    centres = np.random.default_rng(0).normal(size=(CLUSTERS, DIM)) * weights
    chance = np.random.default_rng(seed)
    shares = 1 / np.arange(1, CLUSTERS + 1)
    chosen = centres[chance.choice(CLUSTERS, count, p=shares / shares.sum())]
    vectors = chosen + 0.7 * weights * chance.normal(size=(count, DIM))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


class Drawn(NamedTuple):
    """A vector for each text, looked up in a microsecond: what is measured is no embedding."""

    vectors: Sequence[NDArray[np.float32]]


class Numbered:
    """Embeddings of texts that begin with the number of their vector, negative for a query."""

    default = "drawn"

    def __init__(self) -> None:
        self.stored, self.queries = drawn(1, SIZES["large"]), drawn(2, QUERIES)
        self._all = np.concatenate([self.stored, self.queries[::-1]])

    async def embed(self, model: str, texts: Sequence[str]) -> Drawn:
        return Drawn([self._all[int(text.partition(" ")[0])] for text in texts])


def graph_file(index_id: str) -> Path:
    """The saved graph of an index."""
    (found,) = STORE.rglob(name_of(index_id))
    return found


async def graph_made(library: Library, index_id: str) -> None:
    """Return once a search goes by the graph: the first one begins to make or load it."""
    await asked(library, index_id, 0)
    for thread in threading.enumerate():
        if thread.name == "library-graph":
            await asyncio.to_thread(thread.join)


async def asked(library: Library, index_id: str, number: int) -> list[int]:
    hits, _ = await library.query(index_id, f"{-1 - number} ", NEAREST, "vector", {})
    return [int(hit.document.id) for hit in hits]


def documents(begin: int) -> list[Document]:
    """As many documents as come at once."""
    passages, _ = questions.read()
    numbers = range(begin, begin + MOST_DOCUMENTS)
    return [Document(str(at), f"{at} {passages[at % len(passages)].text}") for at in numbers]


async def build(vectors: Numbered) -> Measurement:
    if ours.read_stamp(FOLDER) != ours.source_digest():
        ours.empty(FOLDER)
        async with ours.organism(STORE, parts=Parts(embeddings=vectors)) as o:
            library = o.tenant.library
            for index_id, size in SIZES.items():
                for begin in range(0, size, MOST_DOCUMENTS):
                    await library.append(index_id, documents(begin), None, By())
                await graph_made(library, index_id)
        np.save(FOLDER / "stored.npy", vectors.stored)
        np.save(FOLDER / "queries.npy", vectors.queries)
        ours.write_stamp(FOLDER, ours.source_digest())
    return Measurement("library", "documents", sum(SIZES.values()))


async def recall(library: Library, vectors: Numbered) -> Measurement:
    found: dict[str, float] = {}
    for index_id, size in SIZES.items():
        await graph_made(library, index_id)
        hits = 0
        for number in range(QUERIES):
            nearest = np.argpartition(vectors.stored[:size] @ vectors.queries[number], -NEAREST)[-NEAREST:]
            hits += len({*nearest.tolist()} & {*await asked(library, index_id, number)})
        found[index_id] = hits / QUERIES / NEAREST
    return Measurement("library", "recall@10", found["large"], found)


async def latency(library: Library, vectors: Numbered, seconds: float) -> Measurement:
    await graph_made(library, "large")
    bare = hnswlib.Index("ip", DIM)
    bare.load_index(str(graph_file("large")))
    bare.set_ef(EF)
    taken: tuple[list[float], list[float]] = ([], [])
    begin, number = time.perf_counter() + WARM_UP_SECONDS, 0
    while (started := time.perf_counter()) < begin + seconds:
        number = (number + 1) % QUERIES
        await asked(library, "large", number)
        between = time.perf_counter()
        bare.knn_query(vectors.queries[number], NEAREST, num_threads=1)
        if started > begin:
            taken[0].append(between - started)
            taken[1].append(time.perf_counter() - between)
    percentiles = [percentiles_us(each) for each in taken]
    found = {
        "p99_us": percentiles[0]["p99_us"],
        "bare_us": percentiles[1]["p50_us"],
        "bare_p99_us": percentiles[1]["p99_us"],
    }
    found["a_second"] = len(taken[0]) / sum(taken[0])
    return Measurement("library", "us", percentiles[0]["p50_us"], found)


def waited_for_a_processor_s() -> float:
    """How long this thread could have run and did not: the machine was busy."""
    with Path("/proc/thread-self/schedstat").open() as schedstat:
        return int(schedstat.read().split()[1]) / 1e9


async def worst_stall_ms(work: Awaitable[object]) -> float:
    """The longest time that the loop did not turn until the work was done, but for its waits for a processor."""
    worst, working = 0.0, asyncio.ensure_future(work)
    while not working.done():
        began, waited = time.perf_counter(), waited_for_a_processor_s()
        await asyncio.sleep(TICK_SECONDS)
        late = time.perf_counter() - began - TICK_SECONDS
        worst = max(worst, late - (waited_for_a_processor_s() - waited))
    await working
    return worst * 1e3


async def all_ask(library: Library, seconds: float) -> None:
    end = time.perf_counter() + seconds

    async def ask(number: int) -> None:
        while time.perf_counter() < end:
            number = (number + ASKERS) % QUERIES
            await asked(library, "large", number)

    await asyncio.gather(*map(ask, range(ASKERS)))


async def change(library: Library) -> None:
    """Delete a document, and write it and others again, so they get new rows."""
    await library.delete_document("large", "0", By())
    await asked(library, "large", 0)
    await library.append("large", documents(0), None, By())


async def stalls(vectors: Numbered, seconds: float) -> Measurement:
    shutil.rmtree(UNSAVED, ignore_errors=True)
    shutil.copytree(STORE, UNSAVED, ignore=shutil.ignore_patterns("graphs"))
    found: dict[str, float] = {}
    async with ours.organism(UNSAVED, parts=Parts(embeddings=vectors)) as o:
        found["idle_ms"] = await worst_stall_ms(asyncio.sleep(seconds))
        found["making_ms"] = await worst_stall_ms(all_ask(o.tenant.library, seconds))
    began = time.perf_counter()
    async with ours.organism(STORE, parts=Parts(embeddings=vectors)) as o:
        found["start_s"] = time.perf_counter() - began
        library = o.tenant.library
        found["first_ms"] = await worst_stall_ms(graph_made(library, "large"))
        searching = await worst_stall_ms(all_ask(library, seconds))
        found["changing_ms"] = await worst_stall_ms(asyncio.gather(change(library), all_ask(library, seconds)))
        await graph_made(library, "large")
        began = time.perf_counter()
    found["stop_s"] = time.perf_counter() - began
    return Measurement("library", "ms", searching, found)


async def measure(what: str, seconds: float) -> Measurement:
    vectors = Numbered()
    if what == "build":
        return await build(vectors)
    if what == "stalls":
        return await stalls(vectors, seconds)
    async with AsyncExitStack() as stack:
        o = await stack.enter_async_context(ours.organism(STORE, parts=Parts(embeddings=vectors)))
        library = o.tenant.library
        return await recall(library, vectors) if what == "recall" else await latency(library, vectors, seconds)


if __name__ == "__main__":
    options = arguments(__doc__, what=("build", "recall", "latency", "stalls"))
    print(uvloop.run(measure(options.what, options.seconds)).line())
