"""Rows of 600 bytes in groups of 256, a durable commit each: rows a second.

The headline is one statement a group, which spreads a JSON array: so rows reach SQLite in a process that also has to
run an event loop, since the interpreter's lock is given up once a group instead of once a row. `also.executemany` is
the plain loop over rows in one transaction; it is faster here, where nothing else wants the interpreter. Half of the
time each.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import orjson
import pysqlite3

from bench.limits.raw_sqlite import BODY, INSERT, INSERT_ARRAY, plain_table
from bench.load import WARM_UP_SECONDS, Measurement, arguments
from bench.usage import spent, usage

GROUP = 256

Values = tuple[int, str, str]
Write = Callable[[pysqlite3.Connection, list[Values]], None]


def by_executemany(connection: pysqlite3.Connection, rows: list[Values]) -> None:
    connection.execute("BEGIN")
    connection.executemany(INSERT, rows)
    connection.execute("COMMIT")


def by_one_statement(connection: pysqlite3.Connection, rows: list[Values]) -> None:
    connection.execute(INSERT_ARRAY, (orjson.dumps(rows).decode(),))


def rows_a_second(write: Write, seconds: float) -> Measurement:
    """The rate of committed rows; making the rows is counted, as the product has to make its own."""
    positions = itertools.count()

    def groups(seconds: float) -> int:
        """How many groups were written in so many seconds."""
        end, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            write(connection, [(next(positions), "t", BODY) for _ in range(GROUP)])
            count += 1
        return count

    with plain_table() as connection:
        groups(WARM_UP_SECONDS)
        before, rows = usage(), groups(seconds) * GROUP
        return Measurement("raw FULL rows", "rows/s", rows / seconds, spent(before, usage(), rows))


def measure(seconds: float) -> Measurement:
    statement, many = (rows_a_second(write, seconds / 2) for write in (by_one_statement, by_executemany))
    return replace(statement, also={**statement.also, "executemany": many.value})


if __name__ == "__main__":
    print(measure(arguments(__doc__).seconds).line())
