"""An old log always opens, says what it said, and goes on: those kept in tests/golden, one a version."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from organism.bootstrap import Parts
from organism.events.record import Record
from organism.events.stored import VERSION
from organism.events.vocabulary import ApprovalRequested, OrganismStarted
from organism.log.sqlite import SqliteLog
from organism.model.commands import ResolveApproval
from organism.sqlite.driver import Pysqlite
from organism.testing import Running
from organism.views.read_models import READ_MODELS
from tests.log.engines import FixedClock
from tests.log.golden import GOLDEN, answers, lines, world

VERSIONS = range(1, VERSION + 1)


def copied(version: int, place: Path) -> Path:
    """A copy of a golden log, which itself is only ever read."""
    shutil.copytree(GOLDEN / f"log-{version}", place)
    place.chmod(0o700)  # git keeps no modes
    (place / "key").chmod(0o600)
    return place


@pytest.mark.parametrize("rows", ["as they were written", "made again"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_log_of_each_version_says_what_it_said(tmp_path: Path, version: int, rows: str) -> None:
    place = copied(version, tmp_path / "log")
    if rows == "made again":
        with closing(Pysqlite().connect(str(place / "log.sqlite"))) as database:
            database.execute("DELETE FROM models")
    log = await SqliteLog.open(place, FixedClock(), READ_MODELS)
    events, found = map(lines, await answers(log))
    assert events == (GOLDEN / f"log-{version}.events.jsonl").read_bytes()
    made = tmp_path / f"log-{version}.rows.jsonl"
    made.write_bytes(found)
    assert found == (GOLDEN / made.name).read_bytes(), f"if that is meant, copy {made} there"
    assert (await log.verify()).damage == ()
    await log.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_organism_goes_on_with_a_log_of_each_version(tmp_path: Path, version: int) -> None:
    made = world(tmp_path)
    copied(version, made.data / "tenants" / "default")
    last_at = int(orjson.loads((GOLDEN / f"log-{version}.events.jsonl").read_bytes().splitlines()[-1])["at"])
    async with made.running(parts=Parts(wall_ns=lambda: (last_at + 1) * 1000)) as o:  # before its questions expire
        lives = [record.event.life for record in await o.records(OrganismStarted)]
        outcome = await o.inject("greeter", {"text": "still here"}, wait=True)
        (asked,) = [record for record in await o.records(ApprovalRequested) if await _is_open(o, record)]
        await o.do(ResolveApproval(approval=asked.event.approval, decision="approve"))
        assert await o.tenant.ended(asked.stream, 10)
        answered = await o.replies(asked.stream)
        assert (await o.log.verify()).damage == ()
    assert lives == list(range(1, len(lives) + 1))
    assert len(lives) > 3
    assert outcome.replies == ({"text": "STILL HERE"},)
    assert answered == ({"text": "approve"},)  # its step is found again, also one that was recorded without a place


async def _is_open(o: Running, asked: Record[ApprovalRequested]) -> bool:
    row = orjson.loads(await o.views.row("approvals", asked.event.approval) or b"{}")
    return bool(row.get("status") == "pending")
