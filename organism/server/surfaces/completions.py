"""Chat completions in the form of OpenAI's API: any client of it can call the configured models.

One is a turn of ``system.chat``. Headers (``SPASS-Augment``) say what its client may leave out, and what is added to
its request. A client that leaves before the end stops the turn, unless it sent an idempotency key, by which it can ask
again.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired

import orjson
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.agents.completions import MOST_REQUEST_BYTES
from organism.agents.functions import function_names
from organism.agents.invoke import Shape
from organism.errors import InvalidField, ModelNotInAllowlist, OrganismError, Paused, PayloadTooLarge
from organism.model import words
from organism.model.ids import SYSTEM_CHAT
from organism.server.http import problems
from organism.server.http.call import CALLER, USER, Call, Route, Tag, tagged, unused_header
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, gives
from organism.server.http.rights import Right
from organism.server.http.streaming import SSE
from organism.server.surfaces.completion_bodies import CompletionBody, ToolChoice, request_of, unused_in
from organism.server.turns.answer import answer
from organism.server.turns.begin import Asked, begin
from organism.server.turns.run_result import FoldedRun
from organism.server.turns.write.openai import CompletionWriter, Head

AUGMENT: Final = "SPASS-Augment"
WAIT: Final = "SPASS-Wait"
APPLIED: Final = "SPASS-Augment-Applied"
ADDITIONS: Final = ("system-prompt", "server-tools", "memory")
SEEING: Final = frozenset({"openai", "anthropic"})
"""The providers that take images; whether the model sees them is for its server to say."""


class Additions(NamedTuple):
    """What is added to the caller's request."""

    has_charter: bool
    tools: tuple[str, ...]

    @property
    def header(self) -> str:
        """The additions as the answer tells them. No memory is added to what comes here."""
        charter, tools = "on" if self.has_charter else "off", " ".join(self.tools) or "off"
        return f"system-prompt={charter}, server-tools={tools}, memory=off"


class CompletionUsage(TypedDict):
    """Tokens of all of the answer's model calls, as the provider counted them."""

    prompt_tokens: words.Count
    completion_tokens: words.Count
    total_tokens: words.Count


class CompletionMessage(TypedDict):
    """What the model said, and the calls of the caller's own functions."""

    role: Literal["assistant"]
    content: Annotated[str | None, Field(examples=["Hello!"])]
    reasoning_content: NotRequired[Annotated[str, Field(description="What the model thought aloud.")]]
    tool_calls: NotRequired[list[words.Object]]


class CompletionChoice(TypedDict):
    """The one answer."""

    index: Annotated[int, Field(examples=[0])]
    message: CompletionMessage
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class ChatCompleted(TypedDict):
    """The answer in the form of OpenAI's API."""

    id: words.ThreadId
    object: Literal["chat.completion"]
    created: Annotated[int, Field(description="Seconds since 1970.")]
    model: Annotated[str, Field(description="As it was asked for.", examples=["gpt-4.1-mini"])]
    choices: list[CompletionChoice]
    usage: CompletionUsage
    served_by: Annotated[str, Field(description="The provider that answered.", examples=["offline"])]


