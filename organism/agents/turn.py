"""The turn loop, which runs listeners without a handler. All it does are steps, so a restart continues it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, NamedTuple

import orjson

from organism.agents.agent_factory import AgentFactory, check_payload
from organism.agents.agent_prompt import AgentPromptValidationError
from organism.agents.conversation import Conversation, Passage
from organism.agents.functions import Function, Functions, functions_of, lookups_of
from organism.agents.providers.messages import tokens_of, tokens_of_message, tokens_of_tools
from organism.agents.tool_calls import CallReader, ParsedAnswer, RequestedCall, xml_safe_text
from organism.agents.window import fitted
from organism.codec import Codec, PayloadSchema, RepairedPayload, repair_json
from organism.config.prompts import PromptConfig
from organism.config.settings import INDEX_TOOL, INDICES_TOOL, Handler, Listener
from organism.errors import InvalidPayload, MessageTooLarge
from organism.model.agent import Answer, Prompt
from organism.model.completion import WITHHELD, CompleteError, CompleteOptions, Completion
from organism.model.handler import AskError, HandlerMetadata, HandlerResponse
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.ids import CONSOLE, SYSTEM_TODO
from organism.model.run import PASSAGES, StopReason
from organism.model.tool import ToolError, ToolSpec

MAX_TOOL_ROUNDS: Final = 8
MOST_CALLS: Final = 32
"""Per round; further calls get an error as their result."""
OF_FUNCTIONS: Final = frozenset({"tool_choice", "parallel_tool_calls"})
"""The parameters that servers refuse where no function is offered."""
LONGEST_QUERY: Final = 2_000
"""How many characters of a prompt are used to search for passages."""
ANSWER_TOKENS: Final = 1024
"""How many tokens of a model's context are left for an answer without a set length."""
ANSWER_SHARE: Final = 8
"""At most one part in this many of the context is left for an answer."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A listener that a model runs."""

    listener: Listener
    functions: Functions
    codec: Codec
    charter: str
    notes: tuple[str, ...] = ()
    """What the model and the reader of its answer learn about it."""
    response_format: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    lookups: Mapping[str, Function] = field(default_factory=dict)
    """The tools that its turns call without being asked, by name."""
    window: float = math.inf
    """How many tokens a turn takes; infinite where all is sent as it came."""

    @property
    def prompt_tokens(self) -> float:
        """How many tokens of messages have room next to the tools and an answer.

        At least half of the context, here and below: the figures are estimates, and the provider has its own.
        """
        own = self.listener.agent
        answer = min((own and own.max_tokens) or ANSWER_TOKENS, self.window / ANSWER_SHARE)
        return max(self.window - tokens_of_tools(self.functions.specs) - answer, self.window / 2)

    @property
    def message_tokens(self) -> float:
        """How many tokens of a user's message, with its passages, have room next to the instructions too."""
        instructions = sum(map(tokens_of, (self.charter, self.listener.prompt or "", *self.notes)))
        return max(self.prompt_tokens - instructions, self.window / 2)

    def check(self, payload: object) -> None:
        """Raise ``MessageTooLarge`` for a user's message that its model cannot take."""
        tokens, most = tokens_of(self.text_of(payload, CONSOLE)), self.message_tokens
        if tokens > most:
            raise MessageTooLarge(
                f"The message has about {tokens:,} tokens; {self.listener.name} has room for {most:,.0f}. It takes "
                f"{self.window:,} in all, which is the `context_window` of its model {self.listener.model}, or "
                "`limits.max_tokens_per_thread` if that is less."
            )

    def options(self, round_number: int, tools: tuple[ToolSpec, ...]) -> CompleteOptions:
        """The options of one round's call. A call that the model must make is only demanded in the first round."""
        agent = self.listener.agent
        options: CompleteOptions = {"tools": tools}
        if not self.notes:  # else they are added to the text before it is shown
            options["block"] = f"say-{round_number + 1}"
        if self.response_format is not None:
            options["response_format"] = self.response_format
        left_out = OF_FUNCTIONS if not tools else {"tool_choice"} if round_number else frozenset()
        parameters = {name: each for name, each in self.parameters.items() if name not in left_out}
        if parameters:
            options["parameters"] = parameters
        if self.listener.model:
            options["model"] = self.listener.model
        if agent is not None and agent.temperature is not None:
            options["temperature"] = agent.temperature
        if agent is not None and agent.max_tokens is not None:
            options["max_tokens"] = agent.max_tokens
        return options

    def text_of(self, payload: object, sender: str) -> str:
        """A prompt's message, or the payload's JSON. Only the console's ``history`` counts as what was said before."""
        if isinstance(payload, Prompt) and (sender == CONSOLE or not payload.history):
            return payload.message
        return self.codec.json(payload).decode()


