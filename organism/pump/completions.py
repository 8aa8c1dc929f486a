"""Completions: a model's answer as its step keeps it.

A text that was shown stands in the log already, in the block that it was shown in: the step names the block instead of
keeping the text once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

from organism.log.log import EventFilter, Log
from organism.model.completion import Completion, ToolCall
from organism.model.thread import Step
from organism.pump.recall import Unreadable, result_of
from organism.pump.runs import written

MOST_PIECES: Final = 100_000


def kept(completion: Completion, shown: str, *, is_shown_whole: bool) -> bytes:
    """The completion as JSON. ``shown`` is the id of its block, if it has one that says what it says."""
    body = {
        "model": completion.model,
        "thought": completion.thought,
        "tool_calls": [
            {"id": call.id, "name": call.name, "input": call.input, "raw": call.raw} for call in completion.tool_calls
        ],
        "finish": completion.finish,
        "input_tokens": completion.input_tokens,
        "output_tokens": completion.output_tokens,
        "cost_usd": str(completion.cost_usd),
        "cost_source": completion.cost_source,
        "served_by": completion.served_by,
    }
    if not is_shown_whole:
        body["text"] = completion.text
    if shown:
        body["shown"] = shown
    return written(body)


async def read(log: Log, step: Step) -> tuple[Completion, str]:
    """What the step has kept, and the id of the block that it was shown in."""
    said = await result_of(log, step)
    shown = said.get("shown", "")
    text = said["text"] if "text" in said else await _text(log, step, shown)
    return completed(said, text), shown


def completed(said: Mapping[str, Any], text: str) -> Completion:
    """The completion that was kept as JSON, with its text."""
    fields = {name: value for name, value in said.items() if name != "shown"}
    calls = tuple(ToolCall(**call) for call in said["tool_calls"])
    return Completion(**{**fields, "text": text, "tool_calls": calls, "cost_usd": Decimal(said["cost_usd"])})


async def _text(log: Log, step: Step, block: str) -> str:
    """The text of the block, as it was shown last before the step was recorded. Raises ``Unreadable``."""
    message = step.message
    wanted = EventFilter((message.thread.id,), ("run_message_start", "run_message_delta"), content=True)
    pieces: list[str] = []
    for event in await log.read(message.position, step.content_at, wanted, MOST_PIECES):
        if (event.data["message"], event.data["id"]) != (message.id, block):
            continue
        if event.type == "run_message_start":
            pieces.clear()
        elif event.content is None or event.content.erased:
            raise Unreadable("The text of a model's answer was erased.")
        else:
            pieces.append(orjson.loads(event.content.json)["delta"])
    return "".join(pieces)
