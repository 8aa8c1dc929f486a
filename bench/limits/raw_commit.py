"""One row of 600 bytes, one commit, one after another: what one durable commit takes (median, 99th percentile)."""

from __future__ import annotations

import time

from bench.limits.raw_sqlite import BODY, INSERT, plain_table
from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us


def measure(seconds: float) -> Measurement:
    latencies: list[float] = []
    position = 0
    with plain_table() as connection:
        begin = time.perf_counter() + WARM_UP_SECONDS
        end = begin + seconds
        while (started := time.perf_counter()) < end:
            position += 1
            connection.execute(INSERT, (position, "t", BODY))
            if started >= begin:
                latencies.append(time.perf_counter() - started)
    also = percentiles_us(latencies)
    return Measurement("raw FULL commit", "µs", also["p50_us"], also)


if __name__ == "__main__":
    print(measure(arguments(__doc__).seconds).line())