class Result(NamedTuple):
    """The result of a call. ``output`` is JSON."""

    output: str
    is_error: bool = False


def with_turn(
    listener: Listener, listeners: Mapping[str, Listener], codec: Codec, charter: str, window: float = math.inf
) -> Listener:
    """The listener with the turn loop as its handler: each message is a turn of at most ``window`` tokens."""
    agent = Agent(
        *(listener, functions_of(listener, listeners, codec), codec, charter),
        notes=tuple(missing_tools(listener, listeners)),
        lookups=lookups_of(listener, listeners, codec),
        window=window,
    )

    async def turn(payload: object, metadata: HandlerMetadata) -> HandlerResponse:
        return await Turn(agent, metadata).run(payload)

    return replace(listener, handler=turn, check_turn=agent.check)


def missing_tools(listener: Listener, listeners: Mapping[str, Listener]) -> Iterator[str]:
    """A note for each tool that the agent names and that is not there."""
    for tool in listener.agent.tools if listener.agent is not None else ():
        if tool not in listeners:
            yield f"The tool `{tool}` is not there yet: this answer was given without it."


class Turn:
    """One turn of an agent."""

    def __init__(self, agent: Agent, metadata: HandlerMetadata) -> None:
        self._agent = agent
        self._metadata = metadata
        self._reader = CallReader(agent.functions, agent.codec)
        self._conversation: Conversation
        self._tools = agent.functions.specs
        self._room = agent.prompt_tokens
        self._citations: dict[str, None] = {}  # in order
        self._has_called = False
        self._last_text = ""

    async def run(self, payload: object) -> HandlerResponse:
        """Run until the model answers in words or must stop. Raises ``CompleteError`` if it gave no answer."""
        text, repairs = repair_json(await self._finish(await self._begin(payload)))
        return _answered(text, repairs, [*self._citations])

    async def go_on(self, conversation: Conversation) -> str:
        """Go on with a caller's conversation; gives the last text. Raises as ``run`` does."""
        self._reader.add_earlier(conversation.messages)
        return await self._finish(conversation)

    async def _finish(self, conversation: Conversation) -> str:
        self._conversation = conversation
        self._tools = await self._offered()
        try:
            reason = await self._rounds()
        except CompleteError as error:
            if error.code != "budget_exhausted" or not self._has_called:
                await self._metadata.emit("error", error.entry)
            if error.code != "budget_exhausted":
                raise
            reason = "budget"
            await self._stop_short(error)
        await self._metadata.emit("done", {"stopReason": reason})
        return self._last_text

    async def _stop_short(self, error: CompleteError) -> None:
        """Answer with the last text and why the budget ended the turn."""
        explained = f"Stopped before the answer was finished: {error.message}"
        if self._has_called:
            await self._metadata.emit("message", {"text": explained})
        self._last_text = f"{self._last_text}\n\n{explained}" if self._last_text else explained

    async def _begin(self, payload: object) -> Conversation:
        metadata, text = self._metadata, self._agent.text_of(payload, self._metadata.from_id)
        passages = await self._passages(text)
        instructions = (
            self._agent.charter,
            self._agent.listener.prompt or "",
            metadata.usage_instructions,
            await self._reminders(),
            *self._agent.notes,
        )
        conversation = Conversation(instructions, metadata.call_id)
        history = await metadata.history()
        self._reader.remember(history)
        conversation.resume(history, self._reader.earlier_call)
        if metadata.from_id != CONSOLE:
            self._reader.add_outside(text)
            conversation.ask(text, metadata.from_id, passages)
            return conversation
        if isinstance(payload, Prompt):
            conversation.remember(payload.history)
        conversation.ask(text, passages=passages)
        return conversation

    async def _passages(self, text: str) -> list[Passage]:
        """The passages of the agent's index that fit the prompt best, as many as there is room for.

        None, with a note, if the index cannot be searched.
        """
        own, search = self._agent.listener.agent, self._agent.lookups.get(INDEX_TOOL)
        query = text[:LONGEST_QUERY].strip()
        if own is None or own.rag_index is None or not query:
            return []
        result = _failure("not_found", "")
        if search is not None:
            asked = search.make({"index_id": own.rag_index, "query": query, "top_k": own.rag_top_k})
            result = await self._ask(INDEX_TOOL, "", asked)
        if result.is_error:
            note = _note_on(own.rag_index, orjson.loads(result.output)["error"])
            self._agent = replace(self._agent, notes=(*self._agent.notes, note))
            return []
        self._reader.add_outside(result.output)
        room = self._agent.message_tokens - tokens_of(text)
        passages = self._cited(result, min(room, self._agent.window / 2))
        found = orjson.loads(result.output)["results"][: len(passages)]
        shown = {"index": own.rag_index, "passages": [{"id": each["id"], "score": each["score"]} for each in found]}
        await self._metadata.emit("data", {"name": PASSAGES, "data": shown})
        return passages

    def _cited(self, result: Result, tokens: float = math.inf) -> list[Passage]:
        """What a search has found, the first passages of so many tokens, which the answer cites from now on."""
        found = orjson.loads(result.output)
        sizes = accumulate(tokens_of(each["text"]) for each in found["results"])
        passages = [
            Passage(f"{found['index_id']}/{each['id']}", each["text"])
            for each, size in zip(found["results"], sizes, strict=True)
            if size <= tokens
        ]
        self._citations |= dict.fromkeys(each.source for each in passages)
        return passages

    async def _offered(self) -> tuple[ToolSpec, ...]:
        """The functions; the one that searches the library names the indices that there are."""
        specs, listing = self._agent.functions.specs, self._agent.lookups.get(INDICES_TOOL)
        if listing is None:
            return specs
        found = orjson.loads((await self._ask(INDICES_TOOL, "", listing.make({}))).output)
        ids = [each["id"] for each in found.get("indices", ())]
        return tuple(_of_indices(spec, ids) if spec.name == INDEX_TOOL and ids else spec for spec in specs)

    async def _reminders(self) -> str:
        """The reminders that are due: a recorded step, since they change over time."""
        if SYSTEM_TODO not in self._agent.listener.peers:
            return ""

        async def read(_key: str) -> str:
            return self._metadata.todo_nudge

        reminders: str = await self._metadata.effect("todo_nudge", read, kind="pure")
        return reminders

    async def _rounds(self) -> StopReason:
        for number in range(MAX_TOOL_ROUNDS + 1):
            completion = await self._complete(number)
            answer = self._reader.read(completion, number)
            if completion.finish in WITHHELD:
                answer = answer._replace(calls=())
            is_last = not answer.calls or number == MAX_TOOL_ROUNDS
            text = await self._shown(answer.text, is_last=is_last) if self._agent.notes else answer.text
            if completion.finish in WITHHELD:  # never an empty answer, which would look like success
                self._last_text = text or f"The model gave no answer ({completion.finish})."
                return _reason(completion)
            self._last_text = text or self._last_text
            if not answer.calls:
                return _reason(completion)
            if callers := [requested for requested in answer.calls if requested.is_callers]:
                for requested in callers:
                    await self._metadata.emit("tool_call", _call_entry(requested))
                return _reason(completion)
            if number < MAX_TOOL_ROUNDS:
                await self._call_all(answer)
        return "tool_rounds"

    async def _shown(self, text: str, *, is_last: bool) -> str:
        """Show the text of a round as one message, the last one with the notes, and return it."""
        text = "\n\n".join(part for part in (text, *(self._agent.notes if is_last else ())) if part)
        if text:
            await self._metadata.emit("message", {"text": text})
        return text

    async def _complete(self, number: int) -> Completion:
        for payload in await self._metadata.steered():
            self._conversation.ask(self._agent.text_of(payload, CONSOLE))
        completion = await self._answer(self._agent.options(number, self._tools))
        self._has_called = True
        await self._metadata.emit("usage", completion.used)
        return completion

    async def _answer(self, options: CompleteOptions) -> Completion:
        """The model's answer to what fits its context; to less where the provider counts more tokens than estimated."""
        whole, secret = self._conversation.messages, self._metadata.call_id
        sent = fitted(whole, self._room, secret)
        while True:
            try:
                return await self._metadata.complete(sent, **options)
            except CompleteError as error:
                if error.code != "context_length_exceeded" or math.isinf(self._room):
                    raise
                self._room = min(self._room, sum(map(tokens_of_message, sent))) / 2
                refused, sent = sent, fitted(whole, self._room, secret)
                if sent == refused:
                    raise

    async def _call_all(self, answer: ParsedAnswer) -> None:
        """Make the calls of a round concurrently, and give the model their results in the order of the calls."""
        calls = answer.calls
        self._conversation.say(xml_safe_text(answer.text), [requested.call for requested in calls])
        for requested in calls:
            await self._metadata.emit("tool_call", _call_entry(requested))
        if len(calls) == 1:  # without a task: the request is in the same commit as the answer
            results = [await self._result(calls[0])]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._result(requested)) for requested in calls[:MOST_CALLS]]
            over = _failure("too_many_calls", f"At most {MOST_CALLS} calls are made at once; call the others later.")
            results = [task.result() for task in tasks] + [over] * (len(calls) - len(tasks))
        for requested, result in zip(calls, results, strict=True):
            self._reader.add_outside(result.output)
            if requested.function is not None and requested.function.to == INDEX_TOOL and not result.is_error:
                self._cited(result)
            self._conversation.answer(requested.call, result.output)
            entry = {"id": requested.call.id, "output": result.output, "isError": result.is_error}
            await self._metadata.emit("tool_result", entry)

    async def _result(self, requested: RequestedCall) -> Result:
        """Ask the listener; a call that cannot be made gets its error, so that the model can correct it."""
        function, call = requested.function, requested.call
        if function is None:
            return _failure(
                "unknown_function", f"There is no function {requested.written_name[:100]!r}. Call one that was offered."
            )
        if call.input is None:
            what = f"The arguments are no JSON object: {(call.raw or '')[:200]!r}. Write them as one JSON object."
            return _failure("invalid_arguments", what)
        try:
            payload = function.make(call.input)
        except InvalidPayload as error:
            details = [{"at": fault.pointer, "message": fault.message} for fault in error.details]
            return _failure("invalid_arguments", error.message, details)
        return await self._ask(
            function.to, call.id, RepairedPayload(payload, requested.notes) if requested.notes else payload
        )

    async def _ask(self, to: str, call_id: str, payload: object) -> Result:
        try:
            reply = await self._metadata.ask(to, payload, tool_call_id=call_id)
        except AskError as error:
            if to == SYSTEM_TODO and error.code == "no_reply":  # closing a reminder has no reply
                return Result('{"closed":true}')
            return _failure(error.code, error.message)
        if isinstance(reply, SystemErrorPayload | ToolError):
            return _failure(reply.code, reply.message)
        return Result(PayloadSchema.of(type(reply)).json(reply).decode())


