"""An old log always opens: the one kept in tests/golden, and what upcasters make of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.errors import LogDamaged
from organism.log.encode import decode, lift
from organism.model.events import SCHEMA_VERSION
from tests.log.engines import START_US, open_durable, sent, unit
from tests.log.golden import GOLDEN, answers

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A copy of the golden log, which is only ever read."""
    shutil.copytree(ROOT / GOLDEN, tmp_path / "log")
    (tmp_path / "log" / "key").chmod(0o600)  # git keeps no modes
    return tmp_path / "log"


async def test_the_log_of_version_1_opens_and_says_what_it_said(kept: Path) -> None:
    log = await open_durable(kept)
    found = orjson.loads(orjson.dumps(await answers(log)))
    assert found == orjson.loads((ROOT / GOLDEN).with_suffix(".json").read_bytes())
    assert (await log.verify()).damage == ()
    assert await log.commit(unit("thr-1", sent("msg-3"), expect={"thr-1": 7})) == 8
    await log.close()


def rename(data: dict[str, Any]) -> dict[str, Any]:
    """Version 2 calls it ``cause``."""
    return {"cause": data["by"]}


def count(data: dict[str, Any]) -> dict[str, Any]:
    """Version 3 counts."""
    return {**data, "times": 1}


def test_old_data_is_lifted_step_by_step() -> None:
    steps = {1: {"organism_paused": rename}, 2: {"organism_paused": count, "thread_killed": count}}
    assert lift(1, "organism_paused", {"by": "operator"}, steps, 3) == {"cause": "operator", "times": 1}
    assert lift(2, "organism_paused", {"cause": "operator"}, steps, 3) == {"cause": "operator", "times": 1}
    assert lift(1, "thread_created", {}, steps, 3) == {}


def test_a_unit_of_a_newer_version_is_refused() -> None:
    with pytest.raises(LogDamaged, match="run the newer program"):
        decode([1, SCHEMA_VERSION + 1, START_US, "thr-1", None, None, None, [["thread_created", {}]]])
