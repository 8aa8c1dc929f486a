"""The process dies at a named point, at each of them once; afterwards everything is as it was promised (G1, G2, G3)."""

from __future__ import annotations

import pytest

from tests.faults.judgement import judged
from tests.faults.points import POINTS
from tests.faults.stage import Stage, die_at, die_stopping_at

pytestmark = pytest.mark.faults

UNDER_LOAD = (
    *("arrived:1", "arrived:30", "prepared:1", "prepared:30", "answered:1", "answered:30"),
    *("append:2", "append:90", "appended:2", "appended:90", "commit:2", "commit:40", "committed:2", "committed:40"),
    *("delivery:2", "delivery:90", "delivered:2", "delivered:90"),
    *("handling:1", "handling:50", "handled:1", "handled:50", "failed:1", "failed:3", "asked:1", "asked:12"),
    *("effect:1", "effect:9", "record:1", "record:14", "recorded:1", "recorded:14"),
    *("anchor:2", "anchored:2", "checkpoint:1", "checked:1"),
)
AT_THE_FIRST_START = ("key:1", "schema:1", "anchor:1", "claim:1", "claimed:1", "commit:1", "committed:1")
IN_RECOVERY = (
    "claim:1",
    "claimed:1",
    "fold:1",
    "folded:1",
    "requeue:1",
    "requeue:7",
    "commit:1",
    "committed:1",
    "life:1",
)
WHEN_STOPPING = ("stopped:1", "closing:1")


async def test_every_point_has_its_case() -> None:
    cases = (*UNDER_LOAD, *AT_THE_FIRST_START, *IN_RECOVERY, *WHEN_STOPPING)
    assert {case.partition(":")[0] for case in cases} == set(POINTS)


@pytest.mark.parametrize("point", UNDER_LOAD)
async def test_a_server_that_dies_under_load_keeps_its_promises(stage: Stage, point: str) -> None:
    await die_at(stage, point)
    await judged(stage)
    assert stage.faults == []


@pytest.mark.parametrize("point", AT_THE_FIRST_START)
async def test_a_server_that_dies_at_its_first_start_can_be_started_again(stage: Stage, point: str) -> None:
    await die_at(stage, point)
    await die_at(stage, "delivered:60")
    await judged(stage)
    assert stage.faults == []


@pytest.mark.parametrize("point", IN_RECOVERY)
async def test_a_server_that_dies_in_its_recovery_recovers_the_next_time(stage: Stage, point: str) -> None:
    await die_at(stage, "delivered:120")
    await die_at(stage, point)
    await die_at(stage, point)
    await judged(stage)
    assert stage.faults == []


@pytest.mark.parametrize("point", WHEN_STOPPING)
async def test_a_server_that_dies_while_it_stops_has_lost_nothing(stage: Stage, point: str) -> None:
    await die_stopping_at(stage, point)
    await judged(stage)
    assert stage.faults == []
