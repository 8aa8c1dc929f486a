"""Dead letters: what failed for good or was refused, until it is sent again or discarded."""

from __future__ import annotations

from typing import Final

from organism.errors import AlreadyResolved
from organism.log.log import Where
from organism.model.commands import DiscardDeadLetter, ReplayDeadLetter
from organism.server.bodies import NoBody, ReplayBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import ACT_ON_THREAD, QUESTION_REFUSED, SENDING_REFUSED, Contract, gives
from organism.server.lists import Listing, list_of, since
from organism.server.shapes.objects import DeadLetterList, Injected, Thread

DEAD_LETTERS: Final = Listing(
    "dead_letters",
    "died_at",
    descending=True,
    filters={
        "thread_id": lambda thread: Where("thread_id", "=", thread),
        "agent": lambda name: Where("agent", "=", name),
        "since": since("died_at"),
    },
    has_text=True,
)


async def dead_letters(call: Call) -> Answer:
    """Every open dead letter, newest first."""
    return await list_of(call, DEAD_LETTERS)


async def replay(call: Call) -> Answer:
    """Send it again as a new message, with another payload if one is given."""
    call.allow_query()
    body = parsed(ReplayBody, call.json())
    command = ReplayDeadLetter(message_id=call.params["id"], json=body.payload, **call.command_fields())
    sent = await call.send(command)
    return answer({"thread_id": sent.thread_id, "message_id": sent.message_id, "position": sent.position}, 202)


async def discard(call: Call) -> Answer:
    """Close it for good; the answer is its thread as it then stands."""
    call.allow_query()
    parsed(NoBody, call.json())
    done = await call.do(DiscardDeadLetter(message_id=call.params["id"], **call.command_fields()))
    (discarded,) = await call.tenant.log.read(done.position - 1, done.position)
    return answer(await call.row("threads", discarded.thread or ""))


LIST: Final = Contract(gives=gives(DeadLetterList), query=DEAD_LETTERS.takes)
REPLAY: Final = Contract(
    gives=gives(Injected, status=202),
    takes=ReplayBody,
    headers=ACT_ON_THREAD,
    refuses=(*SENDING_REFUSED, AlreadyResolved),
)
DISCARD: Final = Contract(
    gives=gives(Thread), takes=NoBody, headers=ACT_ON_THREAD, is_tagged=True, refuses=QUESTION_REFUSED
)

ROUTES: Final = (
    Route("GET", "/dead-letters", dead_letters, by_head=True, contract=LIST),
    Route("POST", "/dead-letters/{id}/replay", replay, contract=REPLAY),
    Route("DELETE", "/dead-letters/{id}", discard, is_kept=True, contract=DISCARD),
)
