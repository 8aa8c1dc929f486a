"""What an invoke asks for, by its body and headers, the same for every surface.

Headers are sugar for the flags of the body, which win. An unknown value of a header counts as absent, as does a flag
that is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, Strict, with_config
from pydantic.config import JsonDict

from organism.agents.invoke import Flags
from organism.config.tenant import OnBusy
from organism.errors import Fault, InvalidField, MissingField
from organism.model.agent import Said
from organism.server.http.accept import weights
from organism.server.http.bodies import NULL, SOMETHING, Name, Places, body, parsed

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
JSON_LINES: Final = "application/jsonl"
EVENTS: Final = "text/event-stream"
STREAMS: Final = (NDJSON, JSON_LINES, EVENTS)
MAX_MESSAGES: Final = 1000
MAX_PIECES: Final = 1000
"""Of one message."""

ACCEPT: Final = "accept"
FORMAT: Final = "x-ag-messages-format"
TRANSCRIPT: Final = "x-ag-messages-transcript"
CONTROL: Final = "x-ag-session-control"
SESSION: Final = "x-ag-session-id"
HEADERS: Final = (TRANSCRIPT, CONTROL, FORMAT, "x-ag-workflow-embeds", SESSION)

_OPEN: Final = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})
_INPUTS: Final = ("messages", "message", "payload")
_NO_INPUT: Final[JsonDict] = {"properties": dict.fromkeys(_INPUTS, NULL)}
_TWO_INPUTS: Final[list[JsonDict]] = [
    {"required": [*names], "properties": dict.fromkeys(names, SOMETHING)} for names in combinations(_INPUTS, 2)
]
_ONE_INPUT: Final[JsonDict] = {"not": {"anyOf": [_NO_INPUT, *_TWO_INPUTS]}}
"""For the schema, what ``_inputs`` checks; below, what ``_split`` checks."""
_OF_USER: Final[JsonDict] = {"required": ["role"], "properties": {"role": {"const": "user"}}}
_MESSAGES: Final = Field(
    min_length=1, max_length=MAX_MESSAGES, fail_fast=True, json_schema_extra={"contains": _OF_USER}
)

Flag = Annotated[bool, Strict()] | None
Waiting = Annotated[Flag, Field(description="Wait for what is paused, instead of 503 `paused`.")]


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a message; only text is read."""

    type: str
    text: str = ""


Pieces = Annotated[list[Piece], Field(max_length=MAX_PIECES, fail_fast=True)]


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class TalkMessage:
    """A message of the conversation so far: its text stands in ``content`` or in ``parts``."""

    role: Literal["user", "assistant", "tool"]
    content: str | Pieces | None = None
    parts: Pieces | None = None

    @property
    def text(self) -> str:
        """All of its text."""
        if isinstance(self.content, str):
            return self.content
        pieces = (*(self.content or ()), *(self.parts or ()))
        return "".join(piece.text for piece in pieces if piece.type == "text")


@with_config(ConfigDict(extra="forbid", json_schema_extra=_ONE_INPUT))
@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the agent gets: the conversation so far, its next message alone, or a payload of its class."""

    messages: Annotated[list[TalkMessage], _MESSAGES] | None = None
    message: str | None = None
    payload: dict[str, Any] | None = None


@body
class Given:
    """What stands under ``data``."""

    inputs: Annotated[Inputs, Field(examples=[{"message": "What can you do?"}])]


@body
class FlagsBody:
    """What the caller wants; null counts as absent."""

    stream: Flag = None
    trim: Flag = None
    force: Flag = None
    resolve: Flag = None


@body
class TurnBody:
    """``POST /agents/{name}/invoke``; an ``agent`` that stands here too is the path's."""

    data: Given
    agent: Name | None = None
    session_id: Name | None = None
    on_busy: OnBusy | None = None
    wait: Waiting = None
    flags: FlagsBody | None = None


@body
class InvokeBody:
    """``POST /invoke``."""

    agent: Annotated[Name, Field(examples=["concise-de"])]
    data: Given
    session_id: Name | None = None
    on_busy: OnBusy | None = None
    wait: Waiting = None
    flags: FlagsBody | None = None


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody:
    """What the AI SDK's chat transport posts, with `x-ag-messages-format: vercel`: the conversation as UI messages.

    A page may add ``agent``, ``session_id`` and ``flags``. Nothing else is read: the SDK sends all messages each
    time, so the chat's ``id``, ``trigger`` and ``messageId`` say nothing more.
    """

    messages: Annotated[list[TalkMessage], _MESSAGES]
    agent: Name | None = None
    session_id: Name | None = None
    on_busy: OnBusy | None = None
    wait: Waiting = None
    flags: FlagsBody | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeRequest:
    """An invoke, whatever surface it came by.

    ``payload`` is the input as it is, or None if ``message`` and ``history`` are given; ``place`` is its pointer in the
    body. ``is_ui`` asks for the AI SDK's messages, ``kind`` is the media type that a stream would have. ``headers``
    names, by the pointer of a field of the body, the header that was used instead.
    """

    agent: str
    payload: dict[str, Any] | None
    message: str
    history: tuple[Said, ...]
    session_id: str | None
    on_busy: OnBusy | None
    waits: bool
    flags: Flags
    is_ui: bool
    kind: str
    place: str
    headers: Places


