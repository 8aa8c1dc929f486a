"""The vectors of the library's rows compared one by one by sqlite-vec, on a disk: the median of a search for ten."""

import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pysqlite3
import sqlite_vec

from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from bench.rivals.texts import ROOT

FOLDER = ROOT / ".bench" / "library"
NEAREST = 10
TABLE = "CREATE VIRTUAL TABLE vectors USING vec0 (vector FLOAT[384] distance_metric=cosine)"
ADD = "INSERT INTO vectors (rowid, vector) VALUES (?, ?)"
SEARCH = "SELECT rowid, distance FROM vectors WHERE vector MATCH ? AND k = ?"


def measure(seconds: float, file: Path) -> Measurement:
    stored, queries = np.load(FOLDER / "stored.npy"), np.load(FOLDER / "queries.npy")
    with closing(pysqlite3.connect(str(file))) as connection:
        connection.enable_load_extension(True)  # noqa: FBT003 - its only form
        sqlite_vec.load(connection)
        connection.execute(TABLE)
        connection.executemany(ADD, ((row, vector.tobytes()) for row, vector in enumerate(stored)))
        connection.commit()
        taken = []
        begin, number = time.perf_counter() + WARM_UP_SECONDS, 0
        while (started := time.perf_counter()) < begin + seconds or not taken:
            number = (number + 1) % len(queries)
            connection.execute(SEARCH, (queries[number].tobytes(), NEAREST)).fetchall()
            if started > begin:
                taken.append(time.perf_counter() - started)
    return Measurement("sqlite-vec", "us", percentiles_us(taken)["p50_us"])


if __name__ == "__main__":
    asked = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        print(measure(asked.seconds, Path(folder, "vectors.sqlite")).line())
