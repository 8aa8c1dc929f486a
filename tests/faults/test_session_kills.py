"""The process dies at each commit of a compaction: the source goes on, or its successor is whole (G17)."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.client import Gone
from tests.faults.lives import ROOT, Life, fork
from tests.faults.stage import Stage

pytestmark = pytest.mark.faults

SESSIONS = "/a1/agents/concise-de/sessions"
SAID = ("Mein Lieblingssport ist Tennis.", "Welcher Sport ist mein Liebling?")
COMMITS = range(2, 8)
"""The first commit of a life is its beginning; a compaction has these."""


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


async def compact_and_die(stage: Stage, session: str, point: str) -> Life:
    """A life that dies at the point, if the compaction comes to it; it is over."""
    life = await fork(stage.setting.dying_at(point))
    stage.api.url = await life.serving()
    with suppress(Gone):
        await stage.api.call("POST", f"{SESSIONS}/{session}/compact")
    life.kill()
    assert await life.end() == -signal.SIGKILL
    return life


@pytest.mark.parametrize("point", ["commit", "committed"])
async def test_a_compaction_that_is_killed_at_any_commit_is_done_or_was_not_begun(shipped: Stage, point: str) -> None:
    stage, outcomes = shipped, list[bool]()
    life = await stage.serve()
    for commit in COMMITS:
        session = (await stage.api.call("POST", SESSIONS, {"compact_keep_last_n": 1})).expect(201)["id"]
        for text in SAID:
            await say(stage, session, text)
        before = await words(stage, session)
        await life.stop()
        await compact_and_die(stage, session, f"{point}:{commit}")
        life = await stage.serve()
        row = await stage.api.get(f"{SESSIONS}/{session}")
        outcomes.append(row["archived_at"] is not None)
        assert await words(stage, session) == before
        if outcomes[-1]:
            first, *newest = await words(stage, row["successor_session_id"])
            assert first[1].startswith(f"[compaction summary from session {session}] ")
            assert newest == before[-1:]
        assert "Tennis" in (await say(stage, row["successor_session_id"] or session, SAID[1]))["reply"]
    await life.stop()
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}
