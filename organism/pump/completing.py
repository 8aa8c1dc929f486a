"""Completing: a model's call as a step of a handling (adr/0027).

The unit that begins the step reserves what the call may cost, the unit that records it settles what it did cost; the
call itself runs in a task of its own between the two (``talk``). One that died with the process is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import orjson

from organism.model.completion import ChatMessage, CompleteError, CompleteOptions, Completion
from organism.model.run import LONGEST_ID
from organism.model.thread import Step
from organism.model.tool import ToolSpec
from organism.pump import completions, spend
from organism.pump.handling import Run
from organism.pump.models import ModelCall
from organism.pump.runs import hold_free, story_of
from organism.pump.talk import Talk
from organism.pump.unit import Decision

OPTIONS: Final = tuple(CompleteOptions.__annotations__)
UNHEARD: Final = frozenset({"block"})
"""Options that the model never hears of: its answer does not depend on them."""


async def complete(run: Run, messages: Sequence[ChatMessage], options: CompleteOptions) -> Completion:
    """See ``HandlerMetadata.complete``."""
    asked = _written(run, messages, options)
    hold_free(run, options.get("block"))
    number = run.next_number()
    digest = hashlib.sha256(b"complete\0" + asked).hexdigest()[:32]
    step = run.recorded(number, "complete", digest)
    if step is None or step.ok is None:
        await run.gate(keeps_line=True)
        call = ModelCall(run.message, run.listener, number, orjson.loads(asked)[1], options)
        step = _begin(run, call, digest)
        await run.answer(step)
    if step.error is not None:
        raise CompleteError(step.error["code"], step.error["message"])  # type: ignore[arg-type]  # only such codes are recorded
    if step.result is None:
        step.result, shown = await completions.read(run.pump.log, step)
        if shown:
            story_of(run).passed("message", shown)
    answer: Completion = step.result
    return answer


def _written(run: Run, messages: Sequence[ChatMessage], options: CompleteOptions) -> bytes:
    """The whole call as JSON: what a record is held to. Raises ``ValueError`` for what is no call."""
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ValueError(f"complete() takes {', '.join(OPTIONS)}; {unknown[0]!r} came.")
    if not _are_messages(messages):
        raise ValueError("complete() takes a list of messages, each a dict with `role` and what it says, at least one.")
    if not all(isinstance(tool, ToolSpec) for tool in options.get("tools", ())):
        raise ValueError("`tools` are ToolSpec(name, description, parameters).")
    block = options.get("block", "-")
    if not isinstance(block, str) or not 0 < len(block) <= LONGEST_ID:
        raise ValueError(f"`block` is an id of 1 to {LONGEST_ID} characters; {block!r} came.")
    heard = {name: value for name, value in options.items() if name not in UNHEARD}
    try:
        model = options.get("model") or run.listener.model
        return orjson.dumps([model, [dict(message) for message in messages], heard], option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise ValueError(f"The call cannot be written as JSON: {error}.") from error


def _are_messages(messages: object) -> bool:
    if not isinstance(messages, Sequence) or not messages:
        return False
    return all(isinstance(each, Mapping) and isinstance(each.get("role"), str) for each in messages)


def _begin(run: Run, call: ModelCall, digest: str) -> Step:
    """Reserve, and say that the call begins; it does once that is on disk."""
    decision = run.decide()
    step = run.begin(decision, call.step, "complete", digest, {})
    run.suspend(step)
    try:
        run.pump.models.reserve(decision, call)
    except CompleteError as refused:
        spend.settle_lost(decision, call.message, call.step)
        decision.record(step, {"code": refused.code, "message": refused.message})
        run.pump.write(decision)
    else:
        run.pump.write(decision, partial(_on_disk, Talk(run, story_of(run), call, step)))
    return step


def _on_disk(talk: Talk, unit: Decision) -> None:
    if unit.failed is None and not talk.run.dead:
        talk.begin()