async def complete(call: Call) -> Response:
    """The model's answer, at once or as it comes. Its last calls are those of the caller's own functions."""
    body = await call.body_as(CompletionBody)
    request = request_of(body)
    _check_model(call, body)
    added = _additions(call)
    _check_choice(body, added)
    written = orjson.dumps(request)
    if len(written) > MOST_REQUEST_BYTES:  # the codec would say so too, of several copies of it
        raise PayloadTooLarge(
            f"A request has at most {MOST_REQUEST_BYTES:,} bytes of JSON here; {len(written):,} came."
        )
    payload = {
        "model": body.model,
        "request": written.decode(),
        "server_tools": [] if body.tool_choice == "none" else list(added.tools),
        "has_charter": added.has_charter,
    }
    asked = Asked(
        agent=SYSTEM_CHAT,
        json=payload,
        shape=Shape(is_stream=bool(body.stream), is_trimmed=False),
        is_killed="idempotency-key" not in call.headers,
        waits=_waits(call),
    )
    turn = await begin(call, asked)
    (record,) = await call.tenant.log.read(turn.sent.position - 1, limit=1)
    head = Head(turn.sent.thread_id, record.at // 1_000_000, body.model)
    headers = {APPLIED: added.header, **unused_header(unused_in(body))}
    return await answer(
        call, turn, CompletionWriter(head, partial(_problem, call), headers, body.includes_usage), _shown
    )


async def _shown(whole: dict[str, Any], _run: FoldedRun) -> dict[str, Any]:
    return whole


def _problem(call: Call, error: OrganismError) -> bytes:
    return call.process.redactor.shown(problems.body(error, call.request_id))


def _check_model(call: Call, body: CompletionBody) -> None:
    """Raise ``ModelNotInAllowlist``, or ``InvalidField`` for images that the model does not read."""
    models, allowed, name = call.tenant.pump.state.rules.settings.models, call.who.models, body.model
    if name not in models or (allowed is not None and name not in allowed):
        what = f"There is no model {name[:80]!r} for this token. GET /v1/models lists those that there are."
        raise ModelNotInAllowlist(what, param="/model")
    images = [place for at, each in enumerate(body.messages) for place in each.images(f"/messages/{at}")]
    if images and models[name].provider not in SEEING:
        raise InvalidField(f"{name} reads no images; send text, or ask a model that does.", param=images[0])


def _check_choice(body: CompletionBody, added: Additions) -> None:
    """Raise ``InvalidField`` for the choice of a function that is not offered."""
    offered = {tool.function.name for tool in body.tools or ()} | set(function_names(added.tools).values())
    chosen = body.tool_choice.function.name if isinstance(body.tool_choice, ToolChoice) else None
    if chosen is not None and chosen not in offered:
        raise InvalidField(f"There is no function {chosen!r} in `tools`.", param="/tool_choice/function/name")
    if body.tool_choice == "required" and not offered:
        raise InvalidField("A call is required, but no function is offered in `tools`.", param="/tool_choice")


def _waits(call: Call) -> bool:
    """Whether the caller waits for what is paused. Raises ``InvalidField``."""
    said = call.headers.get(WAIT, "false").strip().lower()
    if said not in {"true", "false"}:
        raise InvalidField(f"{WAIT} is true or false; {said[:80]!r} came.", param=f"headers.{WAIT.lower()}")
    return said == "true"


def _additions(call: Call) -> Additions:
    """The charter and the tenant's tools, less what the caller takes away. Raises ``InvalidField``."""
    place = f"headers.{AUGMENT.lower()}"
    said = [each.strip().lower() for each in call.headers.get(AUGMENT, "").split(",") if each.strip()]
    for each in said:
        name, _, value = each.partition("=")
        if name.strip() not in ADDITIONS or value.strip() not in {"on", "off"}:
            known = ", ".join(f"{known}=off" for known in ADDITIONS)
            raise InvalidField(f"{AUGMENT} has {known}, separated by commas; {each[:80]!r} came.", param=place)
    is_off = {name.strip() for name, _, value in (each.partition("=") for each in said) if value.strip() == "off"}
    rules, allowed = call.tenant.pump.state.rules, call.who.tools
    there = rules.tools if allowed is None else rules.tools & allowed
    tools = (name for name in call.tenant.config.tools_enabled_default if name in there)
    return Additions(
        has_charter="system-prompt" not in is_off and rules.settings.charter.text != "",
        tools=() if "server-tools" in is_off else tuple(tools),
    )


ROUTES: Final = tagged(
    Tag("chat", __doc__),
    Route(
        "POST /chat/completions",
        complete,
        right=Right("agents:chat"),
        gives=gives(ChatCompleted, Gives(str, kind=SSE)),
        takes=CompletionBody,
        headers=(*ACT, *CALLER, USER, AUGMENT, WAIT),
        refuses=(*SENDING_REFUSED, *RUN_REFUSED, Paused),
    ),
)
"""Mounted below /v1, beside ``/models`` and ``/tools``."""