def _note_on(index: str, error: Mapping[str, str]) -> str:
    is_there = error["code"] != "not_found"
    why = f"could not be searched ({error['message']})" if is_there else "is not there yet"
    return f"The index `{index}` {why}: this answer rests on none of its passages."


def _of_indices(spec: ToolSpec, ids: Sequence[str]) -> ToolSpec:
    fields = spec.parameters["properties"]
    named = {**fields, "index_id": {**fields["index_id"], "enum": list(ids)}}
    return replace(spec, parameters={**spec.parameters, "properties": named})


def _failure(code: str, message: str, details: Sequence[Mapping[str, str]] = ()) -> Result:
    error = {"code": code, "message": message, **({"details": list(details)} if details else {})}
    return Result(orjson.dumps({"error": error}).decode(), is_error=True)


def _reason(completion: Completion) -> StopReason:
    return "stop" if completion.finish == "tool_calls" else completion.finish


def _whole(completion: Completion) -> Completion:
    """The completion. Raises ``CompleteError`` if the rest of its answer was withheld."""
    if completion.finish in WITHHELD:
        message = f"The model gave no whole answer ({completion.finish})."
        raise CompleteError("upstream_refused", message, is_final=True)
    return completion


def _call_entry(requested: RequestedCall) -> dict[str, Any]:
    call = requested.call
    entry = {"id": call.id, "name": requested.shown_name, "input": call.input or {}}
    return entry if call.input is not None else {**entry, "rawInput": call.raw or ""}


