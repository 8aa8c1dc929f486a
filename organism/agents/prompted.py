"""A listener with a prompt of AgentStack (``prompt_ref: A2@v1``) and no handler: one call, and its checked answer.

The fields of its payload are the input of the prompt. What the model gives is parsed and validated as the prompt says;
the answer's text is the object as JSON. What does not fit is told as the run's error, and makes the message a dead
letter, which name every field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from organism.agents.factory import AgentFactory, check_payload
from organism.agents.prompt import AgentPromptValidationError
from organism.codec import Codec, Mended, repair_json
from organism.config.prompts import PromptConfig
from organism.config.settings import Handler, Listener
from organism.model.agent import Answer
from organism.model.completion import CompleteError, CompleteOptions
from organism.model.handler import HandlerMetadata, HandlerResponse


def prompted_turn_of(listener: Listener, config: PromptConfig, codec: Codec) -> Handler:
    """The handler of a listener whose ``prompt_ref`` names this prompt."""
    prompt = AgentFactory.prompt_of(config)
    fields: Callable[[object], Any] = codec.schema(listener.payload_class.__name__).to_json
    options: CompleteOptions = {
        "model": listener.model or prompt.model_name,
        "temperature": prompt.temperature,
        "max_tokens": prompt.max_output_tokens,
    }

    async def turn(payload: object, metadata: HandlerMetadata) -> HandlerResponse:
        given = fields(payload)
        check_payload(config, given)
        messages, schema = prompt.compose(given)
        asked: CompleteOptions = {**options, "response_format": schema}
        try:
            completion = await metadata.complete(messages, **asked)
            await metadata.emit("usage", completion.used)
            answered = prompt.parse_and_validate(completion)
        except CompleteError as error:
            await metadata.emit("error", {"code": error.code, "message": error.message})
            raise
        except AgentPromptValidationError as error:
            await metadata.emit("error", {"code": "upstream_error", "message": str(error)})
            raise
        found, notes = repair_json(answered)
        text = orjson.dumps(found).decode()
        await metadata.emit("message", {"text": text})
        await metadata.emit("done", {"stopReason": "stop"})
        answer = Answer(text=text)
        return HandlerResponse.respond(Mended(answer, notes) if notes else answer)

    return turn
