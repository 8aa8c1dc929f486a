"""The messages, as rows and as heads of frames."""

from __future__ import annotations

from hypothesis import given

from organism.model.events import Event
from organism.projections import messages
from tests.projections.folding import Story, fold
from tests.projections.moves import lawful_logs


def sent() -> Event:
    story = Story()
    story.sends("msg-1", "greeter")
    event = story.events[0]
    event.cause = "msg-0"
    return event


def test_a_message_has_the_fields_of_the_api_in_their_order() -> None:
    assert list(messages.head(sent()).items()) == [
        ("id", "msg-1"),
        ("thread_id", "t"),
        ("from", "console"),
        ("to", "greeter"),
        ("payload_type", "Greeting"),
        ("timestamp", "2026-01-11T21:47:48.000000Z"),
        ("position", 1),
        ("cause", "msg-0"),
    ]


def test_a_row_begins_as_the_head_of_a_frame_does() -> None:
    assert fold(messages.MODEL, [sent()]) == {"msg-1": messages.head(sent())}


def test_an_injected_message_has_no_cause() -> None:
    event = sent()
    event.cause = None
    assert messages.head(event)["cause"] is None


@given(lawful_logs)
def test_every_send_and_nothing_else_is_a_message(events: list[Event]) -> None:
    expected = {event.data["message"]: messages.head(event) for event in events if event.type == "message_sent"}
    assert fold(messages.MODEL, events) == expected
