"""The twin in memory and the durable engine answer alike, whatever is asked of them."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from organism.errors import StalePosition
from organism.log import beside
from organism.log.log import EventFilter, Log, Query, Where
from organism.log.sqlite import SqliteLog
from organism.model.events import Event, Unit
from tests.log.engines import MODELS, as_tuples, created, handled, open_durable, open_twin, sent, unit

THREADS = ["thr-1", "thr-2", "thr-3"]
NAMES = ["ann", "bob", "é|x"]
Step = tuple[str, int, int, str]
RULES = frozenset({"hold", "write", "free", "die"})
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "handle", "kill", "stale", "read", "page", "rows", "hold", "write", "free"]),
        st.integers(0, 2),
        st.integers(0, 9),
        st.text(),
    ),
    max_size=25,
)


class Keeper:
    """Rules over when rows are written: their thread can be held, with a flush before the gate or behind it."""

    def __init__(self, log: Log) -> None:
        self._log = log if isinstance(log, SqliteLog) else None
        self._gate = threading.Event()
        self._gate.set()

    def rule(self, kind: str) -> None:
        """Hold the thread, post a flush or free the thread; a log in memory has none."""
        if self._log is None:
            return
        if kind == "hold" and self._gate.is_set():
            self._gate.clear()
            self._log._crew.keeper.post(lambda _, __: None, self._gate.wait)  # noqa: SLF001 - nobody else can
        elif kind == "write":
            self._log._rows.flush()  # noqa: SLF001 - else the clock says when
        elif kind == "free":
            self._gate.set()


def make(kind: str, which: int, number: int, text: str, turn: int) -> Unit:
    """The unit of a step."""
    thread, name = THREADS[which], NAMES[number % 3]
    events: dict[str, list[Event]] = {
        "send": [created(), sent(f"msg-{turn}", text.replace("\ud800", ""), to=name)],
        "handle": [handled(f"msg-{number}", name), Event("thread_created", {}, thread=THREADS[number % 3])],
        "kill": [Event("thread_killed", {})],
        "stale": [created()],
    }
    return unit(thread, *events[kind], expect={thread: 1} if kind == "stale" else {})


class Rule(Protocol):
    """Who says when rows are written."""

    def rule(self, kind: str) -> None:
        """Take a step of a kind of ``RULES``."""


async def play(log: Log, steps: list[Step], keeper: Rule) -> list[Any]:
    """Run the steps; gives every answer."""
    answers: list[Any] = []
    for turn, (kind, which, number, text) in enumerate(steps):
        if kind in RULES:
            keeper.rule(kind)
        elif kind == "read":
            wanted = EventFilter(
                (THREADS[which],) if number % 2 else (), ("message_sent",) if number > 5 else (), content=True
            )
            answers.append(as_tuples(await log.read(number, wanted=wanted, limit=number + 1, reverse=number % 3 == 0)))
        elif kind == "page":
            where = (Where("to", "=", NAMES[which]),) if number % 2 else ()
            query = Query(
                where,
                "position" if number % 3 else "",
                descending=number > 4,
                limit=3,
                offset=number % 2,
                text=text[:2],
            )
            answers.append(await log.rows("messages", query))
        elif kind == "rows":
            where = (Where("sent", "=", number % 4),) if number % 2 else ()
            answers.append(await log.rows("threads", Query(where, "last", descending=number > 4, limit=2)))
        else:
            answers.append(await attempt(log, make(kind, which, number, text, turn)))
    answers += [await log.rows(model.name, Query()) for model in MODELS]
    answers.append([await log.private_row("threads", thread) for thread in THREADS])
    answers.append([await log.content(position) for position in range(1, 9)])
    keeper.rule("free")
    answers.append(await log.rows("threads", Query(text="a")))
    answers.append((await log.verify()).damage)
    return answers


async def attempt(log: Log, made: Unit) -> int | str:
    try:
        return await log.commit(made)
    except StalePosition as error:
        return error.message


async def both(steps: list[Step], place: Path) -> tuple[list[Any], list[Any]]:
    """What each engine answers."""
    durable, twin = await open_durable(place), await open_twin()
    found = await play(durable, steps, Keeper(durable)), await play(twin, steps, Keeper(twin))
    await durable.close()
    await twin.close()
    return found


@settings(max_examples=100)
@given(steps=STEPS)
def test_the_twin_answers_as_the_durable_engine_does(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as place:
        durable, twin = asyncio.run(both(steps, Path(place) / "log"))
    assert durable == twin


@settings(max_examples=30)
@given(steps=STEPS)
def test_a_read_that_takes_time_gives_the_same(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside, "QUICK_SECONDS", -1.0)
        patch.setattr(beside, "LOOK_STEPS", 1)
        durable, twin = asyncio.run(both(steps, Path(place) / "log"))
    assert durable == twin
