"""Rows of 600 bytes in groups of 256, a durable commit each: rows a second.

The headline is one statement a group, which spreads a JSON array: so rows reach SQLite in a process that also has to
run an event loop, since the interpreter's lock is given up once a group instead of once a row. `also.executemany` is
the plain loop over rows in one transaction; it is faster here, where nothing else wants the interpreter. Half of the
time each.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson
import pysqlite3

from bench.limits.raw_sqlite import BODY, INSERT, INSERT_ARRAY, plain_table
from bench.load import WARM_UP_SECONDS, Measurement, arguments

GROUP = 256

Values = tuple[int, str, str]
Write = Callable[[pysqlite3.Connection, list[Values]], None]


def by_executemany(connection: pysqlite3.Connection, rows: list[Values]) -> None:
    connection.execute("BEGIN")
    connection.executemany(INSERT, rows)
    connection.execute("COMMIT")


def by_one_statement(connection: pysqlite3.Connection, rows: list[Values]) -> None:
    connection.execute(INSERT_ARRAY, (orjson.dumps(rows).decode(),))


def rows_a_second(write: Write, seconds: float) -> float:
    """The rate of committed rows; making the rows is counted, as the product has to make its own."""
    position = counted = 0
    with plain_table() as connection:
        begin = time.perf_counter() + WARM_UP_SECONDS
        end = begin + seconds
        while (started := time.perf_counter()) < end:
            write(connection, [(position + number, "t", BODY) for number in range(GROUP)])
            position += GROUP
            counted += GROUP if started >= begin else 0
    return counted / seconds


def measure(seconds: float) -> Measurement:
    statement, many = (rows_a_second(write, seconds / 2) for write in (by_one_statement, by_executemany))
    return Measurement("raw FULL rows", "rows/s", statement, {"executemany": many})


if __name__ == "__main__":
    print(measure(arguments(__doc__).seconds).line())
