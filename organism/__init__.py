"""Organism: an event-sourced society of agents that people can watch and steer live.

The public API for authors of handlers is ``__all__``. Behind it, each floor imports only downward: ``cli`` and
``testing``, ``server``, ``bootstrap``, ``sessions``, ``tenants``, ``agents``, ``audit``, ``tools``, ``tracing`` and
``watchdog``, ``rag``, ``pump``, ``views``, ``log``, ``sqlite``, ``codec`` and ``config``, ``model``, ``events``,
``errors``. ``docs/architecture.md`` follows a message through the code.
"""

from organism.agents.agent_factory import AgentFactory, UnknownAgentConfigError
from organism.agents.agent_prompt import AgentPrompt, AgentPromptInputError, AgentPromptValidationError
from organism.model.agent import Answer, Prompt
from organism.model.completion import CompleteError, Completion, ToolCall
from organism.model.handler import (
    Approval,
    AskError,
    EffectError,
    EffectFailed,
    EffectUnknown,
    HandlerMetadata,
    HandlerResponse,
    NonRetryable,
    SystemError,
    TodoComplete,
    TodoRegistered,
    TodoUntil,
)
from organism.model.json_value import Json, JsonObject
from organism.model.tool import ConfirmRequired, ToolError, ToolSpec

__all__ = [
    "AgentFactory",
    "AgentPrompt",
    "AgentPromptInputError",
    "AgentPromptValidationError",
    "Answer",
    "Approval",
    "AskError",
    "CompleteError",
    "Completion",
    "ConfirmRequired",
    "EffectError",
    "EffectFailed",
    "EffectUnknown",
    "HandlerMetadata",
    "HandlerResponse",
    "Json",
    "JsonObject",
    "NonRetryable",
    "Prompt",
    "SystemError",
    "TodoComplete",
    "TodoRegistered",
    "TodoUntil",
    "ToolCall",
    "ToolError",
    "ToolSpec",
    "UnknownAgentConfigError",
]
