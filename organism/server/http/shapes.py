"""The shapes of the API: objects, lists, answers of acts, errors, what models cost, and the configuration in force."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from msgspec import Meta
from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.config.settings import Limits, Retry, Taint
from organism.model import words
from organism.views.approvals import Approval
from organism.views.dead_letters import DeadLetter, Indeterminate
from organism.views.foreign_tools import PinnedTool
from organism.views.library import LibraryIndex
from organism.views.organism import Agent
from organism.views.sessions import Session
from organism.views.threads import Message, Thread


class WaitingForPeople(TypedDict):
    """How much waits for a person."""

    approvals: words.Count
    dead_letters: words.Count
    indeterminate: words.Count
    foreign_tools: Annotated[words.Count, Field(description="Tools that their MCP servers have changed.")]


class Organism(TypedDict):
    """The organism as a whole."""

    name: Annotated[str, Field(examples=["hello-world"])]
    status: words.OrganismStatus
    uptime_seconds: words.Count
    agent_count: words.Count
    active_threads: words.Count
    total_messages: words.Count
    version: words.Version
    position: Annotated[words.Position, Field(description="The head of the log.")]
    waiting_for_people: WaitingForPeople


class ControlledAgent(Agent, kw_only=True):
    """The agent as it stands after the act, and where the act stands in the log."""

    position: words.Position


class ThreadWithMessages(Thread, kw_only=True):
    """A thread with its first 500 messages."""

    messages: list[Message]
    next: Annotated[words.Cursor | None, Meta(description="The `cursor` for `/threads/{id}/messages` to go on with.")]


class ForeignTool(PinnedTool, kw_only=True):
    """A tool of an MCP server: what was accepted of it, and what it is now."""

    description: Annotated[str | None, Meta(description="What its server says of it now; null if it is not known.")] = (
        None
    )
    parameters: Annotated[words.Object | None, Meta(description="And which arguments it says that it takes.")] = None


class Page(TypedDict):
    """What every list says besides its rows."""

    count: Annotated[words.Count, Field(description="How many are here.")]
    total: Annotated[words.Count, Field(description="How many there are.")]
    limit: Annotated[int, Field(ge=1, le=500, examples=[50])]
    offset: Annotated[int, Field(ge=0, description="How many come before these.", examples=[0])]
    next: Annotated[words.Cursor | None, Field(description="The `cursor` of the next page; null on the last.")]


class AgentList(Page):
    """The listeners, in the order of organism.yaml."""

    agents: list[Agent]


class ThreadList(Page):
    """Threads, newest activity first."""

    threads: list[Thread]


class MessageList(Page):
    """Messages, oldest first."""

    messages: list[Message]


class DeadLetterList(Page):
    """Open dead letters, newest first."""

    dead_letters: list[DeadLetter]


class ApprovalList(Page):
    """Approvals, oldest first."""

    approvals: list[Approval]


class ForeignToolList(Page):
    """The tools of MCP servers that were seen, by name."""

    foreign_tools: list[ForeignTool]


class IndeterminateList(Page):
    """Open questions, newest first."""

    indeterminate: list[Indeterminate]


class ChatAgentHead(TypedDict):
    """An agent to talk with."""

    name: words.AgentName
    description: Annotated[str, Field(examples=["Terse German, nothing added"])]
    model: Annotated[str | None, Field(examples=["llama-4-scout"])]
    tools: Annotated[list[str], Field(description="What it may call.", examples=[["calculator"]])]


class ChatAgentList(Page):
    """The agents to talk with."""

    agents: list[ChatAgentHead]


class ChatAgent(ChatAgentHead):
    """An agent's configuration; null is what the model, or its own code, decides."""

    peers: list[words.AgentName]
    system_prompt: Annotated[
        str | None, Field(description="Its text for administrators, else `sha256:…`.", examples=["Be exact."])
    ]
    max_tokens: Annotated[int | None, Field(examples=[512])]
    temperature: Annotated[float | None, Field(examples=[0.3])]
    rag_index: Annotated[str | None, Field(examples=["berlin-info"])]
    rag_top_k: Annotated[int | None, Field(examples=[5])]
    taint: Taint | None
    budget: words.Object
    version: words.Version


class SessionList(Page):
    """Sessions, newest activity first."""

    sessions: list[Session]


