"""langgraph with its SQLite checkpointer: hops a second of a graph of three nodes, one new thread a chain.

The checkpointer writes to a file in WAL mode with `synchronous=FULL`, and the durability is `sync`: each step is on
disk before the next begins, as in the product. Three nodes are three hops. Nothing is validated: the state is a
`TypedDict`.

The headline is `AsyncSqliteSaver` with all chains in one event loop, as the product runs them. `also.in_threads` is the
synchronous `SqliteSaver` with a thread for each chain under way, for half of the time.

Made as fast as its own settings allow: uvloop; no callbacks and no tracing.
"""

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypedDict

import uvloop
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from bench.load import Measurement, arguments, measure_hops

DURABLE = "PRAGMA synchronous=FULL"


class Greeting(TypedDict, total=False):
    name: str
    message: str
    shouted: str


def greet(state: Greeting) -> Greeting:
    return {"message": f"Hello, {state['name']}!"}


def shout(state: Greeting) -> Greeting:
    return {"shouted": state["message"].upper()}


def answer(state: Greeting) -> Greeting:
    return {"message": state["shouted"]}


async def greet_async(state: Greeting) -> Greeting:
    return greet(state)


async def shout_async(state: Greeting) -> Greeting:
    return shout(state)


async def answer_async(state: Greeting) -> Greeting:
    return answer(state)


def graph(*nodes: Callable[[Greeting], object]) -> StateGraph:
    """The chain START → greeter → shouter → response-handler → END."""
    built = StateGraph(Greeting)
    names = ("greeter", "shouter", "response-handler")
    for name, node in zip(names, nodes, strict=True):
        built.add_node(name, node)
    for before, after in zip((START, *names), (*names, END), strict=True):
        built.add_edge(before, after)
    return built


def thread(key: str) -> dict:
    return {"configurable": {"thread_id": key}}


async def in_one_loop(file: Path, in_flight: int, seconds: float) -> Measurement:
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await saver.setup()
        await saver.conn.execute(DURABLE)
        compiled = graph(greet_async, shout_async, answer_async).compile(checkpointer=saver)

        async def chain(key: str) -> None:
            await compiled.ainvoke({"name": key}, thread(key), durability="sync")

        return await measure_hops("langgraph", chain, in_flight, seconds)


async def in_threads(file: Path, in_flight: int, seconds: float) -> Measurement:
    loop = asyncio.get_running_loop()
    connection = sqlite3.connect(file, check_same_thread=False)
    with contextlib.closing(connection), ThreadPoolExecutor(in_flight) as threads:
        saver = SqliteSaver(connection)
        saver.setup()
        connection.execute(DURABLE)
        compiled = graph(greet, shout, answer).compile(checkpointer=saver)

        def invoke(key: str) -> None:
            compiled.invoke({"name": key}, thread(key), durability="sync")

        async def chain(key: str) -> None:
            await loop.run_in_executor(threads, invoke, key)

        return await measure_hops("langgraph threads", chain, in_flight, seconds)


async def measure(in_flight: int, seconds: float) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        threads = await in_threads(Path(folder) / "threads.sqlite", in_flight, seconds / 2)
        loop = await in_one_loop(Path(folder) / "loop.sqlite", in_flight, seconds)
    loop.also["in_threads"] = threads.value
    return loop


if __name__ == "__main__":
    options = arguments(__doc__, in_flight=32)
    print(uvloop.run(measure(options.in_flight, options.seconds)).line())
