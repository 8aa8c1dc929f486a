"""What models cost, as it is told."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.server.shapes.words import AgentName, Count, ThreadId, Time, shape

Money = Annotated[
    str, Field(description="Exact, as text.", pattern=r"^[0-9]+(\.[0-9]+)?$", examples=["0.0123"], max_length=64)
]
ServedBy = Annotated[
    str, Field(description="The provider that answered, whatever model was asked for.", examples=["openai", "offline"])
]
ModelName = Annotated[str, Field(description="Its name in organism.yaml.", examples=["gpt-4.1-mini"])]


@shape
class ModelUsage(TypedDict):
    """What one model was called for."""

    model: ModelName
    served_by: ServedBy
    calls: Count
    input_tokens: Count
    output_tokens: Count
    tokens: Count
    cost_usd: Money


@shape
class Usage(TypedDict):
    """Calls of models: how many, what they used and cost, and how long they took."""

    calls: Count
    failed_calls: Annotated[Count, Field(description="Those that gave no answer, or died with the process.")]
    input_tokens: Count
    output_tokens: Count
    tokens: Annotated[Count, Field(description="Both together.")]
    cost_usd: Money
    cost_eur: Annotated[Money | None, Field(description="By `fx.eur_per_usd` of organism.yaml; null without it.")]
    model_seconds: Annotated[float, Field(ge=0, examples=[1.5])]
    last_called: Time | None
    models: Annotated[list[ModelUsage], Field(description="The same by the model that answered.")]


@shape
class UsageOfAgent(Usage):
    """An agent's calls."""

    agent: AgentName


@shape
class UsageOfThread(Usage):
    """A thread's calls."""

    thread_id: ThreadId


@shape
class UsageOfDay(Usage):
    """The calls of one day."""

    day: Annotated[str, Field(description="Of UTC.", pattern=r"^\d{4,}-\d\d-\d\d$", examples=["2026-01-15"])]


@shape
class UsageOfAll(TypedDict):
    """All calls since the log began."""

    total: Usage
    agents: Annotated[list[UsageOfAgent], Field(description="By name, the first 500.")]
    days: Annotated[list[UsageOfDay], Field(description="The newest 31 with calls, newest first.")]
