"""Invoke: ask an agent and get its turn, at once or as it comes.

Both surfaces, by the path's name and by the body's, at the root and below /api/v1, are one endpoint with one prelude.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from organism import errors
from organism.agents.invoke import Shape, delivers, outputs, resolved
from organism.config.settings import Listener
from organism.config.tenant import OnBusy
from organism.model.agent import Prompt
from organism.model.commands import Inject
from organism.model.ids import session_of
from organism.server.http.bodies import Places, named_in
from organism.server.http.call import CALLER, USER, Call, JsonResponse, Route, Tag, caller_fields, tagged
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, gives
from organism.server.http.rights import Right
from organism.server.http.shapes import Invoked
from organism.server.http.streaming import live_response
from organism.server.surfaces import requests as request
from organism.server.surfaces.costs import begun_or_costed, tell_cost, with_cost
from organism.server.surfaces.run import entries_of, written
from organism.server.surfaces.session_turns import Begun, NextTurn, begin_turn
from organism.server.surfaces.vercel import FORMAT, STREAM, UiStream, with_parts
from organism.views.sessions import SESSION_MESSAGES


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
        shape = resolved(wanted.flags, delivers(listener))
    json = _payload(wanted, listener)
    if wanted.session_id is not None:
        turn = _next_turn(call, wanted, json, {**wanted.headers, "/to": place, "/agent": place})
        return await call.unless_left(_answer(call, wanted, shape, await begin_turn(call, turn, follows=True)))
    if wanted.on_busy is not None:
        raise errors.InvalidField("`on_busy` says what a busy session does: name one.", param="/on_busy")
    fields = {**caller_fields(call), **call.command_fields(of_thread=False)}
    sent = await call.send(Inject(to=wanted.agent, json=json, **fields), wanted.place, {"/to": place})
    return await call.unless_left(_answer(call, wanted, shape, Begun(sent)))


def _next_turn(call: Call, wanted: request.InvokeRequest, json: Mapping[str, Any], places: Places) -> NextTurn:
    on_busy: OnBusy | None = "force" if wanted.flags.force else wanted.on_busy
    return NextTurn(wanted.session_id or "", call.named_user, wanted.agent, json, on_busy, wanted.place, places)


async def _answer(call: Call, wanted: request.InvokeRequest, shape: Shape, turn: Begun) -> Response:
    sent = turn.sent
    entries = await begun_or_costed(call, sent, entries_of(call.tenant, sent))
    if shape.is_stream:
        write = UiStream(sent.message_id).lines if wanted.is_ui else None
        parts = written(entries, wanted.kind, write)
        headers = {**turn.headers, **(STREAM if wanted.is_ui else {})}
        if wanted.kind == request.EVENTS and not wanted.is_ui:  # the AI SDK refuses events that it does not know
            parts = with_cost(call, sent, parts)
        return await live_response(call, parts, wanted.kind, headers)
    answer = await _batch(call, wanted, turn, await outputs(entries, shape))
    await tell_cost(call, sent)
    return answer


def _payload(wanted: request.InvokeRequest, listener: Listener) -> Mapping[str, Any]:
    """What is sent: the payload as it came, or a prompt made of the conversation."""
    if wanted.payload is not None:
        return wanted.payload
    if listener.payload_class is not Prompt:
        kind = listener.payload_class.__name__
        raise errors.InvalidField(f"{wanted.agent} takes a {kind}; send it as data.inputs.payload.", param=wanted.place)
    if wanted.session_id is not None:  # which remembers what was said
        return {"message": wanted.message}
    history = [{"role": each.role, "content": each.content} for each in wanted.history]
    return {"message": wanted.message, **({"history": history} if history else {})}


async def _batch(call: Call, wanted: request.InvokeRequest, turn: Begun, folded: dict[str, Any]) -> Response:
    if "stop_reason" not in folded:
        raise errors.Stopping("The server stops before the run is done; it goes on with the next start.")
    if wanted.is_ui:
        folded["messages"] = with_parts(folded["messages"])
    thread_id = turn.sent.thread_id
    answer: dict[str, Any] = {"data": {"outputs": folded}, "session_id": session_of(thread_id), "thread_id": thread_id}
    if answer["session_id"] is not None:
        row = await call.tenant.views.private_row(SESSION_MESSAGES, turn.sent.message_id)
        answer["position"] = row.position if row is not None else None
    return JsonResponse(answer, headers={**turn.headers, **(FORMAT if wanted.is_ui else {})})


_ask = partial(
    Route,
    gives=gives(Invoked, *(Gives(str, kind=kind) for kind in request.STREAMS)),
    headers=(*ACT, *CALLER, *request.HEADERS, USER),
    refuses=(
        *SENDING_REFUSED,
        errors.NotAcceptable,
        errors.ForceNotSupported,
        errors.SessionAgentMismatch,
        errors.SessionBusy,
        errors.SessionCompactConflict,
        errors.MessageTooLarge,
        *RUN_REFUSED,
    ),
)

ROUTES: Final = tagged(
    Tag("invoke", __doc__),
    _ask(
        "POST /invoke",
        invoke,
        right=Right("agents:chat", {"agent": "agent"}, in_body=True),
        takes=request.InvokeBody | request.ChatBody,
    ),
    _ask(
        "POST /agents/{name}/invoke",
        invoke_agent,
        right=Right("agents:chat", {"name": "agent", "agent": "agent"}),
        takes=request.TurnBody | request.ChatBody,
    ),
)
