"""Tools: what may be called, and calling it. A call is an injection that waits: it is a thread like any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from organism.codec import Codec
from organism.config.settings import Listener
from organism.errors import HandlingFailed, NotFound
from organism.model.commands import Inject
from organism.pump.rules import call_json, tool_spec
from organism.server.bodies import MAX_WAIT_SECONDS, ExecuteBody, parsed
from organism.server.call import CALLER, Answer, Call, Route, answer, caller_fields
from organism.server.contract import ACT, SENDING_REFUSED, Contract, Gives, gives
from organism.server.rights import gone_tool_right
from organism.server.shapes.objects import Injected as Sent
from organism.server.shapes.objects import ToolList, ToolResult
from organism.server.tool_calls import REFUSALS, checked, permitted, result_of
from organism.server.waiting import send_and_wait


async def tools(call: Call) -> Answer:
    """The tools that the token may execute.

    There are the shipped ones that are on, and every listener that an agent names in ``tools``.
    """
    call.allow_query()
    codec = call.tenant.pump.state.rules.codec
    return answer({"object": "list", "data": [_shown(listener, codec) for listener in permitted(call)]})


async def execute(call: Call) -> Answer:
    """Call a tool and wait for its result; 202 with the call's ids if it takes longer than a minute."""
    call.allow_query()
    body = parsed(ExecuteBody, call.json())
    call.permit(name=body.name)
    json = await _payload(call, body)
    command = Inject(to=body.name, json=json, **caller_fields(call), **call.command_fields(of_thread=False))
    sent, ending = await send_and_wait(call, command, MAX_WAIT_SECONDS, "/arguments", {"/to": "/name"})
    if ending is None:
        return answer({"thread_id": sent.thread_id, "message_id": sent.message_id, "position": sent.position}, 202)
    return answer({"result": result_of(sent, ending)})


async def _payload(call: Call, body: ExecuteBody) -> Mapping[str, Any]:
    """What is sent to the tool. Raises ``Forbidden``, for a repetition too.

    Raises ``NotFound`` if there is no such tool, unless the call repeats one that was answered before it was removed.
    """
    try:
        return call_json(checked(call, body.name), body.arguments)
    except NotFound:
        once = call.idempotency()
        if once is None or await call.tenant.operator.answered(once) is None:
            raise
        gone_tool_right(body.name).check(call.who, {"name": body.name})
        return body.arguments


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
    }


LIST: Final = Contract(gives=gives(ToolList))
EXECUTE: Final = Contract(
    gives=gives(ToolResult, Gives(Sent, status=202)),
    takes=ExecuteBody,
    headers=(*ACT, *CALLER),
    refuses=(*SENDING_REFUSED, *REFUSALS.values(), HandlingFailed),
)

ROUTES: Final = (
    Route("GET", "/tools", tools, contract=LIST),
    Route("POST", "/tools/execute", execute, contract=EXECUTE),
)
