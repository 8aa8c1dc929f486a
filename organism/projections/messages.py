"""The messages, one row each, as the API shows them; a message never changes once it is sent."""

from __future__ import annotations

from collections.abc import Sequence

from organism.log.log import KEY, ColumnRow, ReadModel, Row, Shown
from organism.model.events import Event


def head(event: Event) -> Row:
    """The API's Message of a ``message_sent``, all but its payload.

    Lists, single answers and pushed frames all begin with it and add ``payload``: the content of the event there.
    """
    return MODEL.show(row_of(event))


def row_of(event: Event) -> ColumnRow:
    """What the engine keeps of a message: its id, then the columns in their order."""
    data = event.data
    message: str = data["message"]
    return message, event.position, event.thread, data["from"], data["to"], event.at, data["type"], event.cause


def fold(rows: dict[str, ColumnRow], events: Sequence[Event]) -> None:
    for event in events:
        if event.type == "message_sent":
            rows[event.data["message"]] = row_of(event)


MODEL = ReadModel(
    name="messages",
    version=1,
    types=("message_sent",),
    fold=fold,
    columns={
        "position": "INTEGER",
        "thread_id": "TEXT",
        "sender": "TEXT",
        "receiver": "TEXT",
        "sent_at": "INTEGER",
        "payload_type": "TEXT",
        "cause": "TEXT",
    },
    indexes=(("thread_id",), ("sender",), ("receiver",)),
    with_content=True,
    shown=(
        Shown("id", KEY),
        Shown("thread_id", "thread_id"),
        Shown("from", "sender"),
        Shown("to", "receiver"),
        Shown("payload_type", "payload_type"),
        Shown("timestamp", "sent_at", is_time=True),
        Shown("position", "position"),
        Shown("cause", "cause"),
    ),
)