class SessionMessage(TypedDict):
    """A message of a session."""

    id: words.MessageId
    role: Literal["user", "assistant", "tool"]
    content: str
    created_at: words.Time
    compacted_at: Annotated[words.Time | None, Field(description="When a compaction summarised it.")]
    thread_id: Annotated[words.ThreadId, Field(description="That of its turn.")]
    tool_call_id: NotRequired[str]
    tool_name: NotRequired[str]
    input: NotRequired[Any]
    is_error: NotRequired[bool]
    stop_reason: NotRequired[
        Annotated[str, Field(description="Of the last one of a turn that died, or was withheld: why.")]
    ]
    erased: NotRequired[bool]


class SessionMessageList(Page):
    """Messages of a session, oldest first."""

    messages: list[SessionMessage]


class LibraryEmbedding(TypedDict):
    """How far an index is embedded."""

    index_id: Annotated[str, Field(examples=["berlin-info"])]
    embedding_model: Annotated[str, Field(examples=["default"])]
    doc_count: words.Count
    embedded: Annotated[words.Count, Field(description="How many of them have vectors; words find the others too.")]
    error: Annotated[str | None, Field(description="Why the last attempt failed; another one follows by itself.")]


class LibraryIndexList(Page):
    """The indices, oldest first."""

    indices: list[LibraryIndex]


class LibraryDocument(TypedDict):
    """A document of an index."""

    id: Annotated[str, Field(examples=["d1"])]
    text: Annotated[str, Field(examples=["Der Tiergarten ist der größte Park Berlins."])]
    metadata: words.Object


class LibraryDocumentList(Page):
    """Documents of an index, in the order in which their ids came first."""

    documents: list[LibraryDocument]


class Ingested(TypedDict):
    """What came into an index."""

    index_id: Annotated[str, Field(examples=["berlin-info"])]
    ingested: Annotated[words.Count, Field(description="How many documents the request had.")]
    doc_count: Annotated[words.Count, Field(description="How many the index has now.")]


class Deleted(TypedDict):
    """Whether there was anything to delete."""

    deleted: bool


class RetrievedDocument(LibraryDocument):
    """A document that was found."""

    score: Annotated[
        float, Field(description="The higher the better, among those of this answer alone; by `vector` it is a cosine.")
    ]


class Retrieved(TypedDict):
    """What was found, the best first."""

    results: list[RetrievedDocument]
    mode: Literal["vector", "keyword", "hybrid"]
    embedding_model: Annotated[str, Field(examples=["default"])]


class Why(TypedDict):
    """How a message came about: it, the one whose handling led to it, and so on; the injection comes last."""

    messages: list[Message]
    count: words.Count
    next: Annotated[words.MessageId | None, Field(description="Where the path goes on, if it is longer than 500.")]


class Actor(TypedDict):
    """Who caused it."""

    tenant: Annotated[str, Field(examples=["default"])]
    user: str | None
    request_id: Annotated[str, Field(examples=["req-5f2c9a01d7e84b36"])] | None
    principal: Annotated[str, Field(description="Who holds the token.", examples=["operator"])] | None


class Event(TypedDict):
    """One event of the log."""

    position: words.Position
    type: words.EventType
    at: words.Time
    thread_id: Annotated[words.ThreadId | None, Field(description="Null for what concerns the whole organism.")]
    cause: Annotated[words.MessageId | None, Field(description="The message whose handling led to it.")]
    correlation: Annotated[words.MessageId | None, Field(description="The message of the injection at the root.")]
    actor: Actor | None
    data: words.EventData
    content: NotRequired[Annotated[Any, Field(description="With `content=true`: its content.")]]


class EventList(TypedDict):
    """A page of the log."""

    events: list[Event]
    next: Annotated[words.Position | None, Field(description="The `after` of the next page; null at the end.")]


class Injected(TypedDict):
    """The message is on disk."""

    thread_id: words.ThreadId
    message_id: words.MessageId
    position: words.Position


class Reloaded(TypedDict):
    """What a reload changed: the names of listeners."""

    added: list[words.AgentName]
    removed: list[words.AgentName]
    updated: list[words.AgentName]
    position: words.Position


class StopBegun(TypedDict):
    """The graceful stop has begun."""

    status: Literal["stopping"]
    position: words.Position


class Ticket(TypedDict):
    """Opens `/ws?ticket=…`, once."""

    ticket: Annotated[str, Field(examples=["ticket_GyXq1b5T0dV8yQb"])]
    expires_in_seconds: Annotated[int, Field(examples=[30])]


