"""Messages: the whole history, and one."""

from __future__ import annotations

from typing import Final

from organism.log.log import Where
from organism.server.call import Answer, Call, Route, answer
from organism.server.lists import Listing, list_of, message_with_xml, since, wants_xml

MESSAGES: Final = Listing(
    "messages",
    "position",
    filters={
        "agent": lambda name: Where("", "=", name, any_of=("sender", "receiver")),
        "since": since("sent_at"),
    },
    has_text=True,
    has_xml=True,
)


async def messages(call: Call) -> Answer:
    """Every message, oldest first."""
    return await list_of(call, MESSAGES)


async def message(call: Call) -> Answer:
    """One message; with ``?xml=true`` its recorded envelope too."""
    call.allow_query("xml")
    row = await call.row("messages", call.params["id"])
    return answer(await message_with_xml(call, row) if wants_xml(call) else row)


ROUTES: Final = (
    Route("GET", "/messages", messages, by_head=True),
    Route("GET", "/messages/{id}", message, by_head=True),
)
