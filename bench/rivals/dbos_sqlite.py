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
from bench.usage import spent, usage


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
def steps(seconds: float) -> int:
    """How many steps were taken in so many seconds."""
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        answer("HELLO, DAN!")
        count += 1
    return count


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
        steps(WARM_UP_SECONDS)
        before, count = usage(), steps(seconds / 2)
        used = spent(before, usage(), count)
        workflows = asyncio.run(in_workflows(in_flight, seconds / 2))
        DBOS.destroy()
    return Measurement("dbos", "steps/s", 2 * count / seconds, {"in_workflows": workflows.value, **used})


if __name__ == "__main__":
    options = arguments(__doc__)
    print(measure(options.in_flight, options.seconds).line())