class Fault(TypedDict):
    """One of several things that are wrong."""

    param: Annotated[str, Field(examples=["/payload/name"])]
    message: Annotated[str, Field(examples=["is missing"])]


class Refusal(TypedDict):
    """What was wrong."""

    type: words.ErrorType
    code: Annotated[str, Field(description="Stable; `GET /errors` explains each.", examples=["invalid_payload"])]
    message: Annotated[str, Field(examples=["/payload/name: is missing."])]
    param: Annotated[
        str | None,
        Field(description="Where: a JSON pointer into the body, `query.x` or `headers.x`.", examples=["/payload/name"]),
    ]
    details: NotRequired[Annotated[list[Fault], Field(description="Every fault, where there are several.")]]
    requested: NotRequired[Annotated[str, Field(description="What was requested and is not available.")]]
    supported: NotRequired[Annotated[list[str], Field(description="What is available instead.")]]
    request_id: Annotated[str, Field(description="Stands in the server's log, too.", examples=["req-5f2c9a01d7e84b36"])]


class ErrorAnswer(TypedDict):
    """The one shape of errors."""

    error: Refusal


class RpcRefusal(TypedDict):
    """An error of JSON-RPC."""

    code: Annotated[int, Field(description="-32700, -32600, -32603, or one of the protocol's.", examples=[-32600])]
    message: Annotated[str, Field(description="What went wrong.", examples=["missing_authorization: No token."])]
    data: NotRequired[Annotated[Any, Field(description="All of it, as `Refusal`, or as the protocol has it.")]]


class RpcError(TypedDict):
    """A refusal as JSON-RPC has it."""

    jsonrpc: Literal["2.0"]
    id: Annotated[str | int | None, Field(description="The request's, if that could be read.", examples=[1])]
    error: RpcRefusal


class ErrorCode(TypedDict):
    """What a code means and what to do."""

    code: Annotated[str, Field(examples=["not_found"])]
    type: words.ErrorType
    http_status: Annotated[int, Field(examples=[404])]
    title: Annotated[str, Field(examples=["Not found"])]
    description: Annotated[str, Field(examples=["There is nothing here by that name."])]
    remediation: Annotated[
        str, Field(examples=["Check the id or name; lists, such as `organism agents`, show what there is."])
    ]
    typical_param: str | None


class ErrorCodes(TypedDict):
    """Every code there is."""

    version: Annotated[int, Field(examples=[1])]
    count: words.Count
    entries: list[ErrorCode]


Money = Annotated[
    str, Field(description="Exact, as text.", pattern=r"^[0-9]+(\.[0-9]+)?$", examples=["0.0123"], max_length=64)
]
ServedBy = Annotated[
    str, Field(description="The provider that answered, whatever model was requested.", examples=["openai", "offline"])
]
ModelName = Annotated[str, Field(description="Its name in organism.yaml.", examples=["gpt-4.1-mini"])]


class ModelUsage(TypedDict):
    """What one model was called for."""

    model: ModelName
    served_by: ServedBy
    calls: words.Count
    input_tokens: words.Count
    output_tokens: words.Count
    tokens: words.Count
    cost_usd: Money


class Usage(TypedDict):
    """Calls of models: how many, what they used and cost, and how long they took."""

    calls: words.Count
    failed_calls: Annotated[words.Count, Field(description="Those that gave no answer, or died with the process.")]
    input_tokens: words.Count
    output_tokens: words.Count
    tokens: Annotated[words.Count, Field(description="Both together.")]
    cost_usd: Money
    cost_eur: Annotated[Money | None, Field(description="By `fx.eur_per_usd` of organism.yaml; null without it.")]
    model_seconds: Annotated[float, Field(ge=0, examples=[1.5])]
    last_called: words.Time | None
    models: Annotated[list[ModelUsage], Field(description="The same by the model that answered.")]


class UsageOfAgent(Usage):
    """An agent's calls."""

    agent: words.AgentName


class UsageOfThread(Usage):
    """A thread's calls."""

    thread_id: words.ThreadId


class UsageOfDay(Usage):
    """The calls of one day."""

    day: Annotated[str, Field(description="Of UTC.", pattern=r"^\d{4,}-\d\d-\d\d$", examples=["2026-01-15"])]


