"""What frames must know of the time before they begin, however long it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from organism.log.log import EventFilter
from organism.log.memory import MemoryLog
from organism.model.events import Event, Unit
from organism.projections import threads
from organism.server import learn
from organism.server.frames import Folded
from organism.server.learn import SHORT_EVENTS, thread_at
from tests.log.engines import START_US
from tests.server.tales import MODELS, Teller, on_disk

SHOWN = ("status", "error", "paused", "message_count", "participants")


@pytest.mark.parametrize("short", [3, 1 << 20], ids=["by look-ups", "by its history"])
async def test_a_thread_is_learned_as_it_stood_at_any_position(monkeypatch: pytest.MonkeyPatch, short: int) -> None:
    monkeypatch.setattr(learn, "SHORT_EVENTS", short)
    log = await MemoryLog.open(MODELS)
    head = await Teller(log, seed=3).tell(120)
    row = None
    events = {event.position: event for event in await log.read(wanted=EventFilter(threads=("t0",)), limit=head)}
    for position in range(1, head + 1):
        if position in events:
            row = threads.apply("t0", row, events[position])
        learned = await thread_at(log, "t0", position)
        assert (learned is None) == (row is None)
        if learned is not None and row is not None:
            assert [learned[name] for name in SHOWN] == [row[name] for name in SHOWN]
    await log.close()


async def test_a_long_thread_is_learned_by_a_handful_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await on_disk(tmp_path / "log")
    log.append(Unit("t", [Event("thread_created", {})], START_US, {}))
    for number in range(5000):
        sent = {"message": f"m{number}", "from": "ann", "to": "bob", "type": "T", "depth": 1, "token": "c"}
        log.append(Unit("t", [Event("message_sent", sent)], START_US, {}))
    head = await log.commit(Unit("t", [Event("thread_completed", {})], START_US, {}))
    given: list[Event] = []
    read = log.read

    async def counting(*arguments: object, **options: object) -> list[Event]:
        events = await read(*arguments, **options)  # type: ignore[arg-type] # handed on as they came
        given.extend(events)
        return events

    monkeypatch.setattr(log, "read", counting)
    learned = await thread_at(log, "t", head - 1)
    assert learned is not None
    assert (learned["status"], learned["message_count"], learned["participants"]) == ("active", 5000, ["ann", "bob"])
    assert len(given) <= SHORT_EVENTS + 2
    await log.close()


@pytest.mark.parametrize(("told", "status"), [(["organism_paused"], "paused"), (["organism_resumed"], "running")])
async def test_a_start_says_whether_the_organism_was_paused_long_before(told: list[str], status: str) -> None:
    log = await MemoryLog.open(MODELS)
    for kind in ("organism_paused", "organism_resumed", *told, "agent_paused", "organism_started"):
        await log.commit(Unit(None, [Event(kind, {})], START_US, {}))
    folded = Folded(log.head - 1)
    events = await log.read(folded.position)
    await learn.learn(log, folded, events)
    assert status.encode() in folded.frames(events)[0].wire
    await log.close()
