"""What entities show of themselves: a traceback with locals must neither follow the whole state nor tell a payload."""

from __future__ import annotations

from rich.pretty import pretty_repr

from organism.events.record import Record
from organism.events.vocabulary import MessageSent
from organism.model.thread import Message, Thread

SENT = MessageSent("msg-1", "console", "greeter", "Greeting", depth=1, token="")


def test_an_entity_shows_no_field() -> None:
    message = Message.sent(Record(SENT), Thread("thr-1"))
    message.payload = "canary"
    for shown in (repr(message), str(message), pretty_repr(message), pretty_repr({"message": message})):
        assert "Message" in shown
        assert "canary" not in shown
        assert "thr-1" not in shown


def test_entities_are_compared_by_identity() -> None:
    assert Thread("thr-1") != Thread("thr-1")
    assert len({Thread("thr-1"), Thread("thr-1")}) == 2
