"""Talking with agents: which there are, and turns. ``SPASS-User-Id`` says for which user of the tenant it is.

Here: agents and their users' sessions: begin, list, read, archive, delete.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict
from urllib.parse import quote

import orjson
from msgspec import UNSET, Meta, Raw, Struct
from msgspec.json import decode, encode
from msgspec.structs import replace
from pydantic import Field, Strict
from starlette.responses import Response

from organism.config.check import money
from organism.config.settings import Listener, Taint
from organism.config.shown import shown_prompt
from organism.config.tenant import CompactStrategy, TenantConfig
from organism.errors import NotFound, SessionAgentMismatch, SessionBusy, SessionCompactConflict
from organism.events import vocabulary as events
from organism.model import words
from organism.model.agent import Prompt
from organism.model.commands import CreateSession, DeleteSession, SessionBegun
from organism.model.ids import turn_thread
from organism.model.money import plain
from organism.model.principal import ADMIN
from organism.pump.history import messages
from organism.server.http import lists
from organism.server.http.bodies import NoBody, body, named_in
from organism.server.http.call import FOR_USER, IN_PATH, Call, JsonResponse, Route, Tag, caller_fields, tagged
from organism.server.http.contract import ACT, Gives, gives
from organism.server.http.rights import Right
from organism.server.json import encoded
from organism.sessions.commands import Caller
from organism.sessions.compaction import OF_TENANT
from organism.sessions.lineage import Lineage, lineage, uncompact
from organism.views.sessions import SHOWN, MessagePlace, Session, SessionRow, session_row
from organism.views.threads import title
from organism.views.views import CHANGED, Query, Where, rows_of

Bound = Annotated[int, Strict(), Field(ge=0, le=1_000_000_000)]
Amount = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]


@body
class SpendBody:
    """What may be spent at most; what is left out has no bound, 0 forbids."""

    tokens: Bound | None = None
    usd: Amount | None = None
    calls: Bound | None = None
    seconds: Amount | None = None


@body
class BudgetBody:
    """What each turn of a session may spend, and what all its turns of a day may."""

    run: SpendBody | None = None
    day: SpendBody | None = None


@body
class SessionBody:
    """``POST /a1/agents/{name}/sessions``: what is left out is as the tenant's configuration says."""

    compact_strategy: CompactStrategy | None = None
    compact_keep_last_n: Annotated[int, Strict(), Field(ge=0, le=200)] | None = None
    compact_observation_mask: Annotated[bool, Strict()] | None = None
    budget: BudgetBody | None = None


class ChatAgentHead(TypedDict):
    """An agent to talk with."""

    name: words.AgentName
    description: Annotated[str, Meta(examples=["Terse German, nothing added"])]
    model: Annotated[str | None, Meta(examples=["llama-4-scout"])]
    tools: Annotated[list[str], Meta(description="What it may call.", examples=[["calculator"]])]


class ChatAgentList(lists.ListPage):
    """The agents to talk with."""

    agents: list[ChatAgentHead]


class ChatAgent(ChatAgentHead):
    """An agent's configuration; null is what the model, or its own code, decides."""

    peers: list[words.AgentName]
    system_prompt: Annotated[
        str | None, Meta(description="Its text for administrators, else `sha256:…`.", examples=["Be exact."])
    ]
    max_tokens: Annotated[int | None, Meta(examples=[512])]
    temperature: Annotated[float | None, Meta(examples=[0.3])]
    rag_index: Annotated[str | None, Meta(examples=["berlin-info"])]
    rag_top_k: Annotated[int | None, Meta(examples=[5])]
    taint: Taint | None
    budget: words.Object
    version: words.Version


class SessionList(lists.ListPage):
    """Sessions, newest activity first."""

    sessions: list[Session]


class SessionMessage(TypedDict):
    """A message of a session."""

    id: words.MessageId
    role: Literal["user", "assistant", "tool"]
    content: str
    created_at: words.Time
    compacted_at: Annotated[words.Time | None, Meta(description="When a compaction summarised it.")]
    thread_id: Annotated[words.ThreadId, Meta(description="That of its turn.")]
    tool_call_id: NotRequired[str]
    tool_name: NotRequired[str]
    input: NotRequired[Any]
    is_error: NotRequired[bool]
    stop_reason: NotRequired[
        Annotated[str, Meta(description="Of the last one of a turn that died, or was withheld: why.")]
    ]
    erased: NotRequired[bool]


class SessionMessageList(lists.ListPage):
    """Messages of a session, oldest first."""

    messages: list[SessionMessage]


async def chat_agents(call: Call) -> Response:
    """The agents to talk with, in the order of the configuration."""
    settings = call.tenant.pump.state.rules.settings
    found = [_head(listener) for listener in settings.listeners if listener.payload_class is Prompt]
    return JsonResponse(lists.page_of(call, "agents", found))


