"""The process that writes rows: what it is asked for, and on which cores it works."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from organism.errors import LogDamaged
from organism.log import projection
from organism.log.chain import Salts
from organism.log.encode import encode, unfold
from organism.log.folds import MOST_UNREAD
from organism.log.upcast import Upcaster
from organism.model.events import Event
from tests.log.engines import created, open_durable, sent, unit
from tests.log.projecting import another


def asked(*parts: bytes) -> Iterator[int]:
    """What is understood of an input that comes in these parts and ends."""
    reading, writing = os.pipe()
    for part in parts:
        os.write(writing, part)
    os.close(writing)
    yield from projection.wishes(reading)
    os.close(reading)


def test_of_wishes_that_came_together_the_newest_counts() -> None:
    assert list(asked(b"3\n", b"17\n")) == [17]
    assert list(asked(b"3\n1")) == [3]
    assert list(asked()) == []


def test_who_is_asked_for_nothing_in_a_while_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "LEAVE_SECONDS", 0.0)
    reading, writing = os.pipe()
    assert list(projection.wishes(reading)) == [0]
    os.close(reading)
    os.close(writing)


CALM, PLAIN, QUICK = "calm", "plain", "quick"
LITTLE, SOME, MUCH = projection.LITTLE_EVENTS, projection.MUCH_EVENTS, projection.MUCH_EVENTS + 1


def hands(*behind: int) -> list[str]:
    """Which thread does each of the steps before which there is so much to do."""
    seen: list[str] = []

    def do() -> Iterator[int]:
        for events in behind:
            yield events
            is_here = threading.current_thread() is threading.main_thread()
            plain = PLAIN if is_here else QUICK
            seen.append(CALM if os.sched_getscheduler(0) == os.SCHED_IDLE else plain)

    projection.Hands().work(do())
    return seen


def test_what_little_there_is_is_done_when_a_core_is_idle_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hands(LITTLE, LITTLE + 1, LITTLE) == [CALM, PLAIN, CALM]
    monkeypatch.setattr(projection, "PATIENCE_SECONDS", -1.0)
    assert hands(LITTLE, LITTLE + 1, LITTLE) == [PLAIN] * 3


def test_who_falls_behind_is_quick() -> None:
    assert hands(SOME, MUCH, SOME) == [PLAIN, QUICK, PLAIN]
    assert MUCH < MOST_UNREAD


async def test_each_step_says_how_much_there_is_to_do(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    made = another(log)
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    assert set(made.steps(log.head)) == {2}
    assert orjson.loads(made.answer()) == {
        "position": 2,
        "greatest": {"messages": "msg-1", "threads": "thr-1", "agents": "greeter"},
    }
    await log.close()


async def test_who_is_asked_for_more_than_there_is_ends(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    with pytest.raises(LogDamaged, match="ends before position 3"):
        list(another(log).steps(log.head + 1))
    await log.close()


def test_of_a_unit_that_was_folded_in_part_only_the_rest_is_folded() -> None:
    made = unit("thr-1", created(), sent("msg-1"), Event("thread_created", {}, thread="thr-2"))
    body, _, _ = encode(made, 7, Salts(os.urandom))
    for known, expected in ((6, [7, 8, 9]), (7, [8, 9]), (9, [])):
        events, streams = unfold([(7, body)], known, Upcaster())
        assert [event.position for event in events] == expected
        assert streams == [("thr-1", 7, 8), ("thr-2", 7, 9)]
