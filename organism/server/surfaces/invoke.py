"""Invoke: ask an agent and get its turn, at once or as it comes.

Both surfaces, by the path's name and by the body's, at the root and below /api/v1, are one endpoint with one prelude.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, NotRequired

from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism import errors
from organism.config.settings import Listener
from organism.model import words
from organism.model.agent import Prompt
from organism.model.ids import session_of
from organism.server.http.call import CALLER, USER, Call, Route, Tag, tagged
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, gives
from organism.server.http.rights import Right
from organism.server.surfaces import requests as request
from organism.server.turns.answer import Writer, answer
from organism.server.turns.begin import Asked, Turn, begin, permitted_agent, shape_of
from organism.server.turns.run_result import FoldedRun, RunError
from organism.server.turns.write.ndjson import LineWriter
from organism.server.turns.write.sse import EventWriter
from organism.server.turns.write.vercel import FORMAT, STREAM, UiWriter
from organism.views.sessions import SESSION_MESSAGES


class Folded(TypedDict):
    """A run as it was in the end: what is null is left out."""

    messages: Annotated[list[dict[str, Any]], Field(examples=[[{"role": "assistant", "content": "Hello"}]])]
    stop_reason: Annotated[str, Field(examples=["stop"])]
    pending_interaction: NotRequired[dict[str, Any]]
    error: NotRequired[Annotated[RunError, Field(description="Of a run that failed after it had shown something.")]]


class Output(TypedDict):
    """What came of it."""

    outputs: Folded


class Invoked(TypedDict):
    """The turn of an agent, all at once."""

    data: Output
    session_id: str | None
    thread_id: words.ThreadId
    position: NotRequired[Annotated[words.Position, Field(description="In a session: where the message was taken up.")]]


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
    listener = permitted_agent(call, wanted.agent, place)
    shape, json = shape_of(listener, wanted.flags, wanted.headers), _payload(wanted, listener)
    if wanted.session_id is None and wanted.on_busy is not None:
        raise errors.InvalidField("`on_busy` says what a busy session does: name one.", param="/on_busy")
    asked = Asked(
        agent=wanted.agent,
        json=json,
        shape=shape,
        place=wanted.place,
        places={**wanted.headers, "/to": place, "/agent": place},
        session_id=wanted.session_id,
        waits=wanted.waits,
        on_busy="force" if wanted.flags.force and wanted.session_id is not None else wanted.on_busy,
    )
    turn = await begin(call, asked)
    return await answer(call, turn, _writer(wanted, turn), partial(_shown, call, turn))


def _writer(wanted: request.InvokeRequest, turn: Turn) -> Writer:
    if wanted.is_ui:
        return UiWriter(turn.sent.message_id, STREAM if turn.shape.is_stream else FORMAT)
    return EventWriter() if wanted.kind == request.EVENTS else LineWriter(wanted.kind)


async def _shown(call: Call, turn: Turn, whole: dict[str, Any], _run: FoldedRun) -> dict[str, Any]:
    thread_id = turn.sent.thread_id
    shown: dict[str, Any] = {"data": {"outputs": whole}, "session_id": session_of(thread_id), "thread_id": thread_id}
    if shown["session_id"] is not None:
        row = await call.tenant.views.private_row(SESSION_MESSAGES, turn.sent.message_id)
        shown["position"] = row.position if row is not None else None
    return shown


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
        errors.Paused,
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
