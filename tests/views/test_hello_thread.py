"""The golden hello thread: what each event does to each read model. The web folds the same files to the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from organism.events.record import Record
from organism.events.vocabulary import EVENTS, Event
from organism.views.models import READ_MODELS
from tests.views.folding import Rows

GOLDEN = Path(__file__).parents[1] / "golden"
LOG = GOLDEN / "hello_thread.events.jsonl"
ROWS = GOLDEN / "hello_thread.rows.jsonl"
"""A line for each event: its position, and the public rows that it left, by model and key (null: gone)."""


def records() -> list[Record[Event]]:
    return [read(json.loads(line)) for line in LOG.read_text(encoding="utf-8").splitlines()]


def read(line: dict[str, Any]) -> Record[Event]:
    """A record, of a line as ``GET /log`` answers it."""
    digest = line["data"].pop("content", "")
    return Record(
        msgspec.convert({"event": line["type"], **line["data"]}, EVENTS[line["type"]]),
        thread=line["thread"],
        at=line["at"],
        cause=line["cause"],
        correlation=line["correlation"],
        position=line["position"],
        digest=digest,
    )


def changes() -> str:
    models = [Rows(model) for model in READ_MODELS]
    lines = [
        {
            "position": record.position,
            "rows": {rows.model.name: dict(done) for rows in models if (done := rows.take([record]))},
        }
        for record in records()
    ]
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


def test_each_event_of_the_hello_thread_leaves_the_golden_rows(tmp_path: Path) -> None:
    made = tmp_path / ROWS.name
    made.write_text(changes(), encoding="utf-8")
    assert made.read_text(encoding="utf-8") == ROWS.read_text(encoding="utf-8"), f"if that is meant, copy {made} there"
