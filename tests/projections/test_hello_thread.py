"""The golden hello thread: what each event does to each read model. The web folds the same files to the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from organism.model.events import Event
from organism.projections import READ_MODELS
from tests.projections.folding import Rows

GOLDEN = Path(__file__).parents[1] / "golden"
EVENTS = GOLDEN / "hello_thread.events.jsonl"
ROWS = GOLDEN / "hello_thread.rows.jsonl"
"""A line for each event: its position, and the public rows that it left, by model and key (null: gone)."""


def events() -> list[Event]:
    return [read(json.loads(line)) for line in EVENTS.read_text(encoding="utf-8").splitlines()]


def read(line: dict[str, Any]) -> Event:
    event = Event(line["type"], line["data"], None, line["thread"])
    event.position, event.at = line["position"], line["at"]
    event.cause, event.correlation = line["cause"], line["correlation"]
    return event


def changes() -> str:
    models = [Rows(model) for model in READ_MODELS]
    lines = [
        {
            "position": event.position,
            "rows": {rows.model.name: dict(done) for rows in models if (done := rows.take(event))},
        }
        for event in events()
    ]
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


def test_each_event_of_the_hello_thread_leaves_the_golden_rows(tmp_path: Path) -> None:
    made = tmp_path / ROWS.name
    made.write_text(changes(), encoding="utf-8")
    assert made.read_text(encoding="utf-8") == ROWS.read_text(encoding="utf-8"), f"if that is meant, copy {made} there"
