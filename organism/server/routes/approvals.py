"""Approvals: what waits for a human's word, and the word."""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.errors import InvalidPayload
from organism.log.log import Where
from organism.model.commands import ResolveApproval
from organism.server.bodies import ApprovalBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import ACT_ON_THREAD, QUESTION_REFUSED, Contract, gives
from organism.server.lists import Listing, list_of, one_of, since
from organism.server.shapes.lists import ApprovalList
from organism.server.shapes.objects import Approval
from organism.server.shapes.words import ApprovalStatus

APPROVALS: Final = Listing(
    "approvals",
    "position",
    filters={
        "status": one_of("status", "pending", "approved", "rejected", "expired", "cancelled"),
        "thread_id": lambda thread: Where("thread_id", "=", thread),
        "agent": lambda name: Where("agent", "=", name),
        "since": since("asked_at"),
    },
    reshape=lambda rows: orjson.dumps([_shown(row) for row in orjson.loads(rows)]),
)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """The API's approval: the content of its request is the preview."""
    preview = row.pop("payload")
    return {**row, "preview": preview}


async def approvals(call: Call) -> Answer:
    """Every approval, oldest first."""
    return await list_of(call, APPROVALS)


async def resolve(call: Call) -> Answer:
    """Approve or reject; the second who does gets 409 ``already_resolved``."""
    call.allow_query()
    body = parsed(ApprovalBody, call.json())
    await call.tenant.do(
        ResolveApproval(
            approval=call.params["id"],
            decision=body.decision,
            edits=body.edits,
            comment=body.comment,
            **call.command_fields(),
        )
    )
    return answer(_shown(orjson.loads(await call.row("approvals", call.params["id"]))))


LIST: Final = Contract(gives=gives(ApprovalList), query=APPROVALS.takes, narrow={"status": ApprovalStatus})
RESOLVE: Final = Contract(
    gives=gives(Approval), takes=ApprovalBody, headers=ACT_ON_THREAD, refuses=(*QUESTION_REFUSED, InvalidPayload)
)

ROUTES: Final = (
    Route("GET", "/approvals", approvals, by_head=True, contract=LIST),
    Route("POST", "/approvals/{id}/resolve", resolve, is_kept=True, contract=RESOLVE),
)
