"""One round of tool calls: each becomes a message to its listener, and the reply a result for the model.

The requests of a round overlap; they are sent in the order of the calls, and the results come in that order. A call
that cannot be made gets its error as the result, so that the model can correct it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from organism.agents.tool_calls import Asked
from organism.codec import Mended, PayloadSchema
from organism.errors import InvalidPayload
from organism.model.handler import AskError, HandlerMetadata
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.ids import SYSTEM_TODO
from organism.model.tool import ToolError

MOST_CALLS: Final = 32
"""Of one round; further calls get an error as their result."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call. ``output`` is JSON."""

    output: str
    is_error: bool = False


class Replies:
    """Writes replies of any class as JSON; keeps the schema of each class."""

    def __init__(self) -> None:
        self._schemas: dict[type, PayloadSchema] = {}

    def json(self, payload: object) -> str:
        kind = type(payload)
        if kind not in self._schemas:
            self._schemas[kind] = PayloadSchema.of(kind)
        return self._schemas[kind].to_json_text(payload).decode()


@dataclass(frozen=True, slots=True)
class Ready:
    asked: Asked
    to: str
    payload: Mended


def prepared_all(asked: Sequence[Asked]) -> list[Ready | Result]:
    """Each call of a round: its payload, or its error."""
    too_many = failure("too_many_calls", f"At most {MOST_CALLS} calls are made at once; call the others later.")
    return [prepared(each) if at < MOST_CALLS else too_many for at, each in enumerate(asked)]


def prepared(asked: Asked) -> Ready | Result:
    function, call = asked.function, asked.call
    if function is None:
        return failure("unknown_function", f"There is no function {asked.said[:100]!r}. Call one that was offered.")
    if call.input is None:
        what = f"The arguments are no JSON object: {(call.raw or '')[:200]!r}. Write them as one JSON object."
        return failure("invalid_arguments", what)
    try:
        payload = function.make(call.input)
    except InvalidPayload as error:
        details = [{"at": fault.pointer, "message": fault.message} for fault in error.details]
        return failure("invalid_arguments", error.message, details)
    return Ready(asked, function.to, Mended(payload, asked.notes))


def failure(code: str, message: str, details: Sequence[Mapping[str, str]] = ()) -> Result:
    error = {"code": code, "message": message, **({"details": list(details)} if details else {})}
    return Result(orjson.dumps({"error": error}).decode(), is_error=True)


async def results(metadata: HandlerMetadata, ready: Sequence[Ready | Result], replies: Replies) -> list[Result]:
    """The result of each, in their order."""
    if len(ready) == 1:  # without a task: the request is in the commit of the answer that it follows from
        return [each if isinstance(each, Result) else await _result(metadata, each, replies) for each in ready]
    async with asyncio.TaskGroup() as group:
        asking = [
            each if isinstance(each, Result) else group.create_task(_result(metadata, each, replies)) for each in ready
        ]
    return [each if isinstance(each, Result) else each.result() for each in asking]


async def _result(metadata: HandlerMetadata, ready: Ready, replies: Replies) -> Result:
    payload = ready.payload if ready.payload.notes else ready.payload.payload
    try:
        reply = await metadata.ask(ready.to, payload, call_id=ready.asked.call.id)
    except AskError as error:
        if ready.to == SYSTEM_TODO and error.code == "no_reply":  # it closes a reminder without a word
            return Result('{"closed":true}')
        return failure(error.code, error.message)
    if isinstance(reply, SystemErrorPayload | ToolError):
        return failure(reply.code, reply.message)
    return Result(replies.json(reply))
