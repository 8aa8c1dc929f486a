"""Talking with an agent: a turn without memory."""

from __future__ import annotations

from functools import partial
from typing import Final

from starlette.responses import Response

from organism import errors
from organism.model.commands import Inject
from organism.server.http.bodies import ChatTurnBody
from organism.server.http.call import CALLER, FOR_USER, Call, Route, caller_fields
from organism.server.http.contract import ACT, SENDING_REFUSED, Gives, gives
from organism.server.http.shapes import ChatTurn
from organism.server.http.streaming import SSE
from organism.server.surfaces.turns import Turn, answer_turn, conversational, is_stream, seen_of


async def chat(call: Call) -> Response:
    """Ask an agent, which remembers nothing of it."""
    body = await call.body_as(ChatTurnBody)
    listener = conversational(call)
    streams = is_stream(listener, wanted=body.stream)
    seen = seen_of(call, is_wanted=streams)
    if seen is None:
        fields = {**caller_fields(call), **call.command_fields(of_thread=False)}
        sent = await call.send(Inject(to=listener.name, json={"message": body.message}, **fields), "")
    else:
        sent = seen.sent
    return await answer_turn(call, Turn(sent=sent, agent=listener, is_stream=streams), seen)


ask = partial(
    Route,
    "POST",
    headers=(*ACT, *CALLER, *FOR_USER, "Last-Event-ID"),
    needs_user=True,
    refuses=(
        *SENDING_REFUSED,
        errors.NotAcceptable,
        errors.ModelNotInAllowlist,
        errors.RecursionDepthExceeded,
        errors.BudgetExhausted,
        errors.Upstream,
        errors.UpstreamTimeout,
        errors.HandlingFailed,
    ),
)

ROUTES: Final = (ask("/a1/agents/{name}/chat", chat, gives=gives(ChatTurn, Gives(str, kind=SSE)), takes=ChatTurnBody),)
