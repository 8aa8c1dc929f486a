"""The process dies at each commit of a compaction: it goes on by itself, and pays for no second summary (G17)."""

from __future__ import annotations

import signal
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.client import Gone
from tests.faults.lives import ROOT, fork
from tests.faults.stage import Stage

pytestmark = pytest.mark.faults

SESSIONS = "/a1/agents/concise-de/sessions"
SAID = ("Mein Lieblingssport ist Tennis.", "Welcher Sport ist mein Liebling?")


FIRST = 2
"""The first commit of a life begins it; the second accepts the compaction."""


@pytest.fixture
def shipped(stage: Stage) -> Stage:
    """The organism as it ships."""
    stage.setting = replace(stage.setting, config=ROOT / "organism.yaml")
    return stage


async def words(stage: Stage, session: str) -> list[tuple[str, str]]:
    page = await stage.api.get(f"{SESSIONS}/{session}/messages")
    return [(message["role"], message["content"]) for message in page["messages"]]


async def say(stage: Stage, session: str, text: str) -> Any:
    return (await stage.api.call("POST", f"{SESSIONS}/{session}/messages", {"message": text})).expect(200)


async def successor_of(stage: Stage, session: str) -> str:
    """Compact it under a key."""
    answer = await stage.api.call("POST", f"{SESSIONS}/{session}/compact", key="once")
    return str(answer.expect(200)["successor_session_id"])


async def uncompacted(stage: Stage, session: str) -> str:
    """Go back to its whole history, under a key."""
    answer = await stage.api.call("POST", f"{SESSIONS}/{session}/uncompact", key="once")
    return str(answer.expect(201)["id"])


async def is_killed_at(stage: Stage, act: Coroutine[Any, Any, str], point: str) -> bool:
    """Whether a life that would die at the point comes to it in the act; it is over."""
    life = await fork(stage.setting.dying_at(point))
    stage.api.url = await life.serving()
    with suppress(Gone):
        await act
        life.kill()
        await life.end()
        return False
    assert await life.end() == -signal.SIGKILL
    return True


async def summaries(stage: Stage, session: str) -> int:
    """How many answers of the summarizer's model for this session are in the log: a call that died is none."""
    called = [
        each async for each in stage.api.events() if each["type"] == "model_called" and "error" not in each["data"]
    ]
    return sum(each["thread_id"].startswith(f"{session}.thr-") for each in called)


async def test_a_compaction_that_is_killed_at_any_commit_goes_on_by_itself_and_answers_its_key(shipped: Stage) -> None:
    stage, was_killed, commit = shipped, True, FIRST
    life = await stage.serve()
    while was_killed:
        session = (await stage.api.call("POST", SESSIONS, {"compact_keep_last_n": 1})).expect(201)["id"]
        for text in SAID:
            await say(stage, session, text)
        before = await words(stage, session)
        await life.stop()
        was_killed = await is_killed_at(stage, successor_of(stage, session), f"committed:{commit}")
        life = await stage.serve()
        await stage.until_quiet(life)
        row = await stage.api.get(f"{SESSIONS}/{session}")
        assert await successor_of(stage, session) == row["successor_session_id"]
        assert await words(stage, session) == before
        assert await summaries(stage, session) == 1
        first, *newest = await words(stage, row["successor_session_id"])
        assert first[1].startswith(f"[compaction summary from session {session}] ")
        assert newest == before[-1:]
        commit += 1
        assert "Tennis" in (await say(stage, row["successor_session_id"], SAID[1]))["reply"]
    await life.stop()
    assert commit > FIRST + 5


async def test_a_whole_history_that_came_back_before_a_kill_is_the_answer_of_its_key(shipped: Stage) -> None:
    stage = shipped
    life = await stage.serve()
    session = (await stage.api.call("POST", SESSIONS, {"compact_keep_last_n": 0})).expect(201)["id"]
    await say(stage, session, SAID[0])
    before, compacted = await words(stage, session), await successor_of(stage, session)
    await life.stop()
    assert await is_killed_at(stage, uncompacted(stage, compacted), f"committed:{FIRST}")
    life = await stage.serve()
    whole = await uncompacted(stage, compacted)
    assert whole == (await stage.api.get(f"{SESSIONS}/{compacted}"))["successor_session_id"]
    assert await words(stage, whole) == before
    await life.stop()