def _answered(text: str, notes: tuple[str, ...], citations: Sequence[str] = ()) -> HandlerResponse:
    answer = Answer(text, list(citations))
    return HandlerResponse.respond(RepairedPayload(answer, notes) if notes else answer)


def prompted_turn_of(listener: Listener, config: PromptConfig, codec: Codec) -> Handler:
    """The handler of a ``prompt_ref``: one call; an answer that does not fit is a dead letter naming every field."""
    prompt = AgentFactory.prompt_of(config)
    fields: Callable[[object], Any] = codec.schema(listener.payload_class.__name__).form.to_json

    async def turn(payload: object, metadata: HandlerMetadata) -> HandlerResponse:
        given = fields(payload)
        check_payload(config, given)
        messages, schema = prompt.compose(given)
        options: CompleteOptions = {
            "model": listener.model or prompt.model_name,
            "temperature": prompt.temperature,
            "max_tokens": prompt.max_output_tokens,
            "response_format": schema,
        }
        try:
            completion = await metadata.complete(messages, **options)
            await metadata.emit("usage", completion.used)
            answered = prompt.parse_and_validate(_whole(completion))
        except (CompleteError, AgentPromptValidationError) as error:
            failed = error if isinstance(error, CompleteError) else CompleteError("upstream_error", str(error))
            await metadata.emit("error", failed.entry)
            raise
        found, notes = repair_json(answered)
        text = orjson.dumps(found).decode()
        await metadata.emit("message", {"text": text})
        await metadata.emit("done", {"stopReason": "stop"})
        return _answered(text, notes)

    return turn
