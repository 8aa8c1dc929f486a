"""The vectors of the library's rows compared one by one by faiss, in one thread: the median of a search for ten."""

import time

import faiss
import numpy as np

from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from bench.rivals.texts import ROOT

FOLDER = ROOT / ".bench" / "library"
NEAREST = 10


def measure(seconds: float) -> Measurement:
    stored, queries = np.load(FOLDER / "stored.npy"), np.load(FOLDER / "queries.npy")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(stored.shape[1])
    index.add(stored)
    taken = []
    begin, number = time.perf_counter() + WARM_UP_SECONDS, 0
    while (started := time.perf_counter()) < begin + seconds:
        number = (number + 1) % len(queries)
        index.search(queries[number : number + 1], NEAREST)
        if started > begin:
            taken.append(time.perf_counter() - started)
    return Measurement("faiss flat", "us", percentiles_us(taken)["p50_us"])


if __name__ == "__main__":
    print(measure(arguments(__doc__).seconds).line())
