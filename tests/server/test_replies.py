"""The replies to an injection, collected from the units as they reach the disk."""

from __future__ import annotations

import orjson

from organism.events.record import Content
from organism.events.vocabulary import ThreadCompleted
from organism.server.surfaces.waiting import ReplyCollector
from tests.views.folding import Story


def reply(story: Story, message: str, cause: str) -> None:
    story.sends(message, "console", "greeter").correlation = cause


def test_the_end_that_is_waited_for_is_the_first_after_the_injection() -> None:
    """The end before may still be on its way to the disk when the injection is taken in."""
    collector, story = ReplyCollector(), Story()
    collector.begin("t", "m2")
    story.tell(ThreadCompleted(), "t")
    story.sends("m2", "greeter").correlation = "m2"
    reply(story, "m3", "m2")
    story.tell(ThreadCompleted(), "t")
    reply(story, "m4", "m2")
    story.tell(ThreadCompleted(), "t")
    for record in story.records:
        collector.take([record])
    assert (collector.end, len(collector.replies)) == (4, 1)


def test_two_that_wait_for_one_thread_get_each_its_own_replies() -> None:
    story = Story()
    waiting = {message: ReplyCollector() for message in ("m1", "m2")}
    for message, collector in waiting.items():
        collector.begin("t", message)
        story.sends(message, "greeter").correlation = message
    for message in waiting:
        reply(story, f"{message}-answer", message)
    story.tell(ThreadCompleted(), "t")
    for collector in waiting.values():
        collector.take(story.records)
    assert [(collector.end, len(collector.replies)) for collector in waiting.values()] == [(5, 1), (5, 1)]


def test_a_reply_whose_payload_was_erased_is_shown_as_erased() -> None:
    collector, story = ReplyCollector(), Story()
    collector.begin("t", "m1")
    story.sends("m1", "greeter").correlation = "m1"
    reply(story, "m2", "m1")
    story.records[-1].content = Content("t", b"", erased=True)
    collector.take(story.records)
    assert [orjson.loads(each)["payload"] for each in collector.replies] == [{"erased": True}]
