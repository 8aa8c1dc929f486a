"""What is disposable can be deleted: the fold from the beginning is what the running server had (G15)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.judgement import ROWS, judged
from tests.faults.stage import Stage, die_at

pytestmark = pytest.mark.faults


async def rows(stage: Stage) -> dict[str, Any]:
    return {name: await stage.api.rows(name) for name in (*ROWS, "agents")}


async def paused_in_the_middle(stage: Stage) -> None:
    """A server that was killed under load, and is paused with much open."""
    await die_at(stage, "delivered:200")
    life = await stage.serve()
    (await stage.api.call("POST", "/organism/pause")).expect(200)
    await stage.workload.send_many(30, stage.api)
    life.kill()
    await life.end()


@pytest.mark.parametrize("end", ["killed", "stopped"])
async def test_the_rows_of_open_work_are_the_same_when_they_are_made_again(stage: Stage, end: str) -> None:
    """A stop leaves a snapshot, from which the next life starts; the one after it has nothing but the log."""
    await paused_in_the_middle(stage)
    life = await stage.serve()
    before = await rows(stage)
    assert [thread for thread in before["threads"] if thread["status"] == "active"]
    if end == "stopped":
        await life.stop()
        life = await stage.serve()
        assert await rows(stage) == before
    life.kill()
    await life.end()
    stage.forget_rows()
    life = await stage.serve()
    after = await rows(stage)
    for name, rows_before in before.items():
        assert after[name] == rows_before, name
    (await stage.api.call("POST", "/organism/resume")).expect(200)
    await life.stop()
    await judged(stage)
    assert stage.faults == []
