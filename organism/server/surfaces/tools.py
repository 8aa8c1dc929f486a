"""Tools: what may be called, and calling it. A call is an injection that waits: it is a thread like any other.

``/mcp`` offers the tools by the Model Context Protocol. It needs the extra ``mcp``, whose import takes a second:
``surfaces/mcp.py`` is imported by the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.codec import Codec
from organism.config.settings import Listener, Model
from organism.errors import ModelNotFound, NotAcceptable, NotFound, Stopping
from organism.model import words
from organism.model.commands import Inject
from organism.model.words import Object
from organism.pump.rules import call_json, tool_spec
from organism.server.http.bodies import Name, body
from organism.server.http.call import CALLER, USER, Call, JsonResponse, Route, Tag, caller_fields, tagged
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, Injected, gives
from organism.server.http.problems import MCP
from organism.server.http.rights import Right
from organism.server.surfaces.tool_calls import (
    REFUSALS,
    checked,
    hints_of,
    permitted,
    result_of,
    result_schema,
    right_to_call,
)
from organism.server.turns.send_and_wait import call_tool
from organism.tools.toolbox import shipped_scopes


@body
class ExecuteBody:
    """``POST /tools/execute``: ``arguments`` are of the tool's ``parameters``."""

    name: Annotated[Name, Field(examples=["calculator"])]
    arguments: Annotated[dict[str, Any] | None, Field(examples=[{"expression": "2 * 21"}])] = None


@body
class McpBody:
    """``POST /mcp``: a message of JSON-RPC 2.0; what the method takes, the Model Context Protocol says."""

    jsonrpc: Annotated[Literal["2.0"], Field(examples=["2.0"])]
    method: Annotated[str | None, Field(examples=["tools/list"])] = None
    id: Annotated[str | int | None, Field(examples=[1])] = None
    params: dict[str, Any] | None = None
    result: Any = None
    error: dict[str, Any] | None = None


class ToolFunction(TypedDict):
    """A tool as models are shown it."""

    name: Annotated[str, Field(examples=["calculator"])]
    description: str
    parameters: Annotated[words.Object, Field(description="The JSON Schema of its arguments.")]


class Tool(TypedDict):
    """A tool, in the form in which OpenAI-compatible models take it."""

    type: Literal["function"]
    function: ToolFunction
    brings_outside_text: Annotated[bool, Field(description="Its answers may hold text of strangers.")]
    approval: Annotated[bool, Field(description="A person consents to each call.")]
    confirm: Annotated[bool, Field(description="A call is previewed, then confirmed.")]
    read_only: Annotated[bool, Field(description="A call changes nothing.")]
    destructive: Annotated[bool, Field(description="A call may change what is there, as far as it is known.")]
    idempotent: Annotated[bool, Field(description="A repeated call changes nothing more.")]
    open_world: Annotated[bool, Field(description="A call may reach what is outside of the organism.")]
    result: Annotated[words.Object, Field(description="The JSON Schema of its result.")]


class ToolList(TypedDict):
    """The tools that may be called."""

    object: Literal["list"]
    data: list[Tool]


class ModelShown(TypedDict):
    """A model that the token may use, in the form in which OpenAI-compatible clients read it."""

    id: Annotated[str, Field(description="Its name in organism.yaml.", examples=["gpt-4.1-mini"])]
    object: Literal["model"]
    created: Annotated[int, Field(description="Since when it is served: the organism's start, in seconds since 1970.")]
    owned_by: Annotated[str, Field(description="Its provider.", examples=["offline"])]
    context_window: Annotated[int, Field(description="Tokens of a request and its answer together.")]
    description: Annotated[str, Field(description="What it is, unless it is a model of a provider.")]


class ModelList(TypedDict):
    """The models that the token may use."""

    object: Literal["list"]
    data: list[ModelShown]


class ToolExecuted(TypedDict):
    """What a tool answered."""

    result: Annotated[Any, Field(description="Of the tool's own shape.", examples=[{"value": "42", "exact": True}])]


async def tools(call: Call) -> Response:
    """The tools that the token may execute.

    There are the shipped ones that are on, and every listener that an agent names in ``tools``.
    """
    call.allow_query()
    codec = call.tenant.pump.state.rules.codec
    return JsonResponse({"object": "list", "data": [_shown(listener, codec) for listener in permitted(call)]})


async def execute(call: Call) -> Response:
    """Call a tool and wait for its result; 202 with the call's ids if it takes longer than a minute."""
    body = await call.body_as(ExecuteBody)
    call.permit(name=body.name)
    json = await _payload(call, body)
    command = Inject(to=body.name, json=json, **caller_fields(call), **call.command_fields(of_thread=False))
    sent, ending = await call_tool(call, command, "/arguments", {"/to": "/name"})
    if ending is None:
        return JsonResponse(sent, 202)
    return JsonResponse({"result": await result_of(call.tenant.log, sent, ending)})


