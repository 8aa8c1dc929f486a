"""Messages: the whole history, and one."""

from __future__ import annotations

from typing import Final

import orjson

from organism.errors import NotFound
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import Contract, gives
from organism.server.lists import MAX_LIMIT, MESSAGES, list_of, message_with_xml, wants_xml, with_xml
from organism.server.shapes.objects import Message, MessageList, Why
from organism.server.shapes.words import ThreadStatus
from organism.server.wire import splice


async def messages(call: Call) -> Answer:
    """Every message, oldest first."""
    return await list_of(call, MESSAGES)


async def message(call: Call) -> Answer:
    """One message; with ``?xml=true`` its recorded envelope too."""
    call.allow_query("xml")
    row = await call.row("messages", call.params["id"])
    return answer(await message_with_xml(call, row) if wants_xml(call) else row)


async def why(call: Call) -> Answer:
    """The message, the message whose handling led to it, and so on up to the injection at the root, which is the last.

    Of a very long path these are the first 500; ``next`` is the message where it goes on.
    """
    call.allow_query("xml")
    found: list[bytes] = []
    wanted: str | None = call.params["id"]
    while wanted is not None and len(found) < MAX_LIMIT:
        found.append(await call.row("messages", wanted))
        wanted = orjson.loads(found[-1])["cause"]
    rows = b"[" + b",".join(found) + b"]"
    shown = await with_xml(call, rows) if wants_xml(call) else rows
    return answer(splice(b"{}", {"messages": shown, "count": len(found), "next": wanted}))


LIST: Final = Contract(gives=gives(MessageList), query=MESSAGES.takes, narrow={"status": ThreadStatus})
WHY: Final = Contract(gives=gives(Why), query=("xml",), refuses=(NotFound,))
ONE: Final = Contract(gives=gives(Message), query=("xml",), refuses=(NotFound,))

ROUTES: Final = (
    Route("GET", "/messages", messages, by_head=True, contract=LIST),
    Route("GET", "/messages/{id}/why", why, by_head=True, contract=WHY),
    Route("GET", "/messages/{id}", message, by_head=True, contract=ONE),
)
