"""The agents, one event after the other."""

from __future__ import annotations

from typing import Any

from organism.log.log import Row
from tests.projections.folding import Story, listener


class Watch(Story):
    """A story about ``greeter``, told in threads named as their messages are."""

    def __init__(self) -> None:
        super().__init__()
        self.starts("greeter", "shouter")

    @property
    def row(self) -> Row:
        return self.rows("agents")["greeter"]

    @property
    def now(self) -> tuple[str, str | None, int]:
        """State, current thread, queue."""
        row = self.row
        return row["state"], row["current_thread"], row["queue_depth"]

    def works_on(self, *messages: str) -> Watch:
        """Messages are sent to the greeter and start, each in a thread of its own."""
        for message in messages:
            self.sends(message, "greeter")
            self.begins(message, "greeter", message)
        return self

    def step(self, message: str, number: int = 1, kind: str = "ask", **more: Any) -> Watch:
        """A step begins."""
        self.tell("step_started", message, message=message, agent="greeter", step=number, kind=kind, input="d", **more)
        return self

    def record(self, message: str, number: int = 1, kind: str = "ask") -> Watch:
        """A step has its result."""
        self.tell("step_recorded", message, message=message, agent="greeter", step=number, kind=kind, input="d")
        return self

    def done(self, message: str) -> None:
        """A handling ends well."""
        self.ends(message, "greeter", thread=message)

    def dies(self, message: str) -> None:
        """A handling fails for good."""
        self.tell("message_dead", message, message=message, agent="greeter", code="handler_error", reason="boom")

    def fails_once(self, message: str) -> None:
        """An attempt fails."""
        self.tell("message_retried", message, message=message, agent="greeter", attempt=1, error="boom", next_at=1)

    def reload(self, *names: str, removed: tuple[str, ...] = ()) -> None:
        """The configuration is read anew."""
        self.tell("organism_reloaded", listeners=[listener(name) for name in names], removed=list(removed))


def test_an_agent_has_the_fields_of_the_api_in_their_order() -> None:
    assert list(Watch().row.items()) == [
        ("name", "greeter"),
        ("description", "The greeter"),
        ("is_agent", True),
        ("peers", []),
        ("payload_class", "handlers.hello.Greeting"),
        ("state", "idle"),
        ("current_thread", None),
        ("queue_depth", 0),
        ("last_activity", None),
        ("paused", False),
        ("message_count", 0),
        ("model", None),
        ("version", "1"),
    ]


def test_a_started_message_waits_no_more() -> None:
    watch = Watch().works_on("m")
    assert (watch.now, watch.row["last_activity"]) == (("processing", "m", 0), "2026-01-11T21:47:50.000000Z")


def test_the_current_thread_is_that_of_the_latest_start_still_open() -> None:
    watch = Watch().works_on("a", "b", "c")
    seen = [watch.now]
    for message in ("c", "a", "b"):
        watch.done(message)
        seen.append(watch.now)
    assert [thread for _, thread, _ in seen] == ["c", "b", "b", None]


def test_a_handling_waits_in_an_ask_an_approval_and_a_model_call() -> None:
    for kind in ("ask", "approve", "complete"):
        watch = Watch().works_on("m").step("m", kind=kind)
        assert watch.now == ("waiting", "m", 0)
        assert watch.record("m", kind=kind).now == ("processing", "m", 0)


def test_an_effect_is_the_handlings_own_work() -> None:
    assert Watch().works_on("m").step("m", kind="effect", effect="unsafe").now == ("processing", "m", 0)


def test_overlapping_asks_of_one_handling_count_once() -> None:
    watch = Watch().works_on("m", "n").step("m", 1).step("m", 2)
    seen = [watch.now[0], watch.step("n").now[0], watch.record("m", 1).now[0], watch.record("m", 2).now[0]]
    assert seen == ["processing", "waiting", "waiting", "processing"]


def test_a_paused_agent_is_paused_at_once_and_shows_it_when_nothing_runs() -> None:
    watch = Watch().works_on("m")
    watch.tell("agent_paused", agent="greeter", by="operator")
    assert (watch.row["paused"], watch.now[0]) == (True, "processing")
    watch.done("m")
    assert watch.now[0] == "paused"
    watch.tell("agent_resumed", agent="greeter", by="operator")
    assert (watch.row["paused"], watch.now[0]) == (False, "idle")


def test_an_agent_whose_last_handling_failed_for_good_is_in_error_until_one_does_not() -> None:
    watch = Watch().works_on("m")
    watch.dies("m")
    failed = watch.now
    watch.works_on("n")
    watch.done("n")
    assert [failed, watch.now] == [("error", None, 0), ("idle", None, 0)]


def test_an_unread_reply_heals_no_error() -> None:
    watch = Watch().works_on("m")
    watch.dies("m")
    watch.sends("r", "greeter", "shouter", reply=True)
    watch.ends("r", "greeter", "unread")
    assert watch.now == ("error", None, 0)


def test_a_retry_does_not_wait_in_the_asks_of_the_attempt_that_failed() -> None:
    watch = Watch().works_on("m").step("m")
    watch.fails_once("m")
    watch.begins("m", "greeter", "m")
    assert watch.now == ("processing", "m", 0)


