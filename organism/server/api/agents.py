"""Agents: what each listener is and does, its part of the config, its schema, and control."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from msgspec import Meta
from starlette.responses import Response

from organism.config.settings import Listener
from organism.config.shown import Section, shown_section
from organism.errors import NotAcceptable, NotFound
from organism.model import words
from organism.model.commands import PauseAgent, ResumeAgent
from organism.model.principal import ADMIN
from organism.server.http.accept import chosen
from organism.server.http.bodies import NoBody
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import ACT, ACT_REFUSED, Gives, gives
from organism.server.http.lists import AT, Listing, ListPage, as_of, equals, list_of, since_text
from organism.server.http.rights import READ, Right
from organism.server.json import encoded, splice
from organism.views.organism import Agent

AGENTS: Final = Listing(
    "agents",
    "ordinal",
    moves=True,
    filters={
        "status": equals("state"),
        "agent": equals("name"),
        "since": since_text("last_activity"),
    },
)
XSD: Final = "application/xml"
JSON_SCHEMA: Final = "application/schema+json"


class AgentList(ListPage):
    """The listeners, in the order of organism.yaml."""

    agents: list[Agent]


class ControlledAgent(Agent, kw_only=True):
    """The agent as it stands after the act, and where the act stands in the log."""

    position: words.Position


async def agents(call: Call) -> Response:
    """Every listener, in the order of organism.yaml, as it stands now."""
    return await list_of(call, AGENTS)


async def agent(call: Call) -> Response:
    """One listener."""
    call.allow_query(AT)
    return JsonResponse(await call.row("agents", call.path_params["name"], await as_of(call)))


async def config(call: Call) -> Response:
    """The listener's section of organism.yaml, as it was written; the text of its prompt is for ``admin`` alone."""
    call.allow_query()
    listener = _listener(call)
    shown = shown_section(listener, with_prompt=call.who.may(ADMIN, [("agent", listener.name)]))
    return JsonResponse(call.process.redactor.shown(encoded(shown)))


async def schema(call: Call) -> Response:
    """The listener's payload schema: XSD, or JSON Schema for ``Accept: application/schema+json``."""
    call.allow_query()
    schema = call.process.organism.codec.schema(_listener(call).payload_class.__name__)
    kind = chosen(call.headers.get("accept", ""), (XSD, JSON_SCHEMA))
    body = schema.xsd.encode() if kind == XSD else encoded(schema.json_schema)
    return Response(body, headers={"vary": "accept"}, media_type=kind)


def _listener(call: Call) -> Listener:
    name = call.path_params["name"]
    if (listener := call.process.organism.settings.listener(name)) is None:
        raise NotFound(f"There is no agent {name[:80]!r}.")
    return listener


async def pause(call: Call) -> Response:
    """Start nothing more of the agent."""
    return await _control(call, PauseAgent)


async def resume(call: Call) -> Response:
    """Go on with the agent."""
    return await _control(call, ResumeAgent)


async def _control(call: Call, command: type[PauseAgent | ResumeAgent]) -> Response:
    await call.body_as(NoBody)
    done = await call.do(command(agent=call.path_params["name"], **call.command_fields(of_thread=False)))
    row = await call.row("agents", call.path_params["name"], done.position)
    return JsonResponse(splice(row, {"position": done.position}))


NARROW: Final = {
    "status": words.AgentState,
    "agent": Annotated[words.AgentName, Meta(description="Only this one.")],
    "since": Annotated[words.Time, Meta(description="Only who was last active at this time or later.")],
}
SCHEMA: Final = (Gives(str, kind=XSD), Gives(words.Object, kind=JSON_SCHEMA))
_one = partial(Route, right=Right("read", {"name": "agent"}), by_head=True, refuses=(NotFound,))
_control_route = partial(
    Route,
    right=Right("control", {"name": "agent"}),
    takes=NoBody,
    headers=ACT,
    gives=gives(ControlledAgent),
    refuses=ACT_REFUSED,
)

ROUTES: Final = tagged(
    Tag("agents", __doc__),
    Route("GET /agents", agents, right=READ, by_head=True, gives=gives(AgentList), query=AGENTS.takes, narrow=NARROW),
    _one("GET /agents/{name}", agent, gives=gives(Agent), query=(AT,)),
    _one("GET /agents/{name}/config", config, gives=gives(Section)),
    _one("GET /agents/{name}/schema", schema, gives=SCHEMA, refuses=(NotFound, NotAcceptable)),
    _control_route("POST /agents/{name}/pause", pause),
    _control_route("POST /agents/{name}/resume", resume),
)
