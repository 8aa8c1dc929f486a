"""The agents that come along, offline, on the model that comes along, with real tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from organism.testing import running
from tests.flows.stage import TurnedTime
from tests.flows.thinking import run_of

PLAIN = "organism: {name: plain}\nlisteners: []\n"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """An organism.yaml without agents of its own."""
    path = tmp_path / "organism.yaml"
    path.write_text(PLAIN)
    return path


async def test_the_researcher_calculates_and_tells_the_day_by_its_tools(plain: Path) -> None:
    """The clock of the tests stands on a Friday."""
    question = "What is 17 % of 2,340, and what day is it in Tokyo?"
    async with running(plain, None, TurnedTime().parts()) as o:
        outcome = await o.inject("researcher", {"message": question}, wait=True)
        run = await run_of(o, outcome.message_id)
        called = await o.events("model_called")
    asked = [(data["name"], data["input"]) for kind, data in run if kind == "tool_call"]
    assert sorted(name for name, _ in asked) == ["calculator", "current_datetime"]
    assert ("current_datetime", {"zone": "Asia/Tokyo"}) in asked
    assert [data["isError"] for kind, data in run if kind == "tool_result"] == [False, False]
    assert run[-1] == ("done", {"stopReason": "stop"})
    assert "397.8" in outcome.replies[0]["text"]
    assert "Friday" in outcome.replies[0]["text"]
    assert {(event.data["model"], event.data["provider"]) for event in called} == {("claude-opus-4.7", "offline")}


@pytest.mark.parametrize(
    ("name", "message"), [("concise-de", "Wie spät ist es?"), ("berlin-tour", "Was sehe ich am Alexanderplatz?")]
)
async def test_each_other_agent_answers_in_words(plain: Path, name: str, message: str) -> None:
    async with running(plain) as o:
        outcome = await o.inject(name, {"message": message}, wait=True)
        run = await run_of(o, outcome.message_id)
    assert outcome.replies[0]["text"]
    assert run[-1] == ("done", {"stopReason": "stop"})
