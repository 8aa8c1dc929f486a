"""The twin in memory and the durable engine answer alike, whatever is asked of them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.errors import StalePosition
from organism.log import connections
from organism.log.log import Among, EventFilter, Log, Query, Where
from organism.model.events import Event, Unit
from tests.log.engines import MODELS, as_tuples, created, handled, open_durable, open_twin, sent, unit

THREADS = ["thr-1", "thr-2", "thr-3"]
NAMES = ["ann", "bob", "é|x"]
Step = tuple[str, int, int, str]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "handle", "kill", "stale", "read", "page", "rows", "past"]),
        st.integers(0, 2),
        st.integers(0, 9),
        st.text(),
    ),
    max_size=25,
)


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


async def play(log: Log, steps: list[Step]) -> list[Any]:
    """Run the steps; gives every answer."""
    answers: list[Any] = []
    for turn, (kind, which, number, text) in enumerate(steps):
        if kind == "read":
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
                after=((number if number % 3 else "", f"msg-{number % 5}") if number % 4 == 1 else None),
                among=(Among("thread", "threads", (Where("sent", ">", which),)),) if number % 4 > 1 else (),
            )
            answers.append(await log.rows("messages", query))
        elif kind == "rows":
            where = (Where("sent", "=", number % 4),) if number % 2 else ()
            after = (number, THREADS[which]) if number % 3 else None
            answers.append(await log.rows("threads", Query(where, "last", descending=number > 4, limit=2, after=after)))
        elif kind == "past":
            model, at = MODELS[which].name, number * 2
            answers.append(await log.rows(model, Query(text=text[:1] if model != "agents" else "", at=at)))
            answers.append([await log.row("threads", thread, at) for thread in THREADS])
        else:
            answers.append(await attempt(log, make(kind, which, number, text, turn)))
    answers += [await log.rows(model.name, Query()) for model in MODELS]
    answers.append([await log.private_row("threads", thread) for thread in THREADS])
    answers.append([await log.content(position) for position in range(1, 9)])
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
    found = await play(durable, steps), await play(twin, steps)
    await durable.close()
    await twin.close()
    return found


@given(steps=STEPS)
def test_the_twin_answers_as_the_durable_engine_does(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as place:
        durable, twin = asyncio.run(both(steps, Path(place) / "log"))
    assert durable == twin


@given(steps=STEPS)
def test_a_read_that_takes_time_gives_the_same(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "QUICK_SECONDS", -1.0)
        patch.setattr(connections, "LOOK_STEPS", 1)
        durable, twin = asyncio.run(both(steps, Path(place) / "log"))
    assert durable == twin
