"""The accounts of models' calls: every call is in four of them, and they add up."""

from __future__ import annotations

from typing import Any

from organism.projections.spend import TOTAL
from tests.projections.folding import Story

FIELDS = [
    "kind", "name", "calls", "failed_calls", "input_tokens", "output_tokens", "tokens", "cost_usd", "model_seconds",
    "last_called", "models",
]  # fmt: skip


def called(story: Story, **data: Any) -> None:
    """A call of a model."""
    said = {
        "message": "msg-1", "agent": "ada", "step": 1, "model": "m", "provider": "scripted", "input_tokens": 10,
        "output_tokens": 5, "cost_usd": "0.25", "cost_source": "price", "attempts": 1, "duration": 1_500_000,
    }  # fmt: skip
    thread = data.pop("thread", "t")
    story.tell("model_called", thread, **{**said, **data})


def test_a_call_is_counted_for_all_its_agent_its_thread_and_its_day() -> None:
    story = Story()
    called(story)
    called(story, agent="bob", model="n", cost_usd="0.1", error={"code": "upstream_error", "message": "No."})
    rows = story.rows("usage")
    assert rows.keys() == {TOTAL, "agent ada", "agent bob", "thread t", "day 2026-01-11"}
    assert list(rows[TOTAL]) == FIELDS
    assert rows[TOTAL] == {
        "kind": TOTAL, "name": "", "calls": 2, "failed_calls": 1, "input_tokens": 20, "output_tokens": 10, "tokens": 30,
        "cost_usd": "0.35", "model_seconds": 3.0, "last_called": "2026-01-11T21:47:49.000000Z",
        "models": [
            {"model": "m", "served_by": "scripted", "calls": 1, "input_tokens": 10, "output_tokens": 5, "tokens": 15,
             "cost_usd": "0.25"},
            {"model": "n", "served_by": "scripted", "calls": 1, "input_tokens": 10, "output_tokens": 5, "tokens": 15,
             "cost_usd": "0.1"},
        ],
    }  # fmt: skip
    assert (rows["agent ada"]["name"], rows["agent ada"]["tokens"]) == ("ada", 15)
