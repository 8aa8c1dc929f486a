"""Invoke: ask an agent and get its turn, at once or as it comes.

Both surfaces, by the path's name and by the body's, at the root and below /api/v1, are one endpoint with one prelude.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from organism import errors
from organism.agents.invoke import Shape, delivers, outputs, resolved
from organism.config.settings import Listener
from organism.model.agent import Prompt
from organism.model.commands import Inject, Injected
from organism.model.run import RunEntry
from organism.server.http.bodies import named_in
from organism.server.http.call import CALLER, Call, JsonResponse, Route, caller_fields
from organism.server.http.contract import ACT, SENDING_REFUSED, Gives, gives
from organism.server.http.shapes import Invoked
from organism.server.http.streaming import live_response
from organism.server.surfaces import requests as request
from organism.server.surfaces.costs import tell_cost, with_cost
from organism.server.surfaces.run import begun, entries_of, written
from organism.server.surfaces.vercel import FORMAT, STREAM, UiStream, with_parts
from organism.server.surfaces.waiting import unless_left


async def invoke(call: Call) -> Response:
    """Ask the agent that the body names."""
    return await _invoke(call, None)


async def invoke_agent(call: Call) -> Response:
    """Ask the agent that the path names."""
    return await _invoke(call, call.path_params["name"])


async def _invoke(call: Call, named: str | None) -> Response:
    call.allow_query()
    wanted = request.parse_request(named, await call.json(), call.headers)
    place = "/agent" if named is None else None
    for receiver in call.tenant.receivers(wanted.agent):
        call.permit(agent=receiver)
    listener = call.tenant.pump.state.rules.listeners.get(wanted.agent)
    if listener is None:
        raise errors.NotFound(f"There is no agent {wanted.agent[:80]!r}.", param=place)
    with named_in(wanted.headers):
        if wanted.session_id is not None:
            raise errors.NotFound(f"There is no session {wanted.session_id[:80]!r}.", param="/session_id")
        shape = resolved(wanted.flags, delivers(listener))
    fields = {**caller_fields(call), **call.command_fields(of_thread=False)}
    command = Inject(to=wanted.agent, json=_payload(wanted, listener), **fields)
    sent = await call.send(command, wanted.place, {"/to": place})
    return await unless_left(call, _answer(call, wanted, shape, sent, entries_of(call.tenant, sent)))


async def _answer(
    call: Call, wanted: request.InvokeRequest, shape: Shape, sent: Injected, entries: AsyncGenerator[RunEntry, None]
) -> Response:
    try:
        entries = await begun(entries)
    except errors.OrganismError:
        await tell_cost(call, sent)
        raise
    if shape.is_stream:
        write = UiStream(sent.message_id).lines if wanted.is_ui else None
        parts = written(entries, wanted.kind, write)
        if wanted.kind == request.EVENTS and not wanted.is_ui:  # the AI SDK refuses events that it does not know
            parts = with_cost(call, sent, parts)
        return await live_response(call, parts, wanted.kind, STREAM if wanted.is_ui else None)
    answer = await _batch(wanted, shape, sent, entries)
    await tell_cost(call, sent)
    return answer


def _payload(wanted: request.InvokeRequest, listener: Listener) -> Mapping[str, Any]:
    """What is sent: the payload as it came, or a prompt made of the conversation."""
    if wanted.payload is not None:
        return wanted.payload
    if listener.payload_class is not Prompt:
        kind = listener.payload_class.__name__
        raise errors.InvalidField(f"{wanted.agent} takes a {kind}; send it as data.inputs.payload.", param=wanted.place)
    history = [{"role": each.role, "content": each.content} for each in wanted.history]
    return {"message": wanted.message, **({"history": history} if history else {})}


async def _batch(
    wanted: request.InvokeRequest, shape: Shape, sent: Injected, entries: AsyncIterator[RunEntry]
) -> Response:
    folded = await outputs(entries, shape)
    if "stop_reason" not in folded:
        raise errors.Stopping("The server stops before the run is done; it goes on with the next start.")
    if wanted.is_ui:
        folded["messages"] = with_parts(folded["messages"])
    answer = {"data": {"outputs": folded}, "session_id": wanted.session_id, "thread_id": sent.thread_id}
    return JsonResponse(answer, headers=FORMAT if wanted.is_ui else None)


_ask = partial(
    Route,
    "POST",
    gives=gives(Invoked, *(Gives(str, kind=kind) for kind in request.STREAMS)),
    headers=(*ACT, *CALLER, *request.HEADERS),
    refuses=(
        *SENDING_REFUSED,
        errors.NotAcceptable,
        errors.ForceNotSupported,
        errors.ModelNotInAllowlist,
        errors.RecursionDepthExceeded,
        errors.BudgetExhausted,
        errors.Upstream,
        errors.UpstreamTimeout,
        errors.HandlingFailed,
    ),
)

ROUTES: Final = (
    _ask("/invoke", invoke, takes=request.InvokeBody | request.ChatBody),
    _ask("/agents/{name}/invoke", invoke_agent, takes=request.TurnBody | request.ChatBody),
)
