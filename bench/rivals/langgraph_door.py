"""LangGraph behind FastAPI: a graph of three nodes and a new thread for each request, by uvicorn in one process.

Durable: `durability="sync"`, so a checkpoint is committed before the next node begins, on Postgres (which its
documentation recommends for production) with `fsync`, or on SQLite in WAL mode with `synchronous=FULL`.

Set as its documentation shows: the asynchronous checkpointers, on Postgres over a pool of 20 connections with
`autocommit`, `dict_row` and `prepare_threshold=0`. No callbacks, no tracing, no access log.
"""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypedDict

from fastapi import FastAPI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from bench.door import FILES, POSTGRES, main
from bench.rivals.fastapi_server import serve_app
from bench.steps import Order, step

CONNECTIONS = 20


class State(TypedDict):
    order: Order


async def node(state: State) -> State:
    return {"order": step(state["order"])}


def graph() -> StateGraph:
    built, names = StateGraph(State), ("price", "pack", "send")
    for name in names:
        built.add_node(name, node)
    for before, after in zip((START, *names), (*names, END), strict=True):
        built.add_edge(before, after)
    return built


@asynccontextmanager
async def checkpointer(storage: str) -> AsyncIterator[BaseCheckpointSaver]:
    serializer = JsonPlusSerializer(allowed_msgpack_modules=[Order])
    if storage.startswith("postgresql:"):
        settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        async with AsyncConnectionPool(storage, max_size=CONNECTIONS, kwargs=settings) as pool:
            saver = AsyncPostgresSaver(pool, serde=serializer)
            await saver.setup()
            yield saver
    else:
        async with AsyncSqliteSaver.from_conn_string(str(Path(storage) / "langgraph.sqlite")) as saver:
            await saver.setup()
            await saver.conn.execute("PRAGMA synchronous=FULL")
            yield saver


def serve(storage: str) -> None:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with checkpointer(storage) as saver:
            app.state.graph = graph().compile(checkpointer=saver)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders")
    async def orders(order: Order) -> Order:
        thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
        state = await app.state.graph.ainvoke({"order": order}, thread, durability="sync")
        return state["order"]

    serve_app(app)


if __name__ == "__main__":
    main(__doc__, serve, (POSTGRES, FILES))
