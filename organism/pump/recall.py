"""Recall: decode anew, from the log, what the process does not hold any more."""

from __future__ import annotations

from typing import Any

import orjson

from organism.errors import InvalidPayload
from organism.log.log import Log
from organism.model.thread import Message, Step
from organism.pump.rules import Rules


class Unreadable(Exception):
    """The recorded bytes do not fit the schema that is loaded now, or were erased."""


async def payload_of(log: Log, rules: Rules, message: Message) -> Any:
    """A waiting message's payload, checked against today's schema."""
    return await _decoded(log, rules, message.position, message.to)


async def answer_of(log: Log, rules: Rules, step: Step) -> Any:
    """The payload that answered an ask."""
    if step.content_at == 0:
        raise Unreadable("The answer's position is not known.")
    event = (await log.read(step.content_at - 1, step.content_at, limit=1))[0]
    if "class" in event.data:
        learn(rules, event.data["class"])
    return await _decoded(log, rules, step.content_at, step.message.to)


async def result_of(log: Log, step: Step) -> Any:
    """The JSON result of an effect, a value or an approval."""
    content = await log.content(step.content_at)
    if content is None:
        raise Unreadable("The step's result was erased.")
    return orjson.loads(content[0])


async def _decoded(log: Log, rules: Rules, position: int, receiver: str) -> Any:
    content = await log.content(position)
    if content is None:
        raise Unreadable("The message's content was erased.")
    try:
        return rules.codec.decode(content[1], rules.terms(receiver)).payload
    except InvalidPayload as error:
        raise Unreadable(f"The recorded message does not fit today's schema: {error}") from error


def learn(rules: Rules, path: str) -> None:
    """Register the class of a recorded reply, if a module of the configuration still has it."""
    module_name, _, name = path.partition(":")
    module = rules.settings.modules.loaded(module_name)
    found = getattr(module, name, None)
    if isinstance(found, type):
        rules.learn(found)
