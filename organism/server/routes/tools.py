"""Tools: what may be called, and calling it. A call is an injection that waits: it is a thread like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from organism.codec import Codec
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
from organism.model.commands import Inject, Injected
from organism.model.tool import ToolError
from organism.pump.offer import tool_spec
from organism.pump.rules import Rules
from organism.server.bodies import MAX_WAIT_SECONDS, ExecuteBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import ACT, SENDING_REFUSED, Contract, Gives, gives
from organism.server.rights import tool_right
from organism.server.shapes.acts import Injected as Sent
from organism.server.shapes.acts import ToolResult
from organism.server.shapes.lists import ToolList
from organism.server.standing import thread_as_of
from organism.server.waiting import end_of, replies_to

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
"""What a tool's ``ToolError`` becomes, by its code."""


async def tools(call: Call) -> Answer:
    """The shipped tools that are on, and every listener that an agent names in ``tools``."""
    call.allow_query()
    rules = call.tenant.pump.state.rules
    return answer({"object": "list", "data": [_shown(listener, rules.codec) for listener in _tools(rules)]})


async def execute(call: Call) -> Answer:
    """Call a tool and wait for its result; 202 with the call's ids if it takes longer than a minute."""
    call.allow_query()
    body = parsed(ExecuteBody, call.json())
    call.permit(name=body.name)
    if not await _is_repeated(call):
        _check(call, body.name)
    command = Inject(to=body.name, json=body.arguments, **call.command_fields(of_thread=False))
    sent = await call.send(command, "/arguments")
    end = await end_of(call, sent, MAX_WAIT_SECONDS)
    if end is None:
        return answer({"thread_id": sent.thread_id, "message_id": sent.message_id, "position": sent.position}, 202)
    return answer({"result": await _result(call, sent, end)})


async def _is_repeated(call: Call) -> bool:
    """Whether the call's key has its answer already; then nothing is decided again."""
    once = call.idempotency()
    return once is not None and await call.tenant.operator.answered(once) is not None


def _check(call: Call, name: str) -> None:
    """Raise ``NotFound`` if there is no such tool, ``Forbidden`` if the token lacks what the tool itself needs."""
    rules = call.tenant.pump.state.rules
    listener = _named(rules, name)
    for receiver in call.tenant.receivers(listener.name):
        tool_right(receiver, is_shipped=rules.listeners[receiver].is_shipped).check(call.who, {"name": receiver})


def _tools(rules: Rules) -> Iterator[Listener]:
    named = {name for listener in rules.listeners.values() for name in listener.tools}
    return (listener for listener in rules.listeners.values() if listener.is_shipped or listener.name in named)


def _named(rules: Rules, name: str) -> Listener:
    for listener in _tools(rules):
        if listener.name == name:
            return listener
    why = rules.settings.off.get(name)
    said = f"There is no tool {name[:80]!r}" if why is None else f"{name} is off: {why}"
    raise NotFound(f"{said}. GET /v1/tools lists those that there are.", param="/name")


def _shown(listener: Listener, codec: Codec) -> dict[str, Any]:
    """A tool in the form that OpenAI-compatible models take, and what else is to be known of it."""
    spec = tool_spec(listener, codec)
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {
        "type": "function",
        "function": function,
        "brings_outside_text": listener.brings_outside_text,
        "approval": listener.approval,
        "confirm": listener.confirm,
    }


async def _result(call: Call, sent: Injected, end: int) -> Any:
    """The payload of the first reply; None where the tool gave none. Raises what it says that went wrong."""
    replies = [orjson.loads(reply) for reply in await replies_to(call.tenant.log, sent, end)]
    if replies and replies[0]["payload_type"] == ToolError.__name__:
        said = replies[0]["payload"]
        raise REFUSALS[said["code"]](said["message"])
    if replies:
        return replies[0]["payload"]
    thread = orjson.loads(await thread_as_of(call.tenant.log, sent.thread_id, end))
    if thread["status"] == "killed":
        raise ThreadKilled(f"Thread {sent.thread_id} was killed before the tool had answered.")
    if thread["status"] == "error":
        raise HandlingFailed(f"The tool failed for good in thread {sent.thread_id}, whose dead letter says why.")
    return None


LIST: Final = Contract(gives=gives(ToolList))
EXECUTE: Final = Contract(
    gives=gives(ToolResult, Gives(Sent, status=202)),
    takes=ExecuteBody,
    headers=ACT,
    refuses=(*SENDING_REFUSED, *REFUSALS.values(), HandlingFailed),
)

ROUTES: Final = (
    Route("GET", "/tools", tools, contract=LIST),
    Route("POST", "/tools/execute", execute, contract=EXECUTE),
)
