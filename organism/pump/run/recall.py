"""Recall: read and decode from the log what is no longer in memory."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import orjson

from organism.config.foreign import attempt
from organism.errors import InvalidPayload, LogDamaged
from organism.events.vocabulary import MessageSent, RunMessageDelta, RunMessageStart
from organism.log.log import EventFilter, EventLog
from organism.model.completion import Completion, completed
from organism.model.thread import Step
from organism.pump.rules import Rules
from organism.pump.run.mailboxes import Queued

MOST_PIECES: Final = 100_000
READ_AHEAD: Final = 32
"""What waits in one line is read so many messages at a time: each read is a trip to another thread."""


class Unreadable(Exception):
    """The recorded bytes do not fit the schema that is loaded now, or were erased."""


async def payload_of(log: EventLog, rules: Rules, queued: Queued) -> Any:
    """A waiting message's payload, checked against today's schema; those behind it in its line are read along."""
    message, follower = queued.message, queued.line.head
    waiting = {message.position: queued}
    while follower is not None and follower.payload is None and len(waiting) < READ_AHEAD:
        waiting[follower.message.position] = follower
        follower = follower.next
    try:
        contents = await log.contents({position: each.message.digest for position, each in waiting.items()})
    except LogDamaged:  # whose content it is finds out at its own turn
        waiting = {message.position: queued}
        contents = await log.contents({message.position: message.digest})
    del waiting[message.position]
    for position, each in waiting.items():
        # An error in it, be it the class's own code, is reported at its own turn.
        each.payload = attempt(partial(_decoded, rules, contents.get(position), each.message.to)).result
        each.generation = rules.generation
    return _decoded(rules, contents.get(message.position), message.to)


async def answer_of(log: EventLog, rules: Rules, step: Step) -> Any:
    """The payload that answered an ask."""
    if step.content_at == 0:
        raise Unreadable("The answer's position is not known.")
    event = (await log.read(step.content_at - 1, step.content_at, limit=1))[0].event
    if isinstance(event, MessageSent) and event.payload_class:  # if a module of the configuration still has it
        module_name, _, name = event.payload_class.partition(":")
        found = getattr(rules.settings.modules.loaded(module_name), name, None)
        if isinstance(found, type):
            rules.register(found)
    return _decoded(rules, await log.content(step.content_at), step.message.to)


async def result_of(log: EventLog, step: Step) -> Any:
    """The JSON result of an effect, a value or an approval."""
    content = await log.content(step.content_at)
    if content is None:
        raise Unreadable("The step's result was erased.")
    return orjson.loads(content[0])


async def completion_of(log: EventLog, step: Step) -> tuple[Completion, str]:
    """A model's answer, and the id of the block that it was shown in."""
    said = await result_of(log, step)
    shown = said.get("shown", "")
    text = said["text"] if "text" in said else await _shown_text(log, step, shown)
    return completed(said, text), shown


async def _shown_text(log: EventLog, step: Step, block: str) -> str:
    """The text of the block, as it was shown last before the step was recorded. Raises ``Unreadable``."""
    message = step.message
    wanted = EventFilter((message.thread.id,), (RunMessageStart, RunMessageDelta), content=True)
    pieces: list[str] = []
    for record in await log.read(message.position, step.content_at, wanted, MOST_PIECES):
        event = record.event
        if not isinstance(event, RunMessageStart | RunMessageDelta) or (event.message, event.id) != (message.id, block):
            continue
        if isinstance(event, RunMessageStart):
            pieces.clear()
        elif record.content is None or record.content.erased:
            raise Unreadable("The text of a model's answer was erased.")
        else:
            pieces.append(orjson.loads(record.content.json)["delta"])
    return "".join(pieces)


def _decoded(rules: Rules, content: tuple[bytes, bytes] | None, receiver: str) -> Any:
    if content is None:
        raise Unreadable("The message's content was erased.")
    try:
        return rules.codec.decode(content[1], rules.terms(receiver)).payload
    except InvalidPayload as error:
        raise Unreadable(f"The recorded message does not fit today's schema: {error}") from error
