"""The oracle is no yes-man: a scenario that holds passes, and each fault in it is found by the law that it breaks."""

from __future__ import annotations

import pkgutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import ThreadCreated
from organism.log.sqlite import SqliteLog
from organism.model.times import LogClock
from tests.faults.chain import chain_faults
from tests.faults.client import Answer
from tests.faults.follower import Follower
from tests.faults.frames import Subscription
from tests.faults.ledger import Ledger
from tests.faults.oracle import Evidence, Line, judge
from tests.faults.points import POINTS
from tests.faults.workload import Injection

THREAD: Final = "thr"
ROOT: Final = "m1"


def accepted_as(message: str, position: int) -> Answer:
    """What an injection is answered with."""
    return Answer(202, orjson.dumps({"thread_id": THREAD, "message_id": message, "position": position}))


class Scenario:
    """One injection that pays, as events: a message with an unsafe effect, and one to the console."""

    def __init__(self) -> None:
        accepted = [accepted_as(ROOT, 3) for _ in range(2)]
        self.injection = Injection("t0", "payer", {"tag": "t0"}, frozenset({("paid", 0, "?")}), "key-t0", 2, accepted)
        self.injections = [self.injection]
        self.lines = [Line("m1/charge", "t0", "charge")]
        self.killed: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.add("organism_started", clean=True)
        self.add("thread_created")
        self.sent(ROOT, "console", "payer", {"tag": "t0", "part": 0})
        self.add("message_started", message=ROOT, agent="payer")
        self.step = {"message": ROOT, "agent": "payer", "step": 1, "kind": "effect"}
        self.add("step_started", effect="unsafe", key="charge", **self.step)
        self.add("step_recorded", **self.step)
        self.sent("m2", "payer", "console", {"tag": "t0", "kind": "paid", "part": 0, "value": "x"})
        self.add("message_handled", message="m2", agent="console", outcome="delivered")
        self.add("message_handled", message=ROOT, agent="payer", outcome="done")
        self.add("thread_completed")
        self.follower = Follower(Subscription("everything"))

    def add(self, kind: str, content: Any = None, /, **fields: Any) -> None:
        """One more event at the end."""
        event = {
            "position": len(self.events) + 1,
            "type": kind,
            "thread_id": THREAD,
            "data": fields,
            "content": content,
        }
        self.events.append(event)

    def sent(self, message: str, sender: str, to: str, payload: Any) -> None:
        """One more message at the end."""
        self.add("message_sent", payload, message=message, **{"from": sender, "to": to})

    def drop(self, kind: str, /, **fields: Any) -> None:
        """Take the events of this kind with these fields out, and close the gap."""
        kept = [one for one in self.events if one["type"] != kind or not fields.items() <= one["data"].items()]
        self.events = [{**event, "position": number} for number, event in enumerate(kept, 1)]

    def judged(self, sabotage: Callable[[Scenario], object]) -> set[str]:
        """The laws that are broken after ``sabotage``. The follower saw what was there before it."""
        ledger = Ledger()
        ledger.take(self.events)
        self.follower.frames = ledger.frames(self.follower.subscription, ledger.head)
        self.follower.position = ledger.head
        sabotage(self)
        ledger = Ledger()
        ledger.take(self.events)
        found = judge(Evidence(self.injections, ledger, self.lines, [self.follower], frozenset(self.killed)))
        return {sentence.partition(":")[0] for sentence in found}


def _park(scenario: Scenario) -> None:
    scenario.drop("message_handled", message=ROOT)
    scenario.add("message_dead", message=ROOT, agent="payer", code="killed_process")


def _start_in_a_pause(scenario: Scenario) -> None:
    scenario.add("agent_paused", agent="payer")
    scenario.add("message_started", message=ROOT, agent="payer")


def _start_after_a_kill(scenario: Scenario) -> None:
    scenario.add("thread_killed")
    scenario.add("message_started", message=ROOT, agent="payer")


