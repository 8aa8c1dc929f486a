"""Frames and rows say the same: who folds the frames has the handlings that the agents' rows show."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given

from organism import JsonObject
from organism.events.record import Record
from organism.events.vocabulary import OrganismStarted
from organism.server.push.filter import Filter, Frame
from organism.server.push.frames import Details, Folded
from organism.views.organism import AGENTS
from tests.views.folding import fold
from tests.views.moves import lawful_logs

ASKED_FOR = Filter(events=frozenset({"handling", "step"}))
NAMES = {"ask": "to", "complete": "model", "approve": "approval", "effect": "key"}
KINDS = {"ask": "agent", "complete": "model", "approve": "person", "effect": "effect"}


class Told:
    """What a client knows of handlings by frames alone."""

    def __init__(self) -> None:
        self.running: dict[str, JsonObject] = {}
        self.steps: dict[str, dict[int, JsonObject]] = {}

    def take(self, frame: JsonObject) -> None:
        """Fold a frame."""
        match frame["event"]:
            case "handling" if frame["phase"] == "started":
                self.running.pop(frame["message_id"], None)
                self.running[frame["message_id"]] = frame
            case "handling" | "error":
                self.end(frame["message_id"], keeps_unknown=frame["outcome"] == "retried")
            case "dead_letter" if frame["status"] == "open":
                self.end(frame["dead_letter"]["id"], keeps_unknown=False)
            case "step":
                steps = self.steps.setdefault(frame["message_id"], {})
                steps.pop(frame["step"], None)
                if frame["phase"] == "started":
                    steps[frame["step"]] = wait(frame, KINDS[frame["kind"]], frame[NAMES[frame["kind"]]])
            case "indeterminate":
                question = frame["indeterminate"]
                steps = self.steps.setdefault(frame["message_id"], {})
                steps.pop(frame["step"], None)
                if question["status"] == "open":
                    steps[frame["step"]] = wait({**frame, "effect": "unsafe"}, "person", question["id"])

    def end(self, message: str, *, keeps_unknown: bool) -> None:
        """An attempt has ended, and what it waited for, but for what a person must say."""
        self.running.pop(message, None)
        kept = {number: step for number, step in self.steps.pop(message, {}).items() if step["effect"] == "unsafe"}
        if keeps_unknown:
            self.steps[message] = {number: step for number, step in kept.items() if step["kind"] == "person"}

    def handlings(self, agent: str) -> list[JsonObject]:
        """The agent's, as its row shows them."""
        return [self.handling(frame) for frame in self.running.values() if frame["agent"] == agent]

    def handling(self, started: JsonObject) -> JsonObject:
        """One of them."""
        steps = sorted(
            self.steps.get(started["message_id"], {}).values(),
            key=lambda step: (step["kind"] != "person", step["since"], step["step"]),
        )
        named = {name: started[name] for name in ("message_id", "thread_id", "agent", "attempt")}
        return {**named, "started_at": started["timestamp"], "waits_for": next(iter(steps), None)}


def wait(frame: JsonObject, kind: str, name: str | None) -> JsonObject:
    """What a step waits for."""
    found = {"kind": kind, "name": name, "since": frame["timestamp"], "step": frame["step"]}
    return {**found, "effect": frame.get("effect")}


def frames_of(folded: Folded, record: Record[Any]) -> list[Frame]:
    """All frames that the record makes, also those that are pushed on request alone."""
    return [*folded.frames([record]), *Details.of([record]).frames(ASKED_FOR)]


@given(lawful_logs)
def test_the_frames_up_to_any_position_give_the_handlings_of_the_rows(records: list[Record[Any]]) -> None:
    folded, told = Folded(0), Told()
    for record in records:
        if isinstance(record.event, OrganismStarted):
            told.running.clear()
        made = frames_of(folded, record)
        assert len(made) <= 1, "an event makes at most one frame"
        for frame in made:
            told.take(orjson.loads(frame.json))
    for name, row in fold(AGENTS, records).items():
        shown = told.handlings(name)
        rows = [{key: value for key, value in each.items() if key != "payload_type"} for each in row["handlings"]]
        assert (row["open_handlings"], rows) == (len(shown), shown[:5])
