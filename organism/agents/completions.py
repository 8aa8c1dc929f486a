"""Chat completions: the turn of a model for a caller that brings its own conversation, and functions of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final

import orjson

from organism.agents.conversation import Conversation
from organism.agents.functions import functions_of
from organism.agents.providers.messages import SYSTEM_ROLES, text_of
from organism.agents.turn import Agent, Turn
from organism.codec import Codec, RepairedPayload, repair_json
from organism.config.settings import AgentSettings, Limits, Listener
from organism.model.completion import ChatCompletion, ChatCompletionRequest, CompleteError
from organism.model.handler import HandlerMetadata, HandlerResponse, NonRetryable
from organism.model.ids import SYSTEM_CHAT
from organism.model.tool import ToolSpec

MOST_REQUEST_BYTES: Final = 8 << 20
"""Of a conversation with its functions: more than any model reads, and less than an XML parser takes as one text."""

OWN_ROLES: Final = frozenset({*SYSTEM_ROLES, "user", "assistant"})


def _parsed(request: str) -> tuple[dict[str, Any], list[ToolSpec]]:
    """The request, and the caller's own functions. Raises ``NonRetryable`` for one that the route would refuse."""
    try:
        asked: dict[str, Any] = orjson.loads(request)
        return {**asked, "messages": list(asked["messages"])}, [ToolSpec(**tool) for tool in asked.get("tools", ())]
    except (ValueError, TypeError, KeyError) as error:
        raise NonRetryable("This is no request that /v1/chat/completions would send; send yours there.") from error


def _holds_results(payload: ChatCompletionRequest) -> bool:
    """Whether the conversation holds text of others than the caller and the model, as results of the caller's tools."""
    try:
        asked, _ = _parsed(payload.request)
    except NonRetryable:  # it is never handled
        return False
    return any(not isinstance(each, dict) or each.get("role") not in OWN_ROLES for each in asked["messages"])


def chat_listener(limits: Limits, listeners: Mapping[str, Listener], codec: Codec, charter: str) -> Listener:
    """The listener of ``/v1/chat/completions``. A failed call is its answer: its caller, who waits, calls again."""
    listener = Listener(
        name=SYSTEM_CHAT,
        description="Calls a model for a caller that brings its own conversation",
        is_agent=True,
        any_peer=True,
        payload_class=ChatCompletionRequest,
        payload_class_path=f"{ChatCompletionRequest.__module__}.{ChatCompletionRequest.__qualname__}",
        accepts=frozenset({ChatCompletionRequest}),
        max_concurrent=limits.max_concurrent_handlers,
        timeout_s=limits.handler_timeout_s,
        max_payload_bytes=MOST_REQUEST_BYTES,
        section={},
        version="",
        quotes=_holds_results,
    )

    async def chat(payload: ChatCompletionRequest, metadata: HandlerMetadata) -> HandlerResponse | None:
        asked, own = _parsed(payload.request)
        agent = AgentSettings(temperature=asked.get("temperature"), max_tokens=asked.get("max_tokens"))
        caller = replace(listener, model=payload.model, tools=tuple(payload.server_tools), agent=agent)
        functions = functions_of(caller, listeners, codec).with_callers(own)
        messages = asked["messages"]
        leading = list(takewhile(lambda message: message["role"] in SYSTEM_ROLES, messages))
        written = [text_of(message["content"]) for message in leading]
        conversation = Conversation([charter if payload.has_charter else "", *written], metadata.call_id)
        conversation.take(messages[len(leading) :])
        form, parameters = asked.get("response_format"), asked.get("parameters", {})
        turn = Turn(Agent(caller, functions, codec, "", response_format=form, parameters=parameters), metadata)
        try:
            text, notes = repair_json(await turn.go_on(conversation))
        except CompleteError:  # the turn has shown why
            await metadata.emit("done", {"stopReason": "error"})
            return None
        answer = ChatCompletion(text)
        return HandlerResponse.respond(RepairedPayload(answer, notes) if notes else answer)

    return replace(listener, handler=chat)
