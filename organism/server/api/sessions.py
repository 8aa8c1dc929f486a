"""Conversational agents: which there are, and what each is made of."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from starlette.responses import Response

from organism.config.settings import Listener
from organism.config.shown import shown_prompt
from organism.errors import NotFound
from organism.model.agent import Prompt
from organism.model.principal import ADMIN
from organism.server.http import lists
from organism.server.http.call import FOR_USER, Call, JsonResponse, Route
from organism.server.http.contract import gives
from organism.server.http.shapes import ChatAgent, ChatAgentList
from organism.server.json import encoded


async def chat_agents(call: Call) -> Response:
    """The agents to talk with, in the order of the configuration."""
    settings = call.tenant.pump.state.rules.settings
    found = [_head(listener) for listener in settings.listeners if listener.payload_class is Prompt]
    return JsonResponse(lists.page_of(call, "agents", found))


async def chat_agent(call: Call) -> Response:
    """One agent's configuration; the text of its prompt is for administrators, others get its SHA-256."""
    call.allow_query()
    listener = call.tenant.pump.state.rules.settings.listener(call.path_params["name"])
    if listener is None or listener.payload_class is not Prompt:
        raise NotFound(f"There is no agent {call.path_params['name'][:80]!r} to talk with.")
    is_plain = call.who.is_tenant_admin or call.who.may(ADMIN, [("agent", listener.name)])
    return JsonResponse(call.process.redactor.shown(encoded(_whole(listener, is_plain=is_plain))))


def _head(listener: Listener) -> dict[str, Any]:
    tools = {"model": listener.model, "tools": list(listener.tools)}
    return {"name": listener.name, "description": listener.description, **tools}


def _whole(listener: Listener, *, is_plain: bool) -> dict[str, Any]:
    prompt, agent = listener.prompt, listener.agent
    return {
        **_head(listener),
        "peers": list(listener.peers),
        "system_prompt": None if prompt is None else shown_prompt(prompt, is_plain=is_plain),
        "max_tokens": agent and agent.max_tokens,
        "temperature": agent and agent.temperature,
        "rag_index": agent and agent.rag_index,
        "rag_top_k": agent and agent.rag_top_k,
        "taint": agent and agent.taint,
        "budget": listener.section.get("budget", {}),
        "version": listener.version,
    }


for_user = partial(Route, needs_user=True, headers=FOR_USER, refuses=(NotFound,))

ROUTES: Final = (
    for_user("GET", "/a1/agents", chat_agents, gives=gives(ChatAgentList), query=lists.PAGING, refuses=()),
    for_user("GET", "/a1/agents/{name}", chat_agent, gives=gives(ChatAgent)),
)
