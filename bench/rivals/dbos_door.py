"""DBOS behind FastAPI: a workflow of three steps for each request, by uvicorn in one process.

Durable: the start of the workflow, each step and the end are commits of their own before the next begins, on Postgres
(which its documentation recommends for production) with `fsync`, or on SQLite with `synchronous=FULL`.

Set as its documentation recommends for FastAPI: asynchronous steps and workflows, its pool of 20 connections. The
SQLite file is in WAL mode (it would take the default journal). No tracing, no access log, its log at `ERROR`.
"""

import contextlib
import sqlite3
from pathlib import Path

from dbos import DBOS, DBOSConfig
from fastapi import FastAPI

from bench.door import FILES, POSTGRES, main
from bench.rivals.fastapi_server import serve_app
from bench.steps import Order, step

app = FastAPI()


@DBOS.step()
async def price(order: Order) -> Order:
    return step(order)


@DBOS.step()
async def pack(order: Order) -> Order:
    return step(order)


@DBOS.step()
async def send(order: Order) -> Order:
    return step(order)


@app.post("/orders")
@DBOS.workflow()
async def orders(order: Order) -> Order:
    return await send(await pack(await price(order)))


def serve(storage: str) -> None:
    if not storage.startswith("postgresql:"):
        file = Path(storage) / "dbos.sqlite"
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        storage = f"sqlite:///{file}"
    DBOS(config=DBOSConfig(name="orders", system_database_url=storage, log_level="ERROR"))
    DBOS.launch()
    serve_app(app)


if __name__ == "__main__":
    main(__doc__, serve, (POSTGRES, FILES))