async def _payload(call: Call, body: ExecuteBody) -> Mapping[str, Any]:
    """What is sent to the tool. Raises ``Forbidden``, for a repetition too.

    Raises ``NotFound`` if there is no such tool, unless the call repeats one that was answered before it was removed.
    """
    try:
        return call_json(checked(call, body.name), body.arguments or {})
    except NotFound:
        once = call.idempotency()
        if once is None or not await call.tenant.answered(once):
            raise
        scope = shipped_scopes().get(body.name, "inject")
        right_to_call(scope).check(call.who, {"name": body.name})
        return body.arguments or {}


def _shown(listener: Listener, codec: Codec) -> dict[str, Any]:
    """A tool in the form that OpenAI-compatible models take, with fields of ours."""
    spec = tool_spec(listener, codec)
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {
        "type": "function",
        "function": function,
        "brings_outside_text": listener.brings_outside_text,
        "approval": listener.approval,
        "confirm": listener.confirm,
        **hints_of(listener)._asdict(),
        "result": result_schema(listener),
    }


ABOUT: Final = {
    "offline": (
        "A small stand-in without network or key: it quotes and summarises what it is given, fills schemas and calls "
        "tools for plain requests. Configure a real model in organism.yaml."
    ),
    "local": "A small model in the server's own process.",
    "scripted": "Answers from a file, for tests.",
    "replay": "Gives what was answered before.",
}
"""Descriptions of the providers that are not other people's models."""


async def models(call: Call) -> Response:
    """The models of the configuration that the token may use."""
    call.allow_query()
    return JsonResponse({"object": "list", "data": list(_models(call).values())})


async def model(call: Call) -> Response:
    """One of them, by its name, which may hold slashes."""
    call.allow_query()
    name = call.path_params["id"]
    if (found := _models(call).get(name)) is None:
        raise ModelNotFound(
            f"There is no model {name[:80]!r} for this token. GET /v1/models lists those that there are."
        )
    return JsonResponse(found)


def _models(call: Call) -> dict[str, dict[str, object]]:
    """What is shown of each model that the token may use, by its name."""
    state, allowed = call.tenant.pump.state, call.who.models
    since = state.folded.life_at // 1_000_000
    found = state.rules.settings.models.items()
    return {name: _shown_model(name, each, since) for name, each in found if allowed is None or name in allowed}


def _shown_model(name: str, model: Model, since: int) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": since,
        "owned_by": model.provider,
        "context_window": model.context_window,
        "description": ABOUT.get(model.provider, ""),
    }


async def mcp(call: Call) -> Response:
    """A message of the Model Context Protocol (streamable HTTP, without sessions), answered as JSON.

    A notification, or an answer to the server, gets 202 without a body.
    """
    await call.body_as(McpBody)
    try:
        module = await asyncio.to_thread(import_module, "organism.server.surfaces.mcp")
    except ImportError as error:
        raise NotFound("There is no /mcp here: it needs the extra `mcp`, pip install 'organism[mcp]'.") from error
    response: Response = await module.answer(call)
    return response


MODELS: Final = Right("agents:chat")
TOOLS: Final = Right("tools:execute", {"name": "tool"}, in_body=True)
FOR_MODELS: Final = (
    *tagged(
        Tag("models", "The models that the caller may use, in the form that OpenAI-compatible clients read."),
        Route("GET /models", models, right=MODELS, gives=gives(ModelList)),
        Route(
            "GET /models/{id}",
            model,
            right=MODELS,
            gives=gives(ModelShown),
            refuses=(ModelNotFound,),
            takes_slashes=True,
        ),
    ),
    *tagged(
        Tag("tools", __doc__),
        Route("GET /tools", tools, right=TOOLS, gives=gives(ToolList)),
        Route(
            "POST /tools/execute",
            execute,
            right=TOOLS,
            gives=gives(ToolExecuted, Gives(Injected, status=202)),
            takes=ExecuteBody,
            headers=(*ACT, *CALLER, USER),
            refuses=(*SENDING_REFUSED, *REFUSALS.values(), *RUN_REFUSED),
        ),
    ),
)

AT_ROOT: Final = tagged(
    Tag(
        "mcp",
        "The tools of `/v1/tools` over the Model Context Protocol, with the same tokens. It needs the extra `mcp`.",
    ),
    Route(
        f"POST {MCP}",
        mcp,
        right=TOOLS,
        gives=gives(Object, Gives(None, status=202)),
        takes=McpBody,
        refuses=(NotFound, NotAcceptable, Stopping),
    ),
)