def parse_request(named: str | None, body: Any, headers: Mapping[str, str]) -> InvokeRequest:
    """Read an invoke; ``named`` is the agent of the path, if it names one.

    Raises ``MissingField``, ``UnknownField`` or ``InvalidField`` with every fault.
    """
    is_ui = _header(headers, FORMAT).lower() == "vercel"
    content: InvokeBody | TurnBody | ChatBody
    if is_ui and isinstance(body, dict) and "messages" in body and "data" not in body:
        content = parsed(ChatBody, body)
    else:
        content = parsed(InvokeBody, body) if named is None else parsed(TurnBody, body)
    agent = content.agent or named
    if agent is None:
        raise MissingField("/agent: is missing.", param="/agent")
    if named is not None and agent != named:
        raise InvalidField(f"The path names {named!r}, the body {agent!r}; name one.", param="/agent")
    flags = content.flags or FlagsBody()
    in_headers = {"/flags/stream": ACCEPT} if flags.stream is None else {}
    in_headers |= {"/flags/force": CONTROL} if flags.force is None else {}
    in_headers |= {"/session_id": SESSION} if content.session_id is None else {}
    accepted = accepted_kind(_header(headers, ACCEPT))
    if isinstance(content, ChatBody):
        accepted = accepted or EVENTS  # the SDK reads nothing else, and its `fetch` accepts anything
        place, payload, (message, history) = "/messages", None, _split(content.messages, "/messages")
    else:
        place, payload, message, history = _inputs(content.data.inputs)
    return InvokeRequest(
        agent=agent,
        payload=payload,
        message=message,
        history=history,
        session_id=content.session_id or _header(headers, SESSION) or None,
        on_busy=content.on_busy,
        waits=bool(content.wait),
        flags=_flags(flags, accepted, headers),
        is_ui=is_ui,
        kind=EVENTS if is_ui else accepted if accepted and accepted != JSON else NDJSON,
        place=place,
        headers={pointer: f"headers.{name}" for pointer, name in in_headers.items()},
    )


def _flags(flags: FlagsBody, accepted: str | None, headers: Mapping[str, str]) -> Flags:
    stream = None if accepted is None else accepted != JSON
    trim = {"full": False, "last": True}.get(_header(headers, TRANSCRIPT).lower())
    force = {"force": True}.get(_header(headers, CONTROL).lower())
    return Flags(
        stream=stream if flags.stream is None else flags.stream,
        trim=trim if flags.trim is None else flags.trim,
        force=force if flags.force is None else flags.force,
    )


def accepted_kind(accept: str) -> str | None:
    """The form of ours with the greatest weight in the Accept header; None if it names none."""
    ours = {name: weight for name, weight in weights(accept).items() if weight and name in {JSON, *STREAMS}}
    return max(ours, key=ours.__getitem__) if ours else None


def _header(headers: Mapping[str, str], name: str) -> str:
    return headers.get(name, "").strip()


def _inputs(inputs: Inputs) -> tuple[str, dict[str, Any] | None, str, tuple[Said, ...]]:
    """The pointer of the input, and what it is. Raises unless there is exactly one."""
    named = [name for name in _INPUTS if getattr(inputs, name) is not None]
    if not named:
        raise MissingField("Give one of `messages`, `message` and `payload`.", param="/data/inputs")
    if len(named) > 1:
        faults = tuple(Fault(f"/data/inputs/{name}", "is one of several inputs") for name in named)
        raise InvalidField(f"Give one input; came {', '.join(named)}.", details=faults)
    place = f"/data/inputs/{named[0]}"
    if inputs.messages is None:
        return place, inputs.payload, inputs.message or "", ()
    message, history = _split(inputs.messages, place)
    return place, None, message, history


def _split(messages: Sequence[TalkMessage], place: str) -> tuple[str, tuple[Said, ...]]:
    """The user's last message, and the rest without the tools' results: the answers contain those."""
    asks = [index for index, each in enumerate(messages) if each.role == "user"]
    if not asks:
        raise InvalidField("One of the messages is the user's; it is what the agent answers.", param=place)
    others = (each for index, each in enumerate(messages) if index != asks[-1])
    return messages[asks[-1]].text, tuple(
        Said(each.role, each.text) for each in others if each.role != "tool" and each.text
    )
