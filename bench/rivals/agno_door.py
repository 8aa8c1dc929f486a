"""Agno's AgentOS: a workflow of three functions for each request, by uvicorn in one process.

Durable: less than the others. The run is written once, with its session, when its three steps have been taken: on
Postgres (which its documentation recommends for production) with `fsync`, or on SQLite as its driver opens it. After a
crash the steps that were taken are not known.

Set as its documentation shows for a workflow that AgentOS serves: `POST /workflows/ID/runs` with a form, no stream, a
session for each run. No telemetry, no tracing, no access log.
"""

import json
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlencode

from agno.db.postgres import AsyncPostgresDb
from agno.db.sqlite import AsyncSqliteDb
from agno.os import AgentOS
from agno.workflow import Step, StepInput, StepOutput, Workflow

from bench.door import FILES, POSTGRES, main
from bench.rivals.fastapi_server import serve_app
from bench.steps import ASKED, Customer, Order, step


async def take(given: StepInput) -> StepOutput:
    """A step's content is a text: JSON."""
    fields = json.loads(given.previous_step_content or given.input)
    order = Order(fields["number"], fields["note"], Customer(**fields["customer"]))
    return StepOutput(content=json.dumps(asdict(step(order))))


def serve(storage: str) -> None:
    if storage.startswith("postgresql:"):
        db = AsyncPostgresDb(db_url=storage.replace("postgresql:", "postgresql+psycopg:"))
    else:
        db = AsyncSqliteDb(db_file=str(Path(storage) / "agno.sqlite"))
    steps = [Step(name=name, executor=take) for name in ("price", "pack", "send")]
    workflow = Workflow(id="orders", name="orders", steps=steps, db=db, telemetry=False)
    app = AgentOS(workflows=[workflow], telemetry=False).get_app()
    form = urlencode({"message": json.dumps(ASKED), "stream": "false"})
    serve_app(app, "/workflows/orders/runs", body=form, kind="application/x-www-form-urlencoded")


if __name__ == "__main__":
    main(__doc__, serve, (POSTGRES, FILES))
