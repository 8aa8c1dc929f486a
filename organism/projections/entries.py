"""An event of a run as the entry that it is: ``{"type", "data"}``.

What a handler or a model said is the event's content, so that it can be erased; where there is none, an entry says
nothing but its id or its reason, which the event holds itself.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.model.events import Event
from organism.model.run import RunEntry

PREFIX: Final = "run_"
OWN: Final = ("id", "stopReason")
ERASED: Final = b'{"erased":true}'


def kind_of(event: Event) -> str:
    """The entry's type."""
    return event.type.removeprefix(PREFIX)


def data_of(event: Event) -> bytes:
    """The entry's data as JSON; the event was read with its content."""
    content = event.content
    if content is None:
        return orjson.dumps({name: event.data[name] for name in OWN if name in event.data})
    return ERASED if content.erased else content.json


def entry_of(event: Event) -> RunEntry:
    """The entry."""
    data: dict[str, Any] = orjson.loads(data_of(event))
    return {"type": kind_of(event), "data": data}
