"""Golden logs: what each event does to each read model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from organism.events.record import Record
from organism.events.vocabulary import EVENTS, Event
from tests.views.folding import FOLDED, Rows

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = ("hello_thread", "session")
"""Of each the events, and the rows: a line an event with the public rows it left, by model and key (null: gone)."""


def records(log: str) -> list[Record[Event]]:
    lines = (GOLDEN / f"{log}.events.jsonl").read_text(encoding="utf-8").splitlines()
    return [read(json.loads(line)) for line in lines]


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


def changes(log: str) -> str:
    models = [Rows(model) for model in FOLDED]
    lines = [
        {
            "position": record.position,
            "rows": {rows.model.name: dict(done) for rows in models if (done := rows.take([record]))},
        }
        for record in records(log)
    ]
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


@pytest.mark.parametrize("log", LOGS)
def test_each_event_leaves_the_golden_rows(log: str, tmp_path: Path) -> None:
    rows = GOLDEN / f"{log}.rows.jsonl"
    made = tmp_path / rows.name
    made.write_text(changes(log), encoding="utf-8")
    assert made.read_text(encoding="utf-8") == rows.read_text(encoding="utf-8"), f"if that is meant, copy {made} there"
