"""Frames and rows say the same: who folds the frames of the log has what its rows show."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given

from organism.events.record import Record
from organism.server.push.filter import Filter, Frame
from organism.server.push.frames import Details, Folded
from organism.views.approvals import APPROVALS
from organism.views.dead_letters import DEAD_LETTERS, INDETERMINATE
from organism.views.organism import AGENTS, ORGANISM
from organism.views.threads import THREADS
from tests.server.client_fold import Client, Json, comparable
from tests.views.folding import fold
from tests.views.moves import lawful_logs

ASKED_FOR = Filter(events=frozenset({"handling", "step"}))
MODELS = (AGENTS, THREADS, APPROVALS, DEAD_LETTERS, INDETERMINATE)
COMPLETED = {"title", "waiting_for_people", "preview", "started_at"}
"""What rows are completed by when they are shown, or is not shown as it is stored."""


def frames_of(folded: Folded, record: Record[Any]) -> list[Frame]:
    """All frames that the record makes, also those that are pushed on request alone."""
    return [*folded.frames([record]), *Details.of([record]).frames(ASKED_FOR)]


def told(records: list[Record[Any]]) -> Json:
    """What a client has of the frames alone."""
    folded, client = Folded(0), Client()
    for record in records:
        made = frames_of(folded, record)
        assert len(made) <= 1, "an event makes at most one frame"
        for frame in made:
            client.take(orjson.loads(frame.json))
    client.complete()
    return client.shown()


def rows_of(records: list[Record[Any]]) -> Json:
    """The same by the rows."""
    state: Json = {model.name: list(fold(model, records).values()) for model in MODELS}
    state["approvals"] = [row for row in state["approvals"] if row["status"] == "pending"]
    organism = fold(ORGANISM, records)["organism"]
    return comparable({**state, "organism": organism, "threads_total": len(state["threads"])})


def without_completion(state: Json) -> Json:
    """The state without what no fold makes."""
    return {
        name: without_completion(value) if isinstance(value, dict) else value
        for name, value in state.items()
        if name not in COMPLETED
    }


@given(lawful_logs)
def test_the_frames_up_to_any_position_give_the_rows(records: list[Record[Any]]) -> None:
    assert without_completion(told(records)) == without_completion(rows_of(records))
