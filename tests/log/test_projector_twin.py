"""Whatever becomes of the process that writes rows: every answer is the twin's, and the past is the same."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from organism.log import row_writers
from organism.log.cache import SPAN_EVENTS
from organism.log.log import Query
from organism.log.sqlite import SqliteLog
from tests.log.engines import MODELS, created, open_durable, open_twin, sent, unit
from tests.log.projecting import committing, flush, opened, pid_of, projected, projector_of, ready, written
from tests.log.test_twin import RULES, Keeper, Step, play


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process is asked for a single unit's rows."""
    monkeypatch.setattr(row_writers, "FEW_UNITS", 1)


class Process:
    """Rules over the process that writes rows: it can stand still, die, and be asked."""

    def __init__(self, log: SqliteLog) -> None:
        self._log = log

    def rule(self, kind: str) -> None:
        """See ``Rule``."""
        process = projector_of(self._log)._process  # noqa: SLF001 - the log shows it to nobody
        sent_signal = {"hold": signal.SIGSTOP, "free": signal.SIGCONT, "die": signal.SIGKILL}.get(kind)
        if sent_signal is None:
            flush(self._log)
        elif process is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, sent_signal)


KINDS = ["send", "send", "send", "handle", "kill", "read", "page", "rows", "hold", "write", "write", "free"]
STEPS = st.lists(
    st.tuples(st.sampled_from([*KINDS, *RULES]), st.integers(0, 2), st.integers(0, 9), st.text(max_size=3)),
    min_size=5,
    max_size=30,
)


async def both(steps: list[Step], place: Path) -> tuple[list[Any], list[Any]]:
    """What the log with the other processes answers, and its twin."""
    twin = await open_twin()
    async with projected(place) as log:
        await committing(log)
        found = await play(log, steps, Process(log)), await play(twin, steps, Keeper(twin))
    await twin.close()
    anew = await open_durable(place)
    at_rest = [(await anew.rows(model.name, Query())).rows for model in MODELS]
    await anew.close()
    (place / "views.sqlite").unlink()
    anew = await open_durable(place)
    assert at_rest == [(await anew.rows(model.name, Query())).rows for model in MODELS]
    await anew.close()
    return found


@settings(max_examples=40)
@given(steps=STEPS)
def test_the_twin_answers_as_the_engine_with_three_processes_does(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as place:
        durable, twin = asyncio.run(both(steps, Path(place) / "log"))
    assert durable == twin


async def test_l10_the_past_is_the_same_whoever_wrote_it(tmp_path: Path) -> None:
    """Rows stand at milestones in the tables of the past, whichever process folded them, in whatever portions."""
    seen = []
    one, two = SPAN_EVENTS, 2 * SPAN_EVENTS
    for open_one in (opened, open_durable):
        place = tmp_path / open_one.__name__
        log = await open_one(place)
        if open_one is opened:
            await ready(log)
        for number in range(two + 450):
            log.append(unit(f"thr-{number % 3}", sent(f"msg-{number:04}")))
            if number % 600 == 0:
                await log.commit(unit("thr-1", created()))
                await written(log)
            if number in {one - 300, two - 350}:
                await log.private_row("threads", "thr-2")
            if number == two - 150 and open_one is opened:
                os.kill(pid_of(log), signal.SIGKILL)
        positions = (2, 1000, one, one + 1, one + 400, two - 1, two, two + 100, log.head)
        seen.append([await log.rows(model.name, Query(at=at, limit=5)) for at in positions for model in MODELS])
        await log.close()
    assert seen[0] == seen[1]