class UsageOfAll(TypedDict):
    """All calls since the log began."""

    total: Usage
    agents: Annotated[list[UsageOfAgent], Field(description="By name, the first 500.")]
    days: Annotated[list[UsageOfDay], Field(description="The newest 31 with calls, newest first.")]


class Bucket(Usage):
    """The calls of an hour or a day."""

    start: Annotated[words.Time, Field(description="Of the hour or day.")]


class BilledTotal(TypedDict):
    """The sum of the buckets."""

    calls: words.Count
    failed_calls: words.Count
    input_tokens: words.Count
    output_tokens: words.Count
    tokens: words.Count
    cost_usd: Money
    cost_eur: Money | None


class Billed(TypedDict):
    """What models cost in a span."""

    from_: Annotated[words.Time, Field(alias="from")]
    to: words.Time
    granularity: Literal["hour", "day"]
    total: BilledTotal
    buckets: Annotated[list[Bucket], Field(description="The oldest first; those without a call are left out.")]


class ConfigValue(TypedDict):
    """A key of the tenant's configuration."""

    value: Annotated[Any, Field(examples=["auto"])]
    source: Annotated[
        Literal["process", "yaml", "db"],
        Field(description="Who says so: the program, the operator's file, or the tenant by `PUT`."),
    ]
    writable: Annotated[bool, Field(description="Whether `PUT` takes it.")]


ConfigValues = Annotated[dict[str, ConfigValue], Meta(title="ConfigValues")]
"""The tenant's configuration, by key."""


class Node(TypedDict):
    """Who writes or is written to."""

    name: words.AgentName
    kind: Literal["agent", "listener", "console", "system"]
    description: Annotated[str, Field(examples=["Greets whoever is named"])] | None
    payload_class: Annotated[str, Field(examples=["handlers.hello.Greeting"])] | None


class Edge(TypedDict):
    """Who may write to whom."""

    from_: Annotated[words.AgentName, Field(alias="from")]
    to: Annotated[words.AgentName, Field(examples=["shouter"])]


class Graph(TypedDict):
    """Who may write to whom."""

    nodes: list[Node]
    edges: list[Edge]


class OrganismSection(TypedDict):
    """The section `organism`."""

    name: Annotated[str, Field(examples=["hello-world"])]
    imports: Annotated[list[str], Field(examples=[["handlers"]])]
    charter: Annotated[
        str | bool,
        Field(description="The file that every prompt begins with; true: the usual one, false: none.", examples=[True]),
    ]


class Section(TypedDict, total=False):
    """A listener's section of organism.yaml, or the file of a conversational agent: the keys that stand there."""

    name: words.AgentName
    payload_class: Annotated[str, Field(examples=["handlers.hello.Greeting"])]
    handler: Annotated[str, Field(examples=["handlers.hello.greet"])]
    description: Annotated[str, Field(examples=["Greets whoever is named"])]
    agent: bool
    peers: list[words.AgentName]
    prompt: Annotated[str, Field(description="Its text for `admin` alone, else `sha256:…`.", examples=["Greet."])]
    prompt_ref: Annotated[str, Field(examples=["greeter"])]
    model: Annotated[str, Field(examples=["default"])]
    tools: list[Annotated[str, Field(examples=["calculate"])]]
    budget: words.Object
    max_concurrent: Annotated[int, Field(examples=[5])]
    timeout_s: Annotated[float, Field(examples=[30.0])]
    max_payload_bytes: Annotated[int, Field(examples=[262144])]
    broadcast: bool
    blocking: bool
    confirm: bool
    approval: bool
    brings_outside_text: bool
    invoke: list[Literal["batch", "stream", "force"]]
    system_prompt: Annotated[str, Field(description="As `prompt`, in an agent's file.", examples=["Be exact."])]
    max_tokens: Annotated[int, Field(examples=[512])]
    temperature: Annotated[float, Field(examples=[0.3])]
    rag_index: Annotated[str, Field(examples=["berlin-info"])]
    rag_top_k: Annotated[int, Field(examples=[5])]
    taint: Taint


class Configuration(TypedDict):
    """organism.yaml as it is in force, defaults filled in, without anything secret."""

    organism: OrganismSection
    limits: Limits
    retry: Retry
    models: words.Object
    embeddings: words.Object
    tools: words.Object
    fx: words.Object
    listeners: list[Section]


class Healthy(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class Ready(TypedDict):
    """It takes work."""

    status: Literal["running", "paused"]
