"""Approvals: what waits for a human's word, and the word."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson

from organism.codec import Codec, UnknownPayload
from organism.errors import InvalidPayload
from organism.log.log import Where
from organism.model.commands import ResolveApproval
from organism.server.bodies import ApprovalBody, parsed, payload_at
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import ACT_ON_THREAD, QUESTION_REFUSED, Contract, gives
from organism.server.lists import Listing, list_of, one_of, since
from organism.server.shapes.objects import Approval, ApprovalList
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
)


def _shown(codec: Codec, row: dict[str, Any]) -> dict[str, Any]:
    """The API's approval: the content of its request is the preview, and a call that waits has its form."""
    name, shown = row["payload_type"], {**row, "preview": row["payload"]}
    del shown["payload"]
    with suppress(UnknownPayload):
        if name is not None and row["status"] == "pending":
            shown["form_schema"] = codec.schema(name).json_schema
    return shown


def _all_shown(codec: Codec, rows: bytes) -> bytes:
    return orjson.dumps([_shown(codec, row) for row in orjson.loads(rows)])


async def approvals(call: Call) -> Answer:
    """Every approval, oldest first."""
    return await list_of(call, replace(APPROVALS, reshape=partial(_all_shown, call.process.organism.codec)))


async def resolve(call: Call) -> Answer:
    """Approve or reject; the second who does gets 409 ``already_resolved``."""
    call.allow_query()
    body = parsed(ApprovalBody, call.json())
    command = ResolveApproval(
        approval=call.params["id"],
        decision=body.decision,
        edits=body.edits,
        comment=body.comment,
        **call.command_fields(),
    )
    with payload_at("/edits"):
        await call.do(command)
    row = orjson.loads(await call.row("approvals", call.params["id"]))
    return answer(_shown(call.process.organism.codec, row))


LIST: Final = Contract(gives=gives(ApprovalList), query=APPROVALS.takes, narrow={"status": ApprovalStatus})
RESOLVE: Final = Contract(
    gives=gives(Approval), takes=ApprovalBody, headers=ACT_ON_THREAD, refuses=(*QUESTION_REFUSED, InvalidPayload)
)

ROUTES: Final = (
    Route("GET", "/approvals", approvals, by_head=True, contract=LIST),
    Route("POST", "/approvals/{id}/resolve", resolve, is_kept=True, contract=RESOLVE),
)
