"""A key that is repeated after a kill gives the first answer, and nothing is done again (G5)."""

from __future__ import annotations

import signal

import pytest

from tests.faults.client import Gone
from tests.faults.lives import Life, fork
from tests.faults.stage import Stage

pytestmark = pytest.mark.faults

PAYLOAD = {"tag": "once"}


async def killed_and_served_again(stage: Stage, life: Life) -> Life:
    life.kill()
    assert await life.end() == -signal.SIGKILL
    return await stage.serve()


async def accepted(stage: Stage) -> list[str]:
    """The ids of the messages that came from outside."""
    events = [event async for event in stage.api.events() if event["type"] == "message_sent"]
    return [event["data"]["message"] for event in events if event["data"]["from"] == "console"]


@pytest.mark.parametrize("point", ["committed:2", "delivery:2", "answered:1"])
async def test_an_injection_whose_answer_the_kill_took_is_answered_from_the_log(stage: Stage, point: str) -> None:
    """The first commit and the first delivery are those of the new life."""
    life = await fork(stage.setting.dying_at(point))
    stage.api.url = await life.serving()
    with pytest.raises(Gone):
        await stage.api.inject("first", PAYLOAD, "key")
    assert await life.end() == -signal.SIGKILL
    life = await stage.serve()
    answers = [await stage.api.inject("first", PAYLOAD, "key") for _ in range(2)]
    assert answers[0] == answers[1]
    assert await accepted(stage) == [answers[0].expect(202)["message_id"]]
    await life.stop()


async def test_a_pause_is_answered_after_a_kill_as_it_was_before_and_pauses_nothing_again(stage: Stage) -> None:
    life = await stage.serve()
    first = await stage.api.call("POST", "/agents/first/pause", key="key")
    (await stage.api.call("POST", "/agents/first/resume")).expect(200)
    life = await killed_and_served_again(stage, life)
    again = await stage.api.call("POST", "/agents/first/pause", key="key")
    assert (await stage.api.get("/agents/first"))["paused"] is False
    assert (first.status, first) == (200, again)
    await life.stop()


@pytest.mark.parametrize("point", ["committed:2", "delivery:2", "delivered:2"])
async def test_a_reload_whose_answer_the_kill_took_is_answered_from_the_log_and_not_repeated(
    stage: Stage, point: str
) -> None:
    """The second commit and delivery of the new life are those of the reload; the whole answer follows in a third."""
    life = await fork(stage.setting.dying_at(point))
    stage.api.url = await life.serving()
    with pytest.raises(Gone):
        await stage.api.call("POST", "/organism/reload", key="key")
    assert await life.end() == -signal.SIGKILL
    life = await stage.serve()
    answers = [await stage.api.call("POST", "/organism/reload", key="key") for _ in range(2)]
    [reloaded] = [event async for event in stage.api.events() if event["type"] == "organism_reloaded"]
    assert answers[0] == answers[1]
    assert answers[0].expect(200)["position"] == reloaded["position"]
    await life.stop()
