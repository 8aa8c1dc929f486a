"""The turn loop, which runs each listener without a handler; one with an AgentStack prompt makes a single call.

A turn is one handling. The model gets the instructions and the message and is offered the agent's functions; its calls
become asks of the listeners, round by round, until it answers in words. Everything is a step, so after a restart the
turn continues where it stood: no model is called again for an answer that is recorded, no tool for its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from organism.agents.asking import Replies, Result, prepared_all, results
from organism.agents.conversation import Conversation
from organism.agents.factory import AgentFactory, check_payload
from organism.agents.functions import functions_of
from organism.agents.prompt import AgentPromptValidationError
from organism.agents.tool_calls import Asked, CallIds, CallReader, Outside, Spoken, carried_text
from organism.codec import Codec, Mended, repair_json
from organism.config.prompts import PromptConfig
from organism.config.settings import Handler, Listener
from organism.model.agent import Answer, Prompt
from organism.model.completion import CompleteError, CompleteOptions, Completion
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.ids import CONSOLE, SYSTEM_TODO
from organism.model.run import StopReason

MAX_TOOL_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class Agent:
    listener: Listener
    codec: Codec
    charter: str
    reader: CallReader
    replies: Replies

    @property
    def options(self) -> CompleteOptions:
        options: CompleteOptions = {"tools": self.reader.functions.specs}
        if self.listener.model:
            options["model"] = self.listener.model
        described = self.listener.agent
        if described is not None and described.temperature is not None:
            options["temperature"] = described.temperature
        if described is not None and described.max_tokens is not None:
            options["max_tokens"] = described.max_tokens
        return options

    def text_of(self, payload: object, sender: str) -> str:
        """The message in words: a prompt's own, of any other payload its JSON.

        What others say was said before is part of what they say; only the outside remembers for the agent.
        """
        if isinstance(payload, Prompt) and (sender == CONSOLE or not payload.history):
            return payload.message
        return self.codec.json(payload).decode()


def turn_of(listener: Listener, listeners: Mapping[str, Listener], codec: Codec, charter: str) -> Handler:
    """The handler of a listener that has none: each message is a turn of its model."""
    reader = CallReader(functions_of(listener, listeners, codec), codec)
    agent = Agent(listener, codec, charter, reader, Replies())

    async def turn(payload: object, metadata: HandlerMetadata) -> HandlerResponse:
        return await Turn(agent, metadata).run(payload)

    return turn


class Turn:
    """One turn. ``said`` is the last text of the model so far."""

    def __init__(self, agent: Agent, metadata: HandlerMetadata) -> None:
        self._agent = agent
        self._metadata = metadata
        self._outside = Outside()
        self._ids = CallIds()
        self._conversation: Conversation
        self._has_called = False
        self.said = ""

    async def run(self, payload: object) -> HandlerResponse:
        """Until the model answers in words, or must not go on. Raises ``CompleteError`` where it gave no answer."""
        self._conversation = await self._begin(payload)
        try:
            reason = await self._rounds()
        except CompleteError as error:
            if error.code != "budget_exhausted" or not self._has_called:
                await self._metadata.emit("error", {"code": error.code, "message": error.message})
            if error.code != "budget_exhausted":
                raise
            reason = "budget"
            await self._stop_short(error)
        await self._metadata.emit("done", {"stopReason": reason})
        return _answered(*repair_json(self.said))

    async def _stop_short(self, error: CompleteError) -> None:
        """Say in words that the budget ended the turn; what was said before stands."""
        explained = f"Stopped before the answer was finished: {error.message}"
        if self._has_called:
            await self._metadata.emit("message", {"text": explained})
        self.said = f"{self.said}\n\n{explained}" if self.said else explained

    async def _begin(self, payload: object) -> Conversation:
        agent, metadata = self._agent, self._metadata
        peers = metadata.usage_instructions
        instructions = (agent.charter, agent.listener.prompt or "", peers, await self._nudge())
        conversation = Conversation(instructions, metadata.thread_id)
        sender = metadata.from_id
        if isinstance(payload, Prompt) and sender == CONSOLE:
            conversation.remember(payload.history)
        text = agent.text_of(payload, sender)
        if sender != CONSOLE:
            self._outside.add(text)
        conversation.ask(text, None if sender == CONSOLE else sender)
        return conversation

    async def _nudge(self) -> str:
        """Reminders whose message has passed. They change while time passes, so they are recorded."""
        if SYSTEM_TODO not in self._agent.listener.peers:
            return ""

        async def nudge(_key: str) -> str:
            return self._metadata.todo_nudge

        found: str = await self._metadata.effect("todo_nudge", nudge, kind="pure")
        return found

    async def _rounds(self) -> StopReason:
        for number in range(MAX_TOOL_ROUNDS + 1):
            completion = await self._complete(number)
            spoken = self._agent.reader.read(completion, self._outside, self._ids, number)
            self.said = spoken.text or self.said
            if not spoken.asked:
                return _reason(completion)
            if number < MAX_TOOL_ROUNDS:
                await self._ask_all(spoken)
        return "tool_rounds"

    async def _complete(self, number: int) -> Completion:
        options = self._agent.options
        options["block"] = f"say-{number + 1}"
        completion = await self._metadata.complete(self._conversation.messages, **options)
        self._has_called = True
        await self._metadata.emit("usage", completion.used)
        return completion

    async def _ask_all(self, spoken: Spoken) -> None:
        self._conversation.say(carried_text(spoken.text), [each.call for each in spoken.asked])
        for asked in spoken.asked:
            await self._metadata.emit("tool_call", _call_entry(asked))
        ready = prepared_all(spoken.asked)
        for asked, result in zip(spoken.asked, await results(self._metadata, ready, self._agent.replies), strict=True):
            await self._tell(asked, result)

    async def _tell(self, asked: Asked, result: Result) -> None:
        call = asked.call
        self._outside.add(result.output)
        self._conversation.answer(call, result.output)
        entry = {"id": call.id, "output": result.output, "isError": result.is_error}
        await self._metadata.emit("tool_result", entry)


def _reason(completion: Completion) -> StopReason:
    if completion.finish == "content_filter":
        raise CompleteError("upstream_error", "The model's provider withheld the rest of the answer (content_filter).")
    return "length" if completion.finish == "length" else "stop"


def _call_entry(asked: Asked) -> dict[str, Any]:
    call = asked.call
    entry = {"id": call.id, "name": asked.shown, "input": call.input or {}}
    return entry if call.input is not None else {**entry, "rawInput": call.raw or ""}


def _answered(text: str, notes: tuple[str, ...]) -> HandlerResponse:
    answer = Answer(text=text)
    return HandlerResponse.respond(Mended(answer, notes) if notes else answer)


def prompted_turn_of(listener: Listener, config: PromptConfig, codec: Codec) -> Handler:
    """The handler of a listener whose ``prompt_ref`` names this prompt: one call, and its checked answer.

    The payload's fields are the input of the prompt, the answer's text is the object as JSON. An answer that does not
    fit is the run's error and a dead letter, both naming every field.
    """
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
        return _answered(text, notes)

    return turn
