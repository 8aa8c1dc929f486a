"""Inject: a message from outside. It is acknowledged when it is on disk, with ``wait`` when its thread has ended."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import Field
from starlette.responses import Response

from organism.agents.invoke import is_turn
from organism.errors import BudgetExhausted, InvalidField, MissingField, SessionBusy, UnsupportedMediaType
from organism.model.commands import Inject
from organism.server.http.bodies import MAX_WAIT_SECONDS, Faults, Name, Wait, body
from organism.server.http.call import CALLER, Call, JsonResponse, Route, Tag, caller_fields, tagged
from organism.server.http.contract import ACT_ON_THREAD, SENDING_REFUSED, Gives, Injected, gives
from organism.server.http.rights import Right
from organism.server.json import encoded, splice
from organism.server.turns.send_and_wait import refuse_if_budget_spent, send_and_wait
from organism.views.threads import Message, Thread

OF_XML: Final = ("to", "thread_id", "wait")
"""What the query says of an XML body; a JSON body says it itself."""
IN_QUERY: Final = {"/to": "query.to", "/thread_id": "query.thread_id"}
_NUMBER: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_XML_KINDS: Final = frozenset({"application/xml", "text/xml"})


@body
class InjectBody:
    """``POST /inject``: ``wait`` is in seconds."""

    to: Annotated[Name, Field(examples=["greeter"])]
    payload: Annotated[Any, Field(examples=[{"name": "Dan"}])]
    thread_id: Name | None = None
    wait: Wait | None = None


class InjectedAndEnded(Injected):
    """The message's thread has ended; all of it is as it stood at that end."""

    replies: Annotated[list[Message], Field(description="The messages to `console` that this injection caused.")]
    thread: Thread


async def inject(call: Call) -> Response:
    """Send a payload from ``console`` to a listener: 202 with its ids, or after ``wait`` 200 with the replies."""
    kind = call.content_kind
    is_xml = kind in _XML_KINDS
    if not is_xml and kind != "application/json":
        came = repr(kind) if kind else "no Content-Type"
        raise UnsupportedMediaType(
            f"Inject takes application/json or application/xml; came {came}.", param="headers.content-type"
        )
    wanted = _from_query(call) if is_xml else await call.body_as(InjectBody)
    for receiver in call.tenant.receivers(wanted.to):
        call.permit(to=receiver)
    command = Inject(
        to=wanted.to,
        json=wanted.payload,
        xml=call.content if is_xml else None,
        thread_id=wanted.thread_id,
        **caller_fields(call),
        **call.command_fields(of_thread=wanted.thread_id is not None),
    )
    place, places = ("", IN_QUERY) if is_xml else ("/payload", {})
    sent, ending = await send_and_wait(call, command, wanted.wait, place, places)
    if ending is None:
        return JsonResponse(sent, 202)
    listener = call.tenant.pump.state.rules.listeners.get(wanted.to)
    if listener is not None and is_turn(listener):
        await refuse_if_budget_spent(call.tenant.log, sent, ending.position)
    replies = b"[" + b",".join(ending.replies) + b"]"
    return JsonResponse(splice(encoded(sent), {"replies": replies, "thread": ending.thread}))


def _from_query(call: Call) -> InjectBody:
    """The document is the body; its receiver stands in the query, since a document does not decide that (S12)."""
    faults = Faults()
    with faults:
        call.allow_query(*OF_XML)
    with faults:
        to = call.query.get("to", "")
        if not to:
            raise MissingField("The receiver (?to=NAME) is missing.", param="query.to")
    with faults:
        seconds = _wait(call.query.get("wait"))
    faults.raise_found()
    return InjectBody(to=to, payload=None, thread_id=call.query.get("thread_id") or None, wait=seconds)


def _wait(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 0 < seconds <= MAX_WAIT_SECONDS:
        raise InvalidField(
            f"`wait` is a number of seconds up to {MAX_WAIT_SECONDS:.0f}; came {text[:40]!r}.", param="query.wait"
        )
    return seconds


ROUTES: Final = tagged(
    Tag("inject", __doc__),
    Route(
        "POST /inject",
        inject,
        right=Right("inject", {"to": "agent"}, in_body=True),
        gives=gives(Injected, Gives(InjectedAndEnded), status=202),
        query=OF_XML,
        takes=InjectBody,
        takes_xml=True,
        headers=(*ACT_ON_THREAD, *CALLER),
        refuses=(*SENDING_REFUSED, SessionBusy, BudgetExhausted),
    ),
)
