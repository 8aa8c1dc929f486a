"""Calls of tools, by ``/v1/tools/execute`` or by MCP: which tools there are, and the result of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from organism.codec import PayloadSchema, json_schema_of_any
from organism.config.settings import Listener
from organism.errors import (
    ConfirmExpired,
    ConfirmMismatch,
    ConfirmUsed,
    Forbidden,
    HandlingFailed,
    InvalidField,
    NotFound,
    OrganismError,
    PreviewStale,
    ThreadKilled,
    ToolFailed,
)
from organism.log.log import EventLog
from organism.model.commands import Injected
from organism.model.tool import ConfirmRequired, ToolError
from organism.pump.rules import Rules, replies_of
from organism.server.http import problems
from organism.server.http.call import Call
from organism.server.http.rights import Right
from organism.server.turns.failures import failure_of
from organism.server.turns.send_and_wait import Ending

REFUSALS: Final[Mapping[str, type[OrganismError]]] = {
    **{
        kind.code: kind
        for kind in (InvalidField, NotFound, Forbidden, PreviewStale, ConfirmMismatch, ConfirmExpired, ConfirmUsed)
    },
    **dict.fromkeys(("upstream_error", "upstream_timeout"), ToolFailed),
}
"""The error that a tool's ``ToolError`` becomes, by its code. No gateway failed: clients would call it again."""


def tools_of(rules: Rules) -> Iterator[Listener]:
    """The tools, in the order of the listeners."""
    return (listener for listener in rules.listeners.values() if listener.name in rules.tools)


def permitted(call: Call) -> Iterator[Listener]:
    """The tools that the token may execute."""
    for listener in tools_of(call.tenant.pump.state.rules):
        with suppress(Forbidden):
            call.permit(name=listener.name)
            yield checked(call, listener.name)


_NARROWED: Final[Mapping[str, Mapping[str, str]]] = {"inject": {"name": "agent"}, "tools:execute": {"name": "tool"}}
"""The scopes of tools that a token may narrow to the called one, which ``name`` is."""


def right_to_call(scope: str) -> Right:
    """What calling a tool of this scope needs besides the route's right."""
    return Right(scope, _NARROWED.get(scope, {}))


def checked(call: Call, name: str) -> Listener:
    """The tool. Raises ``NotFound`` if there is none, ``Forbidden`` if the token lacks what the tool itself needs."""
    rules = call.tenant.pump.state.rules
    listener = next((each for each in tools_of(rules) if each.name == name), None)
    if listener is None:
        why = rules.settings.off.get(name)
        reason = f"There is no tool {name[:80]!r}" if why is None else f"{name} is off: {why}"
        raise NotFound(f"{reason}. GET /v1/tools lists those that there are.", param="/name")
    if call.who.tools is not None and name not in call.who.tools:
        raise Forbidden(f"This token may not call {name}, which is not among its `tools`.")
    for receiver in call.tenant.receivers(name):
        right_to_call(rules.listeners[receiver].scope).check(call.who, {"name": receiver})
    return listener


class Hints(NamedTuple):
    """What a call does, as far as it is known; of tools of others it is what their servers say."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


def hints_of(tool: Listener) -> Hints:
    """What is not known to be harmless counts as destructive."""
    changes = tool.effect != "pure"
    return Hints(not changes, changes, tool.effect != "unsafe", tool.brings_outside_text)


_RUNNING: Final = {
    "type": "object",
    "description": "The call takes long and goes on in this thread.",
    "properties": {"thread_id": {"type": "string"}, "status": {"const": "running"}},
    "required": ["thread_id", "status"],
    "additionalProperties": False,
}


def result_schema(tool: Listener) -> dict[str, Any]:
    """The JSON Schema of what ``/mcp`` answers to a call. Any object, where it is not known what the tool answers."""
    kinds = () if tool.broadcast else replies_of(tool)
    if not kinds:
        return {"type": "object"}
    if tool.confirm:
        kinds = (*kinds, ConfirmRequired)
    schema = json_schema_of_any(PayloadSchema.of(kind).shapes for kind in kinds)
    if tool.confirm:
        schema["$defs"][ConfirmRequired.__name__]["properties"]["preview"] = {}  # ``result_of`` reads its text
    return {**schema, "anyOf": [*schema["anyOf"], _RUNNING]}


async def result_of(log: EventLog, sent: Injected, ending: Ending) -> Any:
    """The first reply's payload, if there is one. Raises the error that the tool answered with, or its model failed."""
    replies = [orjson.loads(reply) for reply in ending.replies]
    if replies and replies[0]["payload_type"] == ToolError.__name__:
        error = replies[0]["payload"]
        raise REFUSALS[error["code"]](error["message"])
    if replies and replies[0]["payload_type"] == ConfirmRequired.__name__:
        required = replies[0]["payload"]
        return {**required, "preview": orjson.loads(required["preview"])}
    if replies:
        return replies[0]["payload"]
    thread = orjson.loads(ending.thread)
    if thread["status"] == "killed":
        raise ThreadKilled(f"Thread {sent.thread_id} was killed before the tool had answered.")
    if thread["status"] == "error":
        error = problems.error_of((await failure_of(log, sent))["data"])
        if isinstance(error, HandlingFailed):
            error = HandlingFailed(f"The tool failed for good in thread {sent.thread_id}, whose dead letter says why.")
        raise error
    return None
