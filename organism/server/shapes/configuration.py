"""The graph, the configuration in force, and the probes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.config.fields import Taint
from organism.config.settings import Limits, Retry
from organism.server.shapes.words import AgentName, Object


class Node(TypedDict):
    """Who writes or is written to."""

    name: AgentName
    kind: Literal["agent", "listener", "console", "system"]
    description: Annotated[str, Field(examples=["Greets whoever is named"])] | None
    payload_class: Annotated[str, Field(examples=["handlers.hello.Greeting"])] | None


class Edge(TypedDict):
    """Who may write to whom."""

    from_: Annotated[AgentName, Field(alias="from")]
    to: Annotated[AgentName, Field(examples=["shouter"])]


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

    name: AgentName
    payload_class: Annotated[str, Field(examples=["handlers.hello.Greeting"])]
    handler: Annotated[str, Field(examples=["handlers.hello.greet"])]
    description: Annotated[str, Field(examples=["Greets whoever is named"])]
    agent: bool
    peers: list[AgentName]
    prompt: Annotated[str, Field(description="Its text for `admin` alone, else `sha256:…`.", examples=["Greet."])]
    prompt_ref: Annotated[str, Field(examples=["greeter"])]
    model: Annotated[str, Field(examples=["default"])]
    tools: list[Annotated[str, Field(examples=["calculate"])]]
    budget: Object
    max_concurrent: Annotated[int, Field(examples=[5])]
    timeout_s: Annotated[float, Field(examples=[30.0])]
    max_payload_bytes: Annotated[int, Field(examples=[262144])]
    broadcast: bool
    blocking: bool
    confirm: bool
    approval: bool
    brings_outside_text: bool
    invoke: list[Literal["batch", "stream"]]
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
    models: Object
    embeddings: Object
    tools: Object
    fx: Object
    listeners: list[Section]


class Healthy(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class Ready(TypedDict):
    """It takes work."""

    status: Literal["running", "paused"]
