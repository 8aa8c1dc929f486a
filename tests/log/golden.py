"""Makes tests/golden/log-1, a log as version 1 wrote it. Run once a version: `python -m tests.log.golden`."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import orjson

from organism.log.log import EventFilter, Query
from organism.log.sqlite import SqliteLog
from organism.model.events import Actor, Event
from tests.log.engines import MODELS, as_tuples, created, handled, open_durable, sent, unit

GOLDEN = Path("tests/golden/log-1")


async def answers(log: SqliteLog) -> dict[str, Any]:
    """All events with their content, and all rows."""
    events = await log.read(wanted=EventFilter(content=True), limit=1000)
    shown = [[*each[:-1], each[-1] and each[-1].decode()] for each in as_tuples(events)]
    rows = {model.name: orjson.loads((await log.rows(model.name, Query())).rows) for model in MODELS}
    return {"timeline": log.timeline, "events": shown, "rows": rows}


async def make(place: Path) -> None:
    """A log with something of everything that a row can hold."""
    log = await open_durable(place, models=MODELS)
    first = unit("thr-1", created(), sent("msg-1", 'Grüße 👋 \\ " </text>'), at=1_763_768_000_000_001)
    first.cause, first.correlation, first.actor = "msg-0", "msg-0", Actor("acme", "ann", "req-1")
    log.append(first)
    await log.commit(unit("thr-2", created(), Event("thread_created", {"parent": "thr-2"}, thread="thr-3")))
    await log.commit(unit(None, Event("organism_paused", {"by": "operator"})))
    await log.commit(unit("thr-1", handled("msg-1"), sent("msg-2", to="shouter"), expect={"thr-1": 2}))
    (place.parent / "log-1.json").write_bytes(orjson.dumps(await answers(log), option=orjson.OPT_INDENT_2) + b"\n")
    await log.close()
    (place / "lock").unlink()


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    asyncio.run(make(GOLDEN))
