"""Indeterminate effects: unsafe ones of which nobody knows whether they happened, and an operator's word on them."""

from __future__ import annotations

from typing import Final

import orjson

from organism.errors import InvalidField
from organism.log.log import Where
from organism.model.commands import ResolveIndeterminate
from organism.server.bodies import IndeterminateBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import ACT_ON_THREAD, QUESTION_REFUSED, Contract, gives
from organism.server.lists import Listing, list_of, since
from organism.server.shapes.objects import IndeterminateList, Thread

INDETERMINATE: Final = Listing(
    "indeterminate",
    "position",
    filters={
        "thread_id": lambda thread: Where("thread_id", "=", thread),
        "agent": lambda name: Where("agent", "=", name),
        "since": since("found_at"),
    },
)


async def indeterminate(call: Call) -> Answer:
    """Every open one, oldest first."""
    return await list_of(call, INDETERMINATE)


async def resolve(call: Call) -> Answer:
    """Say what became of it: ``done`` (with the result), ``redo`` or ``fail``; the answer is its thread."""
    call.allow_query()
    body = parsed(IndeterminateBody, call.json())
    if body.result is not None and body.outcome != "done":
        raise InvalidField(f"A result belongs to `done` alone; came with {body.outcome!r}.", param="/result")
    effect = call.params["id"]
    await call.do(ResolveIndeterminate(id=effect, outcome=body.outcome, result=body.result, **call.command_fields()))
    message = orjson.loads(await call.row("messages", effect.partition(":")[0]))
    return answer(await call.row("threads", message["thread_id"]))


LIST: Final = Contract(gives=gives(IndeterminateList), query=INDETERMINATE.takes)
RESOLVE: Final = Contract(
    gives=gives(Thread),
    takes=IndeterminateBody,
    headers=ACT_ON_THREAD,
    is_tagged=True,
    refuses=QUESTION_REFUSED,
)

ROUTES: Final = (
    Route("GET", "/indeterminate", indeterminate, by_head=True, contract=LIST),
    Route("POST", "/indeterminate/{id}/resolve", resolve, is_kept=True, contract=RESOLVE),
)