def test_a_retry_waits_for_the_operator_while_an_effect_is_unknown() -> None:
    watch = Watch().works_on("m").step("m", kind="effect", unknown=True)
    watch.fails_once("m")
    watch.begins("m", "greeter", "m")
    waiting = watch.now
    watch.tell("step_resolved", "m", message="m", agent="greeter", step=1, outcome="redo")
    assert [waiting, watch.now] == [("waiting", "m", 0), ("processing", "m", 0)]


def test_a_new_life_runs_nothing_until_it_starts_again() -> None:
    watch = Watch().works_on("m")
    watch.starts("greeter", "shouter")
    waiting = watch.now
    watch.tell("message_started", "m", message="m", agent="greeter", attempt=2, after="death")
    assert [waiting, watch.now] == [("idle", None, 1), ("processing", "m", 0)]


def test_a_start_of_what_runs_already_is_counted_once_and_is_the_latest() -> None:
    watch = Watch().works_on("m", "n")
    watch.tell("message_started", "m", message="m", agent="greeter", attempt=2, after="stop")
    assert watch.now == ("processing", "m", 0)
    watch.done("m")
    assert watch.now == ("processing", "n", 0)


def test_open_asks_are_waited_for_again_after_a_restart() -> None:
    watch = Watch().works_on("m").step("m")
    watch.starts("greeter", "shouter")
    watch.begins("m", "greeter", "m")
    assert watch.now == ("waiting", "m", 0)
    assert watch.record("m").now == ("processing", "m", 0)


def test_an_answer_that_came_while_its_handling_was_down_is_not_waited_for() -> None:
    watch = Watch().works_on("m").step("m")
    watch.starts("greeter", "shouter")
    watch.record("m")
    watch.begins("m", "greeter", "m")
    assert watch.now == ("processing", "m", 0)


def test_an_answer_to_an_ask_waits_in_no_queue() -> None:
    watch = Watch().works_on("m").step("m")
    watch.sends("r", "greeter", "shouter", reply=True, answers=["m", 1])
    assert (watch.now, watch.row["message_count"]) == (("waiting", "m", 0), 2)
    watch.ends("r", "greeter", "answered")
    assert watch.record("m").now == ("processing", "m", 0)


def test_what_was_killed_while_it_waited_holds_up_nobody() -> None:
    watch = Watch().works_on("m").step("m")
    watch.ends("m", "greeter", "killed", "m")
    assert watch.works_on("n").now == ("processing", "n", 0)


def test_an_effect_found_unknown_in_a_message_that_is_not_started_makes_nobody_wait() -> None:
    watch = Watch().works_on("m", "n").step("m", kind="effect", effect="unsafe")
    watch.starts("greeter", "shouter")
    watch.step("m", kind="effect", effect="unsafe", unknown=True)
    watch.begins("n", "greeter", "n")
    assert watch.now == ("processing", "n", 1)


def test_nothing_of_an_ended_message_stays_behind() -> None:
    watch = Watch().works_on("m").step("m")
    watch.starts("greeter", "shouter")
    watch.dies("m")
    row = watch.kept("agents")["greeter"]
    assert (row["_running"], row["_waits"], row["_parked"]) == ({}, {}, {})


def test_agents_stand_in_the_order_of_the_configuration() -> None:
    watch = Watch()
    watch.reload("sink", "shouter", "greeter")
    rows = watch.kept("agents")
    assert sorted(rows, key=lambda name: rows[name]["_ordinal"]) == ["sink", "shouter", "greeter"]


def test_the_outside_is_no_agent() -> None:
    watch = Watch()
    watch.sends("m", "console", "greeter")
    watch.ends("m", "console", "delivered")
    assert set(watch.rows("agents")) == {"greeter", "shouter"}


def test_a_reload_updates_what_is_there_and_keeps_what_it_does() -> None:
    watch = Watch().works_on("m")
    watch.tell(
        "organism_reloaded", listeners=[listener("greeter", version="2", peers=["shouter"])], removed=["shouter"]
    )
    assert (watch.row["version"], watch.row["peers"], watch.now) == ("2", ["shouter"], ("processing", "m", 0))


def test_a_removed_listener_with_nothing_open_is_gone_at_once() -> None:
    watch = Watch()
    watch.reload("shouter", removed=("greeter",))
    assert set(watch.rows("agents")) == {"shouter"}


def test_a_removed_listener_goes_when_the_last_of_it_ends() -> None:
    watch = Watch().works_on("m")
    watch.sends("n", "greeter")
    watch.reload("shouter", removed=("greeter",))
    watch.done("m")
    still_there = watch.now
    watch.dies("n")
    assert still_there == ("idle", None, 1)
    assert set(watch.rows("agents")) == {"shouter"}


def test_a_removed_listener_that_comes_back_in_time_stays() -> None:
    watch = Watch().works_on("m")
    watch.reload("shouter", removed=("greeter",))
    watch.reload("shouter", "greeter")
    watch.done("m")
    assert watch.now == ("idle", None, 0)