async def chat_agent(call: Call) -> Response:
    """One agent's configuration; the text of its prompt is for administrators, others get its SHA-256."""
    call.allow_query()
    listener = conversational(call)
    is_plain = call.who.is_tenant_admin or call.who.may(ADMIN, [("agent", listener.name)])
    return JsonResponse(call.process.redactor.shown(encoded(_whole(listener, is_plain=is_plain))))


def conversational(call: Call) -> Listener:
    """The agent that the path names. Raises ``NotFound`` if it takes no words, ``Forbidden`` for one of a group."""
    name = call.path_params["name"]
    for receiver in call.tenant.receivers(name):
        call.permit(name=receiver)
    listener = call.tenant.pump.state.rules.listeners.get(name)
    if listener is None or listener.payload_class is not Prompt:
        raise NotFound(f"There is no agent {name[:80]!r} to talk with.")
    return listener


def _head(listener: Listener) -> ChatAgentHead:
    return ChatAgentHead(
        name=listener.name, description=listener.description, model=listener.model, tools=list(listener.tools)
    )


def _whole(listener: Listener, *, is_plain: bool) -> ChatAgent:
    prompt, agent = listener.prompt, listener.agent
    return {
        **_head(listener),
        "peers": list(listener.peers),
        "system_prompt": None if prompt is None else shown_prompt(prompt, is_plain=is_plain),
        "max_tokens": None if agent is None else agent.max_tokens,
        "temperature": None if agent is None else agent.temperature,
        "rag_index": None if agent is None else agent.rag_index,
        "rag_top_k": None if agent is None else agent.rag_top_k,
        "taint": None if agent is None else agent.taint,
        "budget": listener.section.get("budget", {}),
        "version": listener.version,
    }


async def begin_session(call: Call) -> Response:
    """Begin a session of the user's with the agent."""
    body = await call.body_as(SessionBody)
    agent, user = conversational(call), call.named_user
    given = {name: getattr(body, name) for name in OF_TENANT}
    settings = events.SessionSettings(**given, budget=None if body.budget is None else _bounds(body.budget))
    command = CreateSession(agent=agent.name, user=user, settings=settings, **call.command_fields(of_thread=False))
    begun = await call.do(command)
    assert isinstance(begun, SessionBegun)  # noqa: S101 - what begins a session; narrows the type
    row = await session_row(call.tenant.views, begun.session_id, user)
    return JsonResponse(encode(await shown(call, row.public)), 201, {"location": address_of(row.public)})


def _bounds(budget: BudgetBody) -> dict[str, dict[str, int | str]]:
    """Its bounds as the log has them: amounts are text, exactly as they were given."""
    spends = {name: spend for name, spend in asdict(budget).items() if spend is not None}
    return {
        name: {key: _bound(most) for key, most in spend.items() if most is not None} for name, spend in spends.items()
    }


def _bound(most: float) -> int | str:
    return most if isinstance(most, int) else plain(money(most))


async def sessions(call: Call) -> Response:
    """The user's sessions with the agent, newest activity first; archived ones too."""
    agent = call.path_params["name"]
    wanted = [Where("agent", "=", agent), Where("status", "in", SHOWN)]
    wanted += [] if call.end_user is None else [Where("user_id", "=", call.end_user)]
    return await lists.list_of(call, SESSIONS, *wanted, of="agents", key=agent)


async def all_sessions(call: Call) -> Response:
    """The user's sessions with all agents, newest activity first; archived ones too."""
    wanted = [Where("status", "in", SHOWN)]
    wanted += [] if call.end_user is None else [Where("user_id", "=", call.end_user)]
    return await lists.list_of(call, ALL_SESSIONS, *wanted)


async def _all_shown(call: Call, rows: bytes) -> bytes:
    return encode([await shown(call, session) for session in decode(rows, type=list[Session])])


async def shown(call: Call, session: Session) -> Session:
    """The session, completed by its title, and by what its tenant's and its model's configuration say now."""
    config: TenantConfig = call.tenant.config
    settings = call.tenant.pump.state.rules.settings
    agent = settings.listener(session.agent)
    window = math.inf if agent is None else settings.context_window(agent.model)
    begin = Query((Where("thread_id", "=", turn_thread(session.id, 1)),), "position", limit=1, is_counted=False)
    first = rows_of(await call.tenant.views.rows("messages", begin), _First)
    return replace(
        session,
        **{name: getattr(config, name) for name in OF_TENANT if getattr(session, name) is UNSET},
        title=title(bytes(first[0].payload)) if first else None,
        context_window=None if math.isinf(window) else int(window),
    )


class _First(Struct):
    """The message that a session began with."""

    payload: Raw


async def session_of(call: Call) -> SessionRow:
    """The row of the session that the path names. Raises ``NotFound`` or ``SessionAgentMismatch``."""
    names = call.path_params
    with named_in(IN_PATH):
        return await session_row(call.tenant.views, names["sid"], call.end_user, names["name"])


def address_of(session: Session, more: str = "") -> str:
    """The path of a session, or of what is below it."""
    return f"/a1/agents/{quote(session.agent, safe='')}/sessions/{session.id}{more}"


