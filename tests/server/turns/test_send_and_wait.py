"""The replies to an injection, collected from the log."""

from __future__ import annotations

import orjson

from organism.events.record import Content
from organism.events.vocabulary import ThreadCompleted
from organism.server.turns.send_and_wait import Replies
from tests.views.folding import Scenario


def reply(scenario: Scenario, message: str, cause: str) -> None:
    scenario.sends(message, "console", "greeter").correlation = cause


def test_the_end_that_is_waited_for_is_the_first() -> None:
    replies, scenario = Replies("m1"), Scenario()
    reply(scenario, "m2", "m1")
    scenario.add(ThreadCompleted(), "t")
    reply(scenario, "m3", "m1")
    scenario.add(ThreadCompleted(), "t")
    replies.take(scenario.records)
    assert (replies.end, len(replies.shown)) == (2, 1)


def test_two_that_wait_for_one_thread_get_each_its_own_replies() -> None:
    scenario, waiting = Scenario(), [Replies("m1"), Replies("m2")]
    for replies in waiting:
        reply(scenario, f"{replies.message_id}-answer", replies.message_id)
    scenario.add(ThreadCompleted(), "t")
    for replies in waiting:
        replies.take(scenario.records)
    assert [(replies.end, len(replies.shown)) for replies in waiting] == [(3, 1), (3, 1)]


def test_a_reply_whose_payload_was_erased_is_shown_as_erased() -> None:
    replies, scenario = Replies("m1"), Scenario()
    reply(scenario, "m2", "m1")
    scenario.records[-1].content = Content("t", b"", erased=True)
    replies.take(scenario.records)
    assert [orjson.loads(each)["payload"] for each in replies.shown] == [{"erased": True}]
