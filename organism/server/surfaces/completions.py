"""Chat completions in the form of OpenAI's API: any client of it can call the configured models.

One is a turn of ``system.chat``. Headers (``SPASS-Augment``) say what its client may leave out, and what is added to
its request. A client that leaves before the end stops the turn, unless it sent an idempotency key, by which it can ask
again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple

import orjson
from msgspec import field
from starlette.responses import Response

from organism import errors
from organism.agents.completions import MOST_REQUEST_BYTES
from organism.agents.functions import function_names
from organism.errors import InvalidField, ModelNotInAllowlist, OrganismError, PayloadTooLarge, Stopping
from organism.events.entity import Entity
from organism.model.commands import Inject, Injected
from organism.model.ids import SYSTEM_CHAT
from organism.model.run import RunEntry
from organism.model.unseen import AppendOnly
from organism.server.http import problems
from organism.server.http.call import CALLER, USER, Call, JsonResponse, Route, Tag, caller_fields, tagged, unused_header
from organism.server.http.contract import ACT, RUN_REFUSED, SENDING_REFUSED, Gives, gives
from organism.server.http.rights import Right
from organism.server.http.shapes import ChatCompleted
from organism.server.http.streaming import SSE, live_response
from organism.server.surfaces.completion_bodies import CompletionBody, ToolChoice, request_of, unused_in
from organism.server.surfaces.costs import begun_or_costed, cost_of, tell_cost
from organism.server.surfaces.run import entries_of, refusal, written
from organism.server.surfaces.turns import killed_if_left
from organism.server.surfaces.vercel import DONE
from organism.views.run import Fold

AUGMENT: Final = "SPASS-Augment"
APPLIED: Final = "SPASS-Augment-Applied"
ADDITIONS: Final = ("system-prompt", "server-tools", "memory")
FINISHES: Final = {"stop": "stop", "content_filter": "content_filter", "refusal": "content_filter"}
"""A run's stop reason in the API's words; any other one means that the answer was cut: ``length``."""
SEEING: Final = frozenset({"openai", "anthropic"})
"""The providers that take images; whether the model sees them is for its server to say."""
BETWEEN: Final = "\n\n"
"""Between the texts of two rounds, and between two thoughts."""


class Additions(NamedTuple):
    """What is added to the caller's request."""

    has_charter: bool
    tools: tuple[str, ...]

    @property
    def header(self) -> str:
        """The additions as the answer tells them. No memory is added to what comes here."""
        charter, tools = "on" if self.has_charter else "off", " ".join(self.tools) or "off"
        return f"system-prompt={charter}, server-tools={tools}, memory=off"


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
    told = {**caller_fields(call), **call.command_fields(of_thread=False)}
    sent = await call.send(Inject(to=SYSTEM_CHAT, json=payload, **told), "")
    entries = entries_of(call.tenant, sent) if "idempotency-key" in call.headers else killed_if_left(call, sent)
    (record,) = await call.tenant.log.read(sent.position - 1, limit=1)
    head = Head(sent.thread_id, record.at // 1_000_000, body.model)
    headers = {APPLIED: added.header, **unused_header(unused_in(body))}
    if body.stream:
        chunks = ChunkWriter(head, partial(_problem, call), body.includes_usage)
        return await call.unless_left(_stream(call, sent, chunks, entries, headers))
    return await call.unless_left(_batch(call, sent, head, entries, headers))


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


def _additions(call: Call) -> Additions:
    """The charter and the tenant's tools, less what the caller takes away. Raises ``InvalidField``."""
    place = f"headers.{AUGMENT.lower()}"
    said = [each.strip().lower() for each in call.headers.get(AUGMENT, "").split(",") if each.strip()]
    for each in said:
        name, _, value = each.partition("=")
        if name.strip() not in ADDITIONS or value.strip() not in {"on", "off"}:
            known = ", ".join(f"{known}=off" for known in ADDITIONS)
            raise InvalidField(f"{AUGMENT} has {known}, parted by commas; {each[:80]!r} came.", param=place)
    is_off = {name.strip() for name, _, value in (each.partition("=") for each in said) if value.strip() == "off"}
    rules, allowed = call.tenant.pump.state.rules, call.who.tools
    there = rules.tools if allowed is None else rules.tools & allowed
    tools = (name for name in call.tenant.config.tools_enabled_default if name in there)
    return Additions(
        has_charter="system-prompt" not in is_off and rules.settings.charter.text != "",
        tools=() if "server-tools" in is_off else tuple(tools),
    )


class Head(NamedTuple):
    """What the answer and each of its chunks begin with. ``id`` is the thread's."""

    id: str
    created: int
    model: str

    def of(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


class Usage(Entity):
    """The tokens of all calls of the turn, as the provider counted them, and the provider that answered last."""

    _input: int = 0
    _output: int = 0
    served_by: str = ""

    def add(self, data: Mapping[str, Any]) -> None:
        self._input += data["input"]
        self._output += data["output"]
        self.served_by = data["served_by"]

    def shown(self) -> dict[str, int]:
        total = self._input + self._output
        return {"prompt_tokens": self._input, "completion_tokens": self._output, "total_tokens": total}


# -- at once


async def _batch(
    call: Call, sent: Injected, head: Head, entries: AsyncGenerator[RunEntry, None], headers: Mapping[str, str]
) -> Response:
    """The answer: a fold of all entries. Raises the error that the run ended with."""
    run, usage, seen, thoughts, thought = Fold(), Usage(), list[RunEntry](), Said(), list[str]()
    async for entry in entries:
        seen.append(entry)
        run.add(entry)
        if entry["type"].startswith("thought"):
            thought.append(thoughts.add(entry))
        if entry["type"] == "usage":
            usage.add(entry["data"])
    await tell_cost(call, sent)
    if (refused := refusal(seen)) is not None:
        raise refused
    folded = run.result()
    if folded["stop_reason"] is None:
        raise Stopping(f"The server stops before thread {sent.thread_id} is done; it goes on with the next start.")
    calls = _called(unanswered(seen))
    texts = [message["content"] for message in folded["messages"] if message["role"] == "assistant"]
    message: dict[str, Any] = {"role": "assistant", "content": BETWEEN.join(filter(None, texts)) or None}
    message |= {"reasoning_content": "".join(thought)} if any(thought) else {}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": finish_of(folded["stop_reason"], calls)}
    whole = {**head.of("chat.completion"), "choices": [choice], "usage": usage.shown(), "served_by": usage.served_by}
    return JsonResponse(whole, headers=headers)


def unanswered(entries: Iterable[RunEntry]) -> list[Mapping[str, Any]]:
    """The calls without a result, which are for the caller to make."""
    calls: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry["type"] == "tool_call":
            calls[entry["data"]["id"]] = entry["data"]
        elif entry["type"] == "tool_result":
            calls.pop(entry["data"]["id"], None)
    return list(calls.values())


def _called(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    told = []
    for call in calls:
        arguments = call["rawInput"] if "rawInput" in call else orjson.dumps(call["input"]).decode()
        told.append({"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}})
    return told


def finish_of(stop_reason: str, calls: Sequence[object]) -> str:
    """Why the answer ends, in the API's words."""
    return "tool_calls" if calls and stop_reason == "stop" else FINISHES.get(stop_reason, "length")


# -- as it comes


async def _stream(
    call: Call, sent: Injected, chunks: ChunkWriter, entries: AsyncGenerator[RunEntry, None], headers: Mapping[str, str]
) -> Response:
    entries = await begun_or_costed(call, sent, entries)

    async def costed() -> AsyncGenerator[RunEntry, None]:
        async with aclosing(entries):
            async for entry in entries:
                if entry["type"] == "done":
                    chunks.cost = await cost_of(call, sent)
                yield entry

    return await live_response(call, written(costed(), SSE, chunks.lines), SSE, headers)


def _problem(call: Call, error: OrganismError) -> bytes:
    return call.process.redactor.shown(problems.body(error, call.request_id))


class Said(Entity):
    """What the run has said or thought, as a reader has it, from whom text cannot be taken back."""

    has_text: bool = False
    is_parted: bool = False
    """A block began again, because its model call is repeated, in other words or in fewer."""
    _id: str = ""  # of the open block
    _block: AppendOnly = field(default_factory=AppendOnly)

    def add(self, entry: RunEntry) -> str:
        """The text that the entry adds: a block that begins again goes on where it is the same."""
        data, (_, _, phase) = entry["data"], entry["type"].partition("_")
        if phase == "delta":
            return self._text(data["delta"], data["offset"])
        if phase == "end":
            self.is_parted |= self._block.is_shorter
            return ""
        block = data.get("id", "")
        if block and block == self._id:
            self._block.restart()
        else:
            self._id, self._block = block, AppendOnly()
        return "" if phase else self._text(data["text"], None)

    def _text(self, text: str, offset: int | None) -> str:
        if self.is_parted:
            return ""
        between = BETWEEN if self.has_text and self._block.is_empty else ""
        new = self._block.take(text, offset)
        self.is_parted = new is None
        if not new:
            return ""
        self.has_text = True
        return between + new


class ChunkWriter(Entity):
    """Writes one run's entries as chunks, ``[DONE]`` last; ``cost`` is told in the last chunk.

    A reader takes every event for a chunk, and cannot take text back. So an error is sent only once the run has ended
    with it, or with a text that began again in other words.
    """

    _head: Head
    _problem: Callable[[OrganismError], bytes]  # an error as JSON
    _includes_usage: bool = False
    cost: Mapping[str, str] = field(default_factory=dict)
    _usage: Usage = field(default_factory=Usage)
    _calls: list[RunEntry] = field(default_factory=list)
    _error: OrganismError | None = None
    _has_begun: bool = False
    _said: Said = field(default_factory=Said)
    _thought: Said = field(default_factory=Said)

    def lines(self, entry: RunEntry) -> bytes:
        """The events that the entry becomes; none if the API has no form for it."""
        begin = b"" if self._has_begun else self._chunk({"role": "assistant", "content": ""})
        self._has_begun = True
        return begin + self._event(entry, entry["data"])

    def _event(self, entry: RunEntry, data: Mapping[str, Any]) -> bytes:
        match entry["type"]:
            case "message" | "message_start" | "message_delta" | "message_end":
                if text := self._said.add(entry):
                    return self._chunk({"content": text})
            case "thought" | "thought_start" | "thought_delta" | "thought_end":
                if text := self._thought.add(entry):
                    return self._chunk({"reasoning_content": text})
            case "usage":
                self._usage.add(data)
            case "tool_call" | "tool_result":
                self._calls.append(entry)
            case "error":
                self._error = problems.told(data)
            case "done":
                return self._end(data["stopReason"]) + DONE
        return b""

    def _end(self, stop_reason: str) -> bytes:
        if stop_reason in {"error", "killed"}:
            return self._failed(self._error or errors.HandlingFailed())
        if self._said.is_parted:
            return self._failed(errors.Upstream("The model began its answer again, in other words; ask again."))
        calls = _called(unanswered(self._calls))
        delta = {"tool_calls": [{"index": index, **called} for index, called in enumerate(calls)]} if calls else {}
        finish, cost = finish_of(stop_reason, calls), self._told_cost
        if not self._includes_usage:
            return self._chunk(delta, finish, served_by=self._usage.served_by, **cost)
        whole = {**self._head.of("chat.completion.chunk"), "choices": [], "usage": self._usage.shown(), **cost}
        return self._chunk(delta, finish, served_by=self._usage.served_by) + b"data: %b\n\n" % orjson.dumps(whole)

    def _failed(self, error: OrganismError) -> bytes:
        problem = orjson.loads(self._problem(error))
        return b"data: %b\n\n" % orjson.dumps({**problem, **self._told_cost})

    @property
    def _told_cost(self) -> dict[str, Any]:
        return {"spass_cost": self.cost} if self.cost else {}

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        usage = {"usage": None} if self._includes_usage else {}
        chunk = {**self._head.of("chat.completion.chunk"), "choices": [choice], **usage, **more}
        return b"data: %b\n\n" % orjson.dumps(chunk)


ROUTES: Final = tagged(
    Tag("chat", __doc__),
    Route(
        "POST /chat/completions",
        complete,
        right=Right("agents:chat"),
        gives=gives(ChatCompleted, Gives(str, kind=SSE)),
        takes=CompletionBody,
        headers=(*ACT, *CALLER, USER, AUGMENT),
        refuses=(*SENDING_REFUSED, *RUN_REFUSED),
    ),
)
"""Mounted below /v1, beside ``/models`` and ``/tools``."""
