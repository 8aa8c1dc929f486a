"""What entities show of themselves: a traceback with locals must neither follow the whole state nor tell a payload."""

from __future__ import annotations

from rich.pretty import pretty_repr

from organism.events.record import Content, Record
from organism.events.vocabulary import MessageSent
from organism.model.thread import Message, Thread
from organism.pump.run.mailboxes import Line, Mailbox, Queued

SENT = MessageSent("msg-1", "console", "greeter", "Greeting", 1, "call-1")


def test_an_entity_shows_no_field() -> None:
    message = Message.sent(Record(SENT), Thread("thr-1"))
    queued = Queued(message, Line(Mailbox("greeter", 1), message.thread), "canary")
    for shown in (repr(queued), str(queued), pretty_repr(queued), pretty_repr({"queued": queued})):
        assert "Queued" in shown
        assert "canary" not in shown
        assert "thr-1" not in shown


def test_a_record_shows_neither_its_event_nor_its_content() -> None:
    record = Record(SENT, Content("thr-1", b'"canary"'), "thr-1")
    for shown in (repr(record), pretty_repr(record), pretty_repr([record])):
        assert "Record" in shown
        assert [word for word in ("canary", "msg-1", "thr-1") if word in shown] == []


def test_entities_are_compared_by_identity() -> None:
    assert Thread("thr-1") != Thread("thr-1")
    assert len({Thread("thr-1"), Thread("thr-1")}) == 2
