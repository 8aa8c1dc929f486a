"""The events of the log that `bench.measures.restart build` made, read by raw SQL: events a second.

The log keeps the events of one decision as one row, in JSON. What a fold needs are the events' columns: position,
thread, type and fields. The headline is one SELECT that gives these, a row an event. `also.units` is the rate if the
stored rows are read as they lie, without looking into them: no fold can come near it, since it has to look.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pysqlite3

from bench.load import Measurement, arguments
from bench.places import LOG_FILE, log_folder
from organism.sqlite.driver import uri_of

COLUMNS = (
    "SELECT first + event.key, units.thread, event.value ->> 'event', event.value"
    " FROM (SELECT first, CAST(body AS TEXT) AS text, CAST(body AS TEXT) ->> 3 AS thread FROM units) AS units,"
    " json_each(units.text, '$[7]') AS event"
)
UNITS = "SELECT first, digest, body, hash FROM units ORDER BY first"


def read_seconds(connection: pysqlite3.Connection, query: str) -> tuple[float, int]:
    """How long all rows take, and how many they are."""
    began = time.perf_counter()
    count = sum(1 for _ in connection.execute(query))
    return time.perf_counter() - began, count


def measure(folder: Path) -> Measurement:
    with closing(pysqlite3.connect(uri_of(folder / LOG_FILE, read_only=True), uri=True)) as connection:
        seconds, events = read_seconds(connection, COLUMNS)
        units_seconds, _ = read_seconds(connection, UNITS)
    return Measurement("raw SELECT", "events/s", events / seconds, {"units": events / units_seconds, "events": events})


if __name__ == "__main__":
    print(measure(log_folder(is_quick=arguments(__doc__).quick)).line())
