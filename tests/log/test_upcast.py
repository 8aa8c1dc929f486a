"""An old log always opens: the one kept in tests/golden, and what upcasters make of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.errors import LogDamaged
from organism.log.encode import Upcaster
from tests.log.engines import open_durable, sent, unit
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


async def test_old_data_is_lifted_step_by_step_when_it_is_read(kept: Path) -> None:
    upcaster = Upcaster({1: {"organism_paused": rename}, 2: {"organism_paused": count}}, present=3)
    log = await open_durable(kept, upcaster=upcaster)
    assert (await log.read(4, 5))[0].data == {"cause": "operator", "times": 1}
    folded: list[object] = []
    await log.fold(4, lambda event: folded.append(event.data))
    assert folded[0] == {"cause": "operator", "times": 1}
    assert (await log.verify()).damage == ()
    await log.close()


async def test_a_log_of_a_newer_version_is_refused(kept: Path) -> None:
    with pytest.raises(LogDamaged, match="run the newer program"):
        await open_durable(kept, upcaster=Upcaster(present=0))
