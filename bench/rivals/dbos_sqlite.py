"""DBOS on SQLite: steps a second, one after another, each recorded durably before the next begins.

The headline is steps within one long workflow: the purest form of its promise, without the two commits that start and
end a workflow. `also.in_workflows` counts the steps of workflows of three steps one after another, which is nearer to
the product's chain, whose rate holds the commit of the injection.

Made as fast as its own settings allow: plain functions (its async steps are slower), the file in WAL mode (it would
take the default journal), its log at `ERROR`, no tracing. `synchronous` is FULL in its connections by default.
"""

import asyncio
import contextlib
import sqlite3
import tempfile
import time
from pathlib import Path

from dbos import DBOS, DBOSConfig

from bench.load import WARM_UP_SECONDS, Measurement, arguments, measure_hops


@DBOS.step()
def greet(name: str) -> str:
    return f"Hello, {name}!"


@DBOS.step()
def shout(message: str) -> str:
    return message.upper()


@DBOS.step()
def answer(message: str) -> str:
    return message


@DBOS.workflow()
def hello(name: str) -> str:
    return answer(shout(greet(name)))


@DBOS.workflow()
def steps(seconds: float) -> float:
    begin, count = time.perf_counter() + WARM_UP_SECONDS, 0
    end = begin + seconds
    while (started := time.perf_counter()) < end:
        answer("HELLO, DAN!")
        count += started >= begin
    return count / seconds


async def in_workflows(in_flight: int, seconds: float) -> Measurement:
    async def chain(key: str) -> None:
        hello(key)

    return await measure_hops("dbos workflows", chain, in_flight, seconds)


def measure(in_flight: int, seconds: float) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "dbos.sqlite"
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        DBOS(config=DBOSConfig(name="hello", system_database_url=f"sqlite:///{file}", log_level="ERROR"))
        DBOS.launch()
        rate = steps(seconds / 2)
        workflows = asyncio.run(in_workflows(in_flight, seconds / 2))
        DBOS.destroy()
    return Measurement("dbos", "steps/s", rate, {"in_workflows": workflows.value})


if __name__ == "__main__":
    options = arguments(__doc__)
    print(measure(options.in_flight, options.seconds).line())
