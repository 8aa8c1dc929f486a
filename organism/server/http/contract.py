"""What a route takes, gives and may refuse: a line of the route table, of which ``documents`` makes OpenAPI."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypedDict, get_args, get_origin

from msgspec import Meta

from organism.errors import (
    AlreadyResolved,
    BudgetExhausted,
    ContextLengthExceeded,
    HandlingFailed,
    InvalidField,
    InvalidPayload,
    LeakRefused,
    MailboxFull,
    ModelNotInAllowlist,
    NotFound,
    OrganismError,
    PayloadTooLarge,
    RateLimitExceeded,
    RecursionDepthExceeded,
    StalePosition,
    ThreadKilled,
    Upstream,
    UpstreamRefused,
    UpstreamTimeout,
)
from organism.model import words
from organism.server.json import microseconds, whole_number
from organism.views.views import MOST_PAYLOAD_BYTES

MOST_NAMES: Final = 1000
MOST_NAME_CHARS: Final = 200
"""Of a list of names, in a query or a body."""
JSON: Final = "application/json"
XML: Final = "application/xml"


@dataclass(frozen=True, slots=True)
class Gives:
    """One form in which an answer may come: a shape, ``str`` for text, or None for no body at all."""

    shape: Any
    status: int = 200
    kind: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A route's promise.

    ``query`` names parameters of ``QUERY``, or ``narrow`` says more; those that ``requires`` names must be there.
    ``headers`` names those of ``HEADERS``. ``takes`` is the record of its JSON body; or the body is a file of one of
    the types ``takes_files``. ``refuses`` are the errors of this route alone. ``is_tagged``: it gives an ETag.
    """

    gives: tuple[Gives, ...]
    query: tuple[str, ...] = ()
    narrow: Mapping[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    takes: Any = None
    takes_xml: bool = False
    takes_files: Collection[str] = ()
    refuses: tuple[type[OrganismError], ...] = ()
    is_tagged: bool = False

    def parameters(self) -> Mapping[str, Any]:
        """The query's parameters with their types. Raises ``LookupError`` for one that is described nowhere."""
        return {name: self.narrow.get(name) or QUERY[name] for name in self.query}


class Injected(TypedDict):
    """The message is on disk."""

    thread_id: words.ThreadId
    message_id: words.MessageId
    position: words.Position


def gives(shape: Any, *more: Gives, status: int = 200) -> tuple[Gives, ...]:
    """JSON of a shape, and other forms that the answer may come in."""
    return (Gives(shape, status), *more)


def _text(description: str, example: str | None = None, **more: Any) -> Any:
    return Annotated[str, Meta(description=description, examples=None if example is None else [example], **more)]


PayloadBytes = Annotated[
    int,
    Meta(
        ge=0,
        le=MOST_PAYLOAD_BYTES,
        description="Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`.",
        examples=[4096],
    ),
]
QUERY: Final[Mapping[str, Any]] = {
    "limit": Annotated[int, Meta(ge=1, le=500, description="How many at most.", examples=[50])],
    "offset": Annotated[int, Meta(ge=0, le=1 << 40, description="How many to pass over.", examples=[0])],
    "cursor": _text("`next` of the page before, of this list and filter.", min_length=1),
    "status": _text("Only what stands so.", min_length=1),
    "at": Annotated[
        words.Position | words.Time, Meta(description="As it stood at this position, or the last one of this time.")
    ],
    "agent": Annotated[words.AgentName, Meta(description="Only what this one takes part in, sent or got.")],
    "session": _text("Only the threads of this session.", min_length=1),
    "thread_id": _text("Only what belongs to this thread.", min_length=1),
    "since": Annotated[words.Time, Meta(description="Only what was sent, or last active, at this time or later.")],
    "waiting": Annotated[bool, Meta(description="Only what waits for a person; `false`: only what does not.")],
    "cause": Annotated[words.MessageId, Meta(description="Only messages that this one's handling sent.")],
    "q": _text("Only what has this text in its payload.", "Dan", min_length=1),
    "handlings": Annotated[bool, Meta(description="With what has become of each message: the attempts to handle it.")],
    "xml": Annotated[bool, Meta(description="With the recorded envelopes.")],
    "payloads": PayloadBytes,
    "after": Annotated[words.Position, Meta(description="What follows this position.")],
    "until": Annotated[words.Position, Meta(description="Up to this position; by default to the head.")],
    "thread": _text("Only events of this thread.", min_length=1),
    "type": Annotated[words.EventType, Meta(description="Only events of this type.")],
    "content": Annotated[bool, Meta(description="With the content that is stored apart from the events.")],
    "format": Annotated[Literal["json", "mermaid"], Meta(description="As data, or as the text of a flowchart.")],
    "to": Annotated[words.AgentName, Meta(description="The receiver; with an XML body alone, where it must be there.")],
    "wait": Annotated[
        float, Meta(gt=0, le=60, description="Seconds to wait for the thread's end; with an XML body.", examples=[10])
    ],
    "log": _text("The timeline of `since`, as `connected` named it.", min_length=1),
    "threads": Annotated[list[str], Meta(min_length=1, description="Only these threads, separated by commas.")],
    "agents": Annotated[
        list[words.AgentName], Meta(min_length=1, description="Only these agents, separated by commas.")
    ],
}
"""Every query parameter must be declared here. A contract names those that its route takes."""


def read_parameter(kind: Any, text: str, name: str) -> Any:
    """The value of a query parameter of this kind.

    That is a whole number, yes or no, names with commas, one of some words, a time (µs) or text.

    Raises ``InvalidField``.
    """
    place = f"query.{name}"
    kind, metas = (get_args(kind)[0], kind.__metadata__) if get_origin(kind) is Annotated else (kind, ())
    extra = {key: value for meta in metas for key, value in (meta.extra_json_schema or {}).items()}
    named = get_args(kind) if get_origin(kind) is Literal else ("true", "false") if kind is bool else extra.get("enum")
    if named is not None and text not in named:
        raise InvalidField(f"`{name}` is one of {', '.join(named)}; came {text[:40]!r}.", param=place)
    if get_origin(kind) is list:
        most = min((meta.max_length for meta in metas if meta.max_length is not None), default=MOST_NAMES)
        names = [part for part in text.split(",") if part]
        if not 1 <= len(names) <= most or any(len(each) > MOST_NAME_CHARS for each in names):
            raise InvalidField(
                f"`{name}` lists 1 to {most} names of at most {MOST_NAME_CHARS} characters.", param=place
            )
        return [read_parameter(get_args(kind)[0], each, name) for each in names]
    if kind is int:
        least = max(meta.ge for meta in metas if meta.ge is not None)
        most = min(meta.le for meta in metas if meta.le is not None)
        return whole_number(text, place, least, most)
    if kind is bool:
        return text == "true"
    if kind is str:
        _check_length(text, metas, name)
    return microseconds(text, place) if extra.get("format") == "date-time" else text


def _check_length(text: str, metas: Sequence[Meta], name: str) -> None:
    least = max((meta.min_length for meta in metas if meta.min_length is not None), default=0)
    most = min((meta.max_length for meta in metas if meta.max_length is not None), default=len(text))
    if not least <= len(text) <= most:
        raise InvalidField(f"`{name}` has {least} to {most} characters; came {len(text)}.", param=f"query.{name}")


HEADERS: Final[Mapping[str, Any]] = {
    "Idempotency-Key": _text(
        "The same key and body get the first answer again, byte for byte, for 24 hours.",
        "order-17",
        pattern=r"^[\x21-\x7e]{1,255}$",
    ),
    "If-Match": _text(
        "The thread's ETag: if it has moved on since, 409 `stale_position`, and nothing is done.",
        '"3"',
        pattern=r'^(\*|(W/)?"?[0-9]{1,19}"?)$',
    ),
    "If-None-Match": _text("An ETag; while it is still that, the answer is 304.", '"3"'),
    "SPASS-Caller-Depth": _text(
        "How many runs of agents the caller lies in: three are too deep for another model's call.",
        "1",
        pattern=r"^[0-9]{1,7}$",
    ),
    "SPASS-Parent-Request-Id": _text(
        "The request in which this one is made; it is stored with the message.",
        "req-17",
        pattern=r"^[\x21-\x7e]{1,255}$",
    ),
    "SPASS-User-Id": Annotated[
        str,
        Meta(
            description="The user of the tenant for whom this is. A token of a tenant's administrator reads without.",
            pattern=r"^[A-Za-z0-9._@-]{1,128}$",
            examples=["dan"],
        ),
    ],
    "SPASS-Request-Id": _text(
        "The caller's own id of this request (or `X-Request-Id`); the answer has it, else one that is made.",
        "req-17",
        pattern=r"^[\x21-\x7e]{1,255}$",
    ),
    "SPASS-Augment": _text(
        "What the organism leaves out: `server-tools=off`, `system-prompt=off`, `memory=off`, separated by commas.",
        "server-tools=off",
    ),
    "SPASS-Wait": _text(
        "`true`: wait until what is paused is resumed; else the answer is 503 `paused` at once.",
        "true",
        pattern=r"^(true|false)$",
    ),
    "x-ag-messages-transcript": _text("`last`: only the last unit of the turn; `full`, or another value: all of it."),
    "x-ag-session-control": _text("`force`: take over the turn that runs."),
    "x-ag-messages-format": _text("`vercel`: as the AI SDK's UI messages; `agenta`, or another value: as they are."),
    "x-ag-workflow-embeds": _text("`resolve`, which is also the default."),
    "x-ag-session-id": _text("The session; that of the body wins."),
    "Last-Event-ID": _text(
        "The `id` of the last event that the client has; of `GET /events` it goes before `since`.", "3"
    ),
}
"""Every request header that a route looks at, besides those of authentication and of content and its forms."""

ACT: Final = ("Idempotency-Key",)
ACT_ON_THREAD: Final = ("Idempotency-Key", "If-Match")
ACT_REFUSED: Final = (NotFound,)
THREAD_REFUSED: Final = (NotFound, StalePosition, ThreadKilled)
QUESTION_REFUSED: Final = (*THREAD_REFUSED, AlreadyResolved)
SENDING_REFUSED: Final = (*THREAD_REFUSED, InvalidPayload, PayloadTooLarge, MailboxFull)
"""What acts refuse: any, one on a thread, one that answers a question, one that sends a payload."""
RUN_REFUSED: Final = (
    *(ModelNotInAllowlist, LeakRefused, RecursionDepthExceeded, ContextLengthExceeded, UpstreamRefused),
    *(RateLimitExceeded, BudgetExhausted, Upstream, UpstreamTimeout, HandlingFailed),
)
"""What a run may end with before its first word."""
EMBEDDING_REFUSED: Final = (ContextLengthExceeded, UpstreamRefused, RateLimitExceeded, BudgetExhausted, Upstream)
"""What a call of an embedding model may end with."""