SABOTAGES: dict[str, tuple[str, Callable[[Scenario], object]]] = {
    "a gap": ("the_log_makes_sense", lambda s: s.events[-1].update(position=99)),
    "a message from nowhere": ("the_log_makes_sense", lambda s: s.drop("message_sent", message="m2")),
    "a start in a pause": ("the_log_makes_sense", _start_in_a_pause),
    "an event after a kill": ("the_log_makes_sense", _start_after_a_kill),
    "a kill that is not in the log": ("what_was_killed_stays_so", lambda s: s.killed.add(THREAD)),
    "an accepted message is gone": (
        "nothing_accepted_is_lost",
        lambda s: s.injection.answers.append(accepted_as("m7", 3)),
    ),
    "an answer names another position": (
        "nothing_accepted_is_lost",
        lambda s: s.injection.answers.append(accepted_as(ROOT, 4)),
    ),
    "a refusal": ("nothing_accepted_is_lost", lambda s: s.injection.answers.append(Answer(500, b"{}"))),
    "a second answer": ("the_same_key_has_the_same_answer", lambda s: s.injection.answers.append(accepted_as("m9", 3))),
    "a second message": ("nothing_is_taken_twice", lambda s: s.sent("m3", "console", "payer", {"tag": "t0"})),
    "a stranger": ("nothing_is_taken_twice", lambda s: s.sent("m3", "console", "payer", {"tag": "x"})),
    "a keyed injection that never came": (
        "nothing_is_taken_twice",
        lambda s: s.injections.append(Injection("t1", "first", {}, frozenset(), "key-t1", 1)),
    ),
    "a message without an end": ("each_message_ends_once", lambda s: s.drop("message_handled", message=ROOT)),
    "a message with two ends": (
        "each_message_ends_once",
        lambda s: s.add("message_handled", message=ROOT, agent="payer", outcome="done"),
    ),
    "no outcome": ("each_injection_has_its_results_once", lambda s: s.drop("message_sent", message="m2")),
    "two outcomes": (
        "each_injection_has_its_results_once",
        lambda s: s.sent("m3", "payer", "console", {"tag": "t0", "kind": "paid", "part": 0}),
    ),
    "another outcome": ("each_injection_has_its_results_once", lambda s: s.events[6]["content"].update(part=7)),
    "an unsafe effect that ran twice": (
        "an_unsafe_effect_ran_once_or_is_indeterminate",
        lambda s: s.lines.append(s.lines[0]),
    ),
    "an unsafe effect that never ran": ("an_unsafe_effect_ran_once_or_is_indeterminate", lambda s: s.lines.clear()),
    "another key": ("an_effect_has_one_key", lambda s: s.lines.append(Line("m9/charge", "t0", "charge"))),
    "a recorded effect that never ran": ("what_is_recorded_has_run", lambda s: s.lines.clear()),
    "an effect that the log does not know": (
        "what_is_recorded_has_run",
        lambda s: s.lines.append(Line("m1/x", "t0", "x")),
    ),
    "a message parked too early": ("only_what_ran_at_its_deaths_is_parked", _park),
    "a frame that is missing": ("followers_saw_the_log", lambda s: s.follower.frames.pop(1)),
    "a frame twice": ("followers_saw_the_log", lambda s: s.follower.frames.append(s.follower.frames[-1])),
    "a frame out of order": ("followers_saw_the_log", lambda s: s.follower.frames.reverse()),
    "a frame that is not in the log": (
        "followers_saw_the_log",
        lambda s: s.follower.frames.insert(3, (5, "message", "m9")),
    ),
}


def test_each_point_of_death_is_a_function_of_the_product() -> None:
    assert [name for name, point in POINTS.items() if not callable(pkgutil.resolve_name(point.target))] == []


def test_a_scenario_that_holds_breaks_no_law() -> None:
    assert Scenario().judged(lambda _: None) == set()


@pytest.mark.parametrize("name", SABOTAGES)
def test_what_is_wrong_is_found(name: str) -> None:
    law, sabotage = SABOTAGES[name]
    assert law in Scenario().judged(sabotage)


async def write_log(folder: Path) -> None:
    log = await SqliteLog.open(folder, LogClock(lambda: 1_000, lambda: 0), ())
    for number in range(5):
        record = Record(ThreadCreated(), Content("thr", b"{}", b"<a/>"), f"thr{number}")
        await log.commit(Unit(f"thr{number}", [record], 1, {}))
    await log.close()


async def test_a_log_as_it_was_written_has_a_whole_chain(tmp_path: Path) -> None:
    await write_log(tmp_path / "log")
    assert list(chain_faults(tmp_path / "log", tmp_path / "copy")) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE units SET body = CAST(replace(body, 'created', 'changed') AS BLOB) WHERE first = 3",
        "DELETE FROM units WHERE first = 3",
        "UPDATE units SET hash = NULL WHERE first = 5",
        "UPDATE units SET hash = (SELECT hash FROM units WHERE first = 2) WHERE first = 3",
        "UPDATE content SET json = X'00' WHERE position = 2",
        "DELETE FROM content WHERE position = 2",
    ],
)
async def test_a_damaged_log_has_a_broken_chain(tmp_path: Path, damage: str) -> None:
    await write_log(tmp_path / "log")
    with closing(sqlite3.connect(tmp_path / "log" / "log.sqlite")) as connection:
        assert connection.execute(damage).rowcount == 1
        connection.commit()
    assert list(chain_faults(tmp_path / "log", tmp_path / "copy")) != []
