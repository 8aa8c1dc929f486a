"""The replies to an injection, collected from the units as they reach the disk."""

from __future__ import annotations

import orjson

from organism.events.record import Content
from organism.events.vocabulary import ThreadCompleted
from organism.server.turns.replies import ReplyCollector
from tests.views.folding import Scenario


def reply(scenario: Scenario, message: str, cause: str) -> None:
    scenario.sends(message, "console", "greeter").correlation = cause


def test_the_end_that_is_waited_for_is_the_first_after_the_injection() -> None:
    """The end before may still be on its way to the disk when the injection is taken in."""
    collector, scenario = ReplyCollector(), Scenario()
    collector.begin("t", "m2")
    scenario.add(ThreadCompleted(), "t")
    scenario.sends("m2", "greeter").correlation = "m2"
    reply(scenario, "m3", "m2")
    scenario.add(ThreadCompleted(), "t")
    reply(scenario, "m4", "m2")
    scenario.add(ThreadCompleted(), "t")
    for record in scenario.records:
        collector.take([record])
    assert (collector.end, len(collector.replies)) == (4, 1)


def test_two_that_wait_for_one_thread_get_each_its_own_replies() -> None:
    scenario = Scenario()
    waiting = {message: ReplyCollector() for message in ("m1", "m2")}
    for message, collector in waiting.items():
        collector.begin("t", message)
        scenario.sends(message, "greeter").correlation = message
    for message in waiting:
        reply(scenario, f"{message}-answer", message)
    scenario.add(ThreadCompleted(), "t")
    for collector in waiting.values():
        collector.take(scenario.records)
    assert [(collector.end, len(collector.replies)) for collector in waiting.values()] == [(5, 1), (5, 1)]


def test_a_reply_whose_payload_was_erased_is_shown_as_erased() -> None:
    collector, scenario = ReplyCollector(), Scenario()
    collector.begin("t", "m1")
    scenario.sends("m1", "greeter").correlation = "m1"
    reply(scenario, "m2", "m1")
    scenario.records[-1].content = Content("t", b"", erased=True)
    collector.take(scenario.records)
    assert [orjson.loads(each)["payload"] for each in collector.replies] == [{"erased": True}]
