"""Talking with an agent: a turn without memory, the next turn of a session, and a session that is made short."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

from pydantic import Field, Strict
from starlette.responses import Response

from organism import errors
from organism.config.tenant import OnBusy
from organism.model.commands import Inject, Injected
from organism.model.ids import session_of
from organism.server.api.sessions import A1, CHAT, OF_SESSION, OF_USER, address_of, caller_of, conversational, replacing
from organism.server.http.bodies import NoBody, body, named_in
from organism.server.http.call import CALLER, FOR_USER, IN_PATH, Call, JsonResponse, Route, caller_fields, tagged
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, gives
from organism.server.http.shapes import ChatTurn, SessionCompacted, SessionTurn
from organism.server.http.streaming import SSE
from organism.server.surfaces.costs import tell_cost
from organism.server.surfaces.session_turns import Archived, Begun, NextTurn, begin_turn
from organism.server.surfaces.turns import Turn, answer_turn, is_stream, seen_of
from organism.sessions.compaction import compact
from organism.views.sessions import session_row


@body
class ChatTurnBody:
    """``POST /a1/agents/{name}/chat``."""

    message: Annotated[str, Field(min_length=1, examples=["What can you do?"])]
    stream: Annotated[bool, Strict()] | None = None


@body
class SessionTurnBody(ChatTurnBody):
    """``POST /a1/agents/{name}/sessions/{sid}/messages``.

    ``on_busy``: what becomes of it while another turn is open, if not what the tenant's configuration says.
    ``on_disconnect``: ``kill`` ends the turn if the client leaves before its end.
    """

    on_busy: OnBusy | None = None
    on_disconnect: Literal["continue", "kill"] = "continue"


async def chat(call: Call) -> Response:
    """Ask an agent, which remembers nothing of it."""
    body = await call.body_as(ChatTurnBody)
    agent = conversational(call)
    streams = is_stream(agent, wanted=body.stream)
    seen = seen_of(call, is_wanted=streams)
    if seen is None:
        fields = {**caller_fields(call), **call.command_fields(of_thread=False)}
        sent = await call.send(Inject(to=agent.name, json={"message": body.message}, **fields), "")
    else:
        sent = seen.sent
    return await answer_turn(call, Turn(sent=sent, agent=agent, is_stream=streams), seen)


async def session_turn(call: Call) -> Response:
    """Say something in a session; one that was archived leads on to the session that goes on with it."""
    body = await call.body_as(SessionTurnBody)
    agent, session_id, user = conversational(call), call.path_params["sid"], call.named_user
    streams = is_stream(agent, wanted=body.stream)
    seen = seen_of(call, is_wanted=streams)
    if seen is None:
        wanted = NextTurn(session_id, user, agent.name, {"message": body.message}, body.on_busy, "", IN_PATH)
        try:
            begun = await begin_turn(call, wanted, follows=False)
        except Archived as moved:
            return Response(status_code=308, headers={"location": address_of(moved.row.public, "/messages")})
    else:
        with named_in(IN_PATH):
            await session_row(call.tenant.views, session_id, user, agent.name)
        begun = Begun(seen.sent)
    turn = Turn(
        sent=begun.sent,
        agent=agent,
        is_stream=streams,
        session_id=session_of(begun.sent.thread_id),
        is_killed=body.on_disconnect == "kill",
        headers=begun.headers,
        since=begun.since,
    )
    return await answer_turn(call, turn, seen)


async def compact_session(call: Call) -> Response:
    """Summarise what is older than the newest messages: the session is archived, and its successor goes on with it."""
    await call.body_as(NoBody)
    call.refuse_if_match()
    names = call.path_params
    with named_in(IN_PATH):
        done = await compact(call.tenant, names["sid"], caller_of(call, names["name"]))
    await tell_cost(call, Injected(done.thread_id, "", 0))
    answer = {name: getattr(done, name) for name in SessionCompacted.__annotations__}
    return JsonResponse(answer)


ask = partial(
    Route,
    headers=(*ACT, *CALLER, *FOR_USER, "Last-Event-ID"),
    needs_user=True,
)
REFUSED: Final = (*SENDING_REFUSED, *RUN_REFUSED, errors.NotAcceptable)
EVENTS: Final = Gives(str, kind=SSE)

ROUTES: Final = tagged(
    A1,
    ask(
        "POST /a1/agents/{name}/chat",
        chat,
        right=CHAT,
        takes=ChatTurnBody,
        gives=gives(ChatTurn, EVENTS),
        refuses=REFUSED,
    ),
    ask(
        f"POST {OF_SESSION}/messages",
        session_turn,
        right=OF_USER,
        takes=SessionTurnBody,
        gives=gives(SessionTurn, EVENTS, Gives(None, status=308)),
        refuses=(
            *REFUSED,
            errors.SessionAgentMismatch,
            errors.SessionBusy,
            errors.SessionCompactConflict,
            errors.MessageTooLarge,
        ),
    ),
    replacing(
        f"POST {OF_SESSION}/compact",
        compact_session,
        gives=gives(SessionCompacted),
        refuses=(*replacing.keywords["refuses"], errors.Upstream, errors.UpstreamTimeout),
    ),
)
