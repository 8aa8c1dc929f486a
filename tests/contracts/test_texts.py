"""Texts that are found in rows by the rows of another model (organism/log/log.py, ``ReadModel.text_in``)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from organism.log.log import Log, Query
from tests.contracts.test_log import ENGINES
from tests.log.engines import created, sent, unit


@pytest.fixture(params=ENGINES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    """Two threads: two messages in the first, one in the second."""
    opened = await ENGINES[request.param](tmp_path / "log")
    opened.append(unit("thr-1", created(), sent("msg-1", "first Word")))
    opened.append(unit("thr-2", created(), sent("msg-2", 'a "quoted" ü')))
    await opened.commit(unit("thr-1", sent("msg-3", "third")))
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(text="WORD"), ["thr-1"]),
        (Query(text="r"), ["thr-1"]),
        (Query(text="o"), ["thr-1", "thr-2"]),
        (Query(text='"quoted" ü'), ["thr-2"]),
        (Query(text="%"), []),
        (Query(text="third", at=4), []),
        (Query(text="third", at=5), ["thr-1"]),
    ],
)
async def test_l4_a_thread_is_found_by_the_text_of_its_messages(log: Log, query: Query, expected: list[str]) -> None:
    page = await log.rows("threads", query)
    assert ([row["id"] for row in orjson.loads(page.rows)], page.total) == (expected, len(expected))
