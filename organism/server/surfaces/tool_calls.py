"""Calls of tools, by ``/v1/tools/execute`` or by MCP: which tools there are, and the result of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

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
    Upstream,
    UpstreamTimeout,
)
from organism.model.commands import Injected
from organism.model.tool import ConfirmRequired, ToolError
from organism.pump.rules import Rules
from organism.server.http.call import Call
from organism.server.http.rights import tool_right
from organism.server.surfaces.waiting import Ending

REFUSALS: Final[Mapping[str, type[OrganismError]]] = {
    kind.code: kind
    for kind in (
        InvalidField,
        NotFound,
        Forbidden,
        PreviewStale,
        ConfirmMismatch,
        ConfirmExpired,
        ConfirmUsed,
        Upstream,
        UpstreamTimeout,
    )
}
"""The error that a tool's ``ToolError`` becomes, by its code."""


def tools_of(rules: Rules) -> Iterator[Listener]:
    """The tools, in the order of the listeners."""
    return (listener for listener in rules.listeners.values() if listener.name in rules.tools)


def permitted(call: Call) -> Iterator[Listener]:
    """The tools that the token may execute."""
    for listener in tools_of(call.tenant.pump.state.rules):
        with suppress(Forbidden):
            call.permit(name=listener.name)
            yield checked(call, listener.name)


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
        tool_right(rules.listeners[receiver]).check(call.who, {"name": receiver})
    return listener


def result_of(sent: Injected, ending: Ending) -> Any:
    """The first reply's payload, if there is one. Raises the error that the tool answered with."""
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
        raise HandlingFailed(f"The tool failed for good in thread {sent.thread_id}, whose dead letter says why.")
    return None
