"""Talking with an agent: a turn without memory, the next turn of a session, and a session that is made short."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal, NotRequired

import orjson
from pydantic import Field, Strict
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism import errors
from organism.agents.invoke import Flags
from organism.config.settings import Listener
from organism.config.tenant import OnBusy
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter
from organism.model import words
from organism.model.agent import Answer
from organism.model.commands import Injected
from organism.model.ids import CONSOLE, session_of
from organism.server.api.sessions import A1, CHAT, OF_SESSION, OF_USER, address_of, conversational, replacing
from organism.server.http.bodies import NoBody, body
from organism.server.http.call import CALLER, FOR_USER, Call, JsonResponse, Route, tagged
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, gives
from organism.server.http.streaming import SSE
from organism.server.turns.answer import answer
from organism.server.turns.begin import LAST_EVENT, Archived, Asked, Turn, begin, compact_now, event_id, shape_of
from organism.server.turns.run_result import FoldedRun, RunError
from organism.server.turns.write.sse import EventWriter

STREAM_IN_BODY: Final = {"/flags/stream": "/stream"}


@body
class ChatTurnBody:
    """``POST /a1/agents/{name}/chat``."""

    message: Annotated[str, Field(min_length=1, examples=["What can you do?"])]
    stream: Annotated[bool, Strict()] | None = None
    wait: Annotated[bool | None, Strict(), Field(description="Wait for what is paused, instead of 503 `paused`.")] = (
        None
    )


@body
class SessionTurnBody(ChatTurnBody):
    """``POST /a1/agents/{name}/sessions/{sid}/messages``.

    ``on_busy``: what becomes of it while another turn is open, if not what the tenant's configuration says.
    ``on_disconnect``: ``kill`` ends the turn if the client leaves before its end.
    """

    on_busy: OnBusy | None = None
    on_disconnect: Literal["continue", "kill"] = "continue"


class ChatTurn(TypedDict):
    """What came of a turn."""

    reply: Annotated[str, Field(description="The agent's last words.", examples=["Tennis."])]
    messages: Annotated[list[dict[str, Any]], Field(examples=[[{"role": "assistant", "content": "Tennis."}]])]
    stop_reason: Annotated[str, Field(examples=["stop"])]
    pending_interaction: NotRequired[dict[str, Any]]
    error: NotRequired[Annotated[RunError, Field(description="Of a turn that failed after it had shown something.")]]
    usage: Annotated[dict[str, int], Field(examples=[{"input": 40, "output": 4, "total": 44}])]
    citations: NotRequired[Annotated[list[str], Field(description="The sources that the answer names.")]]
    agent: words.AgentName
    model: Annotated[str | None, Field(examples=["llama-4-scout"])]
    thread_id: words.ThreadId


class SessionTurn(ChatTurn):
    """What came of a turn of a session."""

    session_id: words.SessionId


class SessionCompacted(TypedDict):
    """A compaction: the source is archived, and its successor begins with the summary."""

    source_session_id: words.SessionId
    successor_session_id: words.SessionId
    summary_id: words.MessageId
    summary_text: str
    tokens: Annotated[words.Count, Field(description="About how many the source had come to.")]


async def chat(call: Call) -> Response:
    """Ask an agent, which remembers nothing of it."""
    body = await call.body_as(ChatTurnBody)
    agent = conversational(call)
    shape = shape_of(agent, Flags(stream=body.stream), STREAM_IN_BODY)
    turn = await begin(
        call, Asked(agent=agent.name, json={"message": body.message}, shape=shape, waits=bool(body.wait))
    )
    return await answer(call, turn, _writer(call, turn), partial(_shown, call, turn, agent))


async def session_turn(call: Call) -> Response:
    """Say something in a session; one that was archived leads on to the session that goes on with it."""
    body = await call.body_as(SessionTurnBody)
    agent = conversational(call)
    asked = Asked(
        agent=agent.name,
        json={"message": body.message},
        shape=shape_of(agent, Flags(stream=body.stream), STREAM_IN_BODY),
        session_id=call.path_params["sid"],
        on_busy=body.on_busy,
        follows=False,
        is_killed=body.on_disconnect == "kill",
        waits=bool(body.wait),
    )
    try:
        turn = await begin(call, asked)
    except Archived as moved:
        return Response(status_code=308, headers={"location": address_of(moved.row.public, "/messages")})
    return await answer(call, turn, _writer(call, turn), partial(_shown, call, turn, agent))


def _writer(call: Call, turn: Turn) -> EventWriter:
    return EventWriter(partial(event_id, call, turn))


async def _shown(call: Call, turn: Turn, agent: Listener, whole: dict[str, Any], run: FoldedRun) -> dict[str, Any]:
    texts = (each["content"] for each in reversed(whole["messages"]) if each["role"] == "assistant")
    shown = {"reply": next(filter(None, texts), ""), **whole, "usage": run.usage}
    if citations := await _citations(call, turn.sent):
        shown["citations"] = citations
    shown |= {"agent": agent.name, "model": agent.model, "thread_id": turn.sent.thread_id}
    session_id = session_of(turn.sent.thread_id)
    return shown if session_id is None else {**shown, "session_id": session_id}


async def _citations(call: Call, sent: Injected) -> list[str]:
    """The sources that the agent's answer names."""
    wanted = EventFilter((sent.thread_id,), (events.MessageSent,), content=True)
    records: list[Record[Any]] = await call.tenant.log.read(sent.position, wanted=wanted, limit=1, reverse=True)
    for record in records:
        event: events.MessageSent = record.event
        if (event.to, event.type) == (CONSOLE, Answer.__name__) and record.content is not None:
            return list(orjson.loads(record.content.json or b"{}").get("citations", ()))
    return []


async def compact_session(call: Call) -> Response:
    """Summarise what is older than the newest messages: the session is archived, and its successor goes on with it."""
    await call.body_as(NoBody)
    call.refuse_if_match()
    names = call.path_params
    done = await compact_now(call, names["sid"], names["name"])
    return JsonResponse({name: getattr(done, name) for name in SessionCompacted.__annotations__})


ask = partial(
    Route,
    headers=(*ACT, *CALLER, *FOR_USER, LAST_EVENT),
    needs_user=True,
)
REFUSED: Final = (*SENDING_REFUSED, *RUN_REFUSED, errors.NotAcceptable, errors.Paused)
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
        refuses=(*replacing.keywords["refuses"], errors.Paused, errors.Upstream, errors.UpstreamTimeout),
    ),
)
