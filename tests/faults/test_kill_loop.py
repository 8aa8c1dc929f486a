"""The kill loop in its short form; ``scripts/soak`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.campaign import Plan, campaign

pytestmark = [pytest.mark.faults, pytest.mark.asyncio]

KILLS = 100
OPEN_WORK = 0.8


@pytest.mark.timeout(600)
async def test_a_hundred_kills_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    report = await campaign(Plan(KILLS), tmp_path)
    print(report.markdown())
    assert report.findings == []
    assert report.kills >= KILLS
    assert report.share_with_open_work >= OPEN_WORK
    assert report.counts["unsafe effects found unfinished that had happened"] > 0
    assert report.counts["unsafe effects found unfinished that had not"] > 0
    assert report.counts["deaths by a message that kills"] > 0