async def session(call: Call) -> Response:
    """One session."""
    call.allow_query()
    return JsonResponse(encode(await shown(call, (await session_of(call)).public)))


async def delete_session(call: Call) -> Response:
    """Delete a session with all its messages; a turn that runs is killed."""
    await call.body_as(NoBody)
    names, fields = call.path_params, call.command_fields(of_thread=False)
    await call.do(DeleteSession(session_id=names["sid"], user=call.named_user, agent=names["name"], **fields))
    return Response(status_code=204)


async def history(call: Call) -> Response:
    """What was said in a session, oldest first; what a compaction has summarised is marked."""
    call.allow_query(*HISTORY.takes)
    row = await session_of(call)

    return await lists.list_of(call, HISTORY, Where("session_id", "=", row.public.id))


async def _with_text(call: Call, rows: bytes) -> bytes:
    return orjson.dumps(await messages(call.tenant.log, decode(rows, type=list[MessagePlace]), await session_of(call)))


async def uncompact_session(call: Call) -> Response:
    """Begin a successor with the whole history, as it was said; the answer is the successor."""
    await call.body_as(NoBody)
    call.refuse_if_match()
    names = call.path_params
    with named_in(IN_PATH):
        begun = await uncompact(call.tenant, names["sid"], caller_of(call, names["name"]), call.idempotency())
    row = await session_row(call.tenant.views, begun.session_id, call.end_user)
    return JsonResponse(encode(await shown(call, row.public)), 201, {"location": address_of(row.public)})


async def lineage_of(call: Call) -> Response:
    """The sessions before and after it, nearest first, and the summaries with which they begin, oldest first."""
    call.allow_query()
    names = call.path_params
    with named_in(IN_PATH):
        found = await lineage(call.tenant, names["sid"], call.end_user, names["name"])
    return JsonResponse(encode(found))


def caller_of(call: Call, agent: str) -> Caller:
    """For whom a session with the agent is compacted. What the summarizer is asked is asked inside this request."""
    depth = caller_fields(call).get("caller_depth", 0)
    return Caller(
        user=call.named_user, agent=agent, actor=call.actor, caller_depth=depth, caller_request=call.request_id
    )


SESSIONS: Final = lists.Listing("sessions", CHANGED, descending=True, moves=True, has_past=False, reshape=_all_shown)
ALL_SESSIONS: Final = dataclasses.replace(SESSIONS, filters={"status": lists.equals("status")})
HISTORY: Final = lists.Listing("session_messages", "position", shown_as="messages", has_past=False, reshape=_with_text)

CHAT: Final = Right("agents:chat", {"name": "agent"})
for_user = partial(Route, right=CHAT, needs_user=True, headers=FOR_USER, refuses=(NotFound,))
OF_USER: Final = Right("agents:chat", {"name": "agent", "sid": "session"})
_of_session = partial(for_user, right=OF_USER, refuses=(NotFound, SessionAgentMismatch))
_act = partial(_of_session, headers=(*ACT, *FOR_USER), takes=NoBody)
replacing = partial(_act, refuses=(NotFound, SessionAgentMismatch, SessionBusy, SessionCompactConflict))
OF_SESSION: Final = "/a1/agents/{name}/sessions/{sid}"

A1: Final = Tag("a1", __doc__)
ROUTES: Final = tagged(
    A1,
    for_user(
        "GET /a1/agents",
        chat_agents,
        right=Right("agents:chat"),
        gives=gives(ChatAgentList),
        query=lists.PAGING,
        refuses=(),
    ),
    for_user("GET /a1/agents/{name}", chat_agent, gives=gives(ChatAgent)),
    for_user("GET /a1/agents/{name}/sessions", sessions, gives=gives(SessionList), query=SESSIONS.takes, by_head=True),
    for_user(
        "GET /a1/sessions",
        all_sessions,
        right=Right("agents:chat"),
        gives=gives(SessionList),
        query=ALL_SESSIONS.takes,
        narrow={
            "status": Annotated[Literal["idle", "busy", "archived"], Meta(description="Only those that stand so.")]
        },
        by_head=True,
        refuses=(),
    ),
    for_user(
        "POST /a1/agents/{name}/sessions",
        begin_session,
        takes=SessionBody,
        gives=gives(Session, status=201),
        headers=(*ACT, *FOR_USER),
        is_recorded=True,
    ),
    _of_session(f"GET {OF_SESSION}", session, gives=gives(Session)),
    _act(f"DELETE {OF_SESSION}", delete_session, gives=(Gives(None, status=204),)),
    _of_session(f"GET {OF_SESSION}/messages", history, gives=gives(SessionMessageList), query=HISTORY.takes),
    replacing(f"POST {OF_SESSION}/uncompact", uncompact_session, gives=gives(Session, status=201), is_recorded=True),
    _of_session(f"GET {OF_SESSION}/lineage", lineage_of, gives=gives(Lineage)),
)
