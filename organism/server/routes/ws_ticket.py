"""The ticket that opens ``/ws`` for a page, which can send no header with its handshake."""

from __future__ import annotations

from typing import Final

from organism.errors import RateLimitExceeded
from organism.server.authenticator import LIFE_SECONDS
from organism.server.bodies import NoBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import Contract, gives
from organism.server.shapes.objects import Ticket


async def ticket(call: Call) -> Answer:
    """A ticket for ``/ws?ticket=…``: good for 30 seconds, once, with the rights of the token that asks."""
    call.allow_query()
    parsed(NoBody, call.json())
    return answer({"ticket": call.process.tickets.issue(call.who), "expires_in_seconds": LIFE_SECONDS})


TICKET: Final = Contract(gives=gives(Ticket), takes=NoBody, refuses=(RateLimitExceeded,))

ROUTES: Final = (Route("POST", "/ws-ticket", ticket, contract=TICKET),)
