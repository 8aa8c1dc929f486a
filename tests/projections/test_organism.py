"""The organism's one row."""

from __future__ import annotations

from hypothesis import given

from organism.log.log import Row
from organism.model.events import Event
from organism.projections import organism
from tests.projections.folding import AT, Story, fold
from tests.projections.moves import lawful_logs

LIFE = {"thread_created", "thread_reopened", "thread_completed", "thread_failed", "thread_killed"}


def row_of(story: Story) -> Row:
    return story.rows("organism")["organism"]


def started() -> Story:
    story = Story()
    story.starts("greeter", "shouter")
    return story


def test_the_organism_has_the_fields_of_the_api_and_its_start_to_count_from() -> None:
    assert list(row_of(started()).items()) == [
        ("name", "hello"),
        ("status", "running"),
        ("agent_count", 2),
        ("active_threads", 0),
        ("total_messages", 0),
        ("version", "0.1.0"),
        ("position", 1),
        ("started_at", AT + 1_000_000),
    ]


def test_there_is_no_organism_before_its_first_start() -> None:
    story = Story()
    story.tell("loop_blocked", duration=1)
    assert story.rows("organism") == {}


def test_killing_a_thread_that_had_ended_changes_no_count() -> None:
    story = started()
    story.tell("thread_created", "a")
    story.tell("thread_created", "b")
    story.tell("thread_completed", "b")
    story.tell("thread_killed", "b", ended=True)
    assert row_of(story)["active_threads"] == 1


def test_a_pause_shows_and_outlives_a_restart() -> None:
    story = started()
    story.tell("organism_paused", by="operator")
    story.starts("greeter")
    paused = row_of(story)["status"]
    story.tell("organism_resumed", by="operator")
    assert [paused, row_of(story)["status"]] == ["paused", "running"]


def test_a_restart_keeps_the_counts_and_takes_the_rest_from_the_new_life() -> None:
    story = started()
    story.tell("thread_created", "t")
    story.sends("m", "greeter")
    story.starts("greeter", "shouter", "sink")
    row = row_of(story)
    assert (row["active_threads"], row["total_messages"], row["agent_count"]) == (1, 1, 3)
    assert row["started_at"] == AT + 4_000_000


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    row = fold(organism.MODEL, events)["organism"]
    lives = [event for event in events if event.type in LIFE]
    last = {event.thread: event.type for event in lives}
    pauses = [event.type for event in events if event.type in {"organism_paused", "organism_resumed"}]
    listings = [event for event in events if "listeners" in event.data]
    assert row["active_threads"] == sum(kind in {"thread_created", "thread_reopened"} for kind in last.values())
    assert row["total_messages"] == sum(event.type == "message_sent" for event in events)
    assert row["status"] == ("paused" if pauses[-1:] == ["organism_paused"] else "running")
    assert row["agent_count"] == len(listings[-1].data["listeners"])
    assert row["position"] == len(events)
    assert row["started_at"] == max(event.at for event in events if event.type == "organism_started")
