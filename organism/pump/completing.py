"""Completing: a model's call as a step of a handling (spec 1.4, 4.3; adr/0027).

The unit that begins the step reserves what the call may cost, the unit that records it settles what it did cost; the
call itself runs in a task of its own between the two. One that died with the process is made again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

import orjson

from organism.model.completion import ChatMessage, CompleteError, CompleteOptions, Completion, ToolCall
from organism.model.events import Content
from organism.model.thread import Step
from organism.model.tool import ToolSpec
from organism.pump import recall
from organism.pump.handling import Run
from organism.pump.models import ModelCall, Outcome, Told
from organism.pump.unit import Decision
from organism.pump.wording import described

OPTIONS: Final = tuple(CompleteOptions.__annotations__)
UNSEEN: Final = frozenset({"block"})
"""Options that the model never hears of: its answer does not depend on them."""


async def complete(run: Run, messages: Sequence[ChatMessage], options: CompleteOptions) -> Completion:
    """See ``HandlerMetadata.complete``."""
    asked = _written(run, messages, options)
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
    if not step.is_written:
        await run.pump.settled()
    return completion_of(await recall.result_of(run.pump.log, step))


def _written(run: Run, messages: Sequence[ChatMessage], options: CompleteOptions) -> bytes:
    """The whole call as JSON: what a record is held to. Raises ``ValueError`` for what is no call."""
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ValueError(f"complete() takes {', '.join(OPTIONS)}; {unknown[0]!r} came.")
    if not _are_messages(messages):
        raise ValueError("complete() takes a list of messages, each a dict with `role` and what it says, at least one.")
    if not all(isinstance(tool, ToolSpec) for tool in options.get("tools", ())):
        raise ValueError("`tools` are ToolSpec(name, description, parameters).")
    heard = {name: value for name, value in options.items() if name not in UNSEEN}
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
        decision.record(step, {"code": refused.code, "message": refused.message})
        run.pump.write(decision)
    else:
        run.pump.write(decision, partial(_on_disk, Talk(run, call, step)))
    return step


def _on_disk(talk: Talk, unit: Decision) -> None:
    if unit.failed is None and not talk.run.dead:
        talk.begin()


class Talk:
    """One call under way. What it still does after its handling's end comes to nothing."""

    __slots__ = ("call", "run", "step", "task")

    def __init__(self, run: Run, call: ModelCall, step: Step) -> None:
        self.run = run
        self.call = call
        self.step = step
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Call."""
        self.task = asyncio.get_running_loop().create_task(self._talk())
        self.task.add_done_callback(self._ended)

    async def _talk(self) -> None:
        pump = self.run.pump
        begun_at = pump.state.now()
        outcome, error = await pump.outcome_of(pump.models.call(self.call, self.hear))
        if error is not None:
            failure = {"code": "upstream_error", "message": described(error)}
            outcome = Outcome(None, failure, 1, pump.state.now() - begun_at)
        if not self.run.dead:
            self._settle(outcome)

    def hear(self, part: Told) -> None:
        """A part of the answer came."""

    def _settle(self, outcome: Outcome) -> None:
        decision = self.run.decide()
        self.run.pump.models.settle(decision, self.call, outcome)
        content = None
        if outcome.completion is not None:
            content = Content(self.run.message.thread.id, written(outcome.completion))
        decision.record(self.step, outcome.error, content)
        self.run.pump.write(decision)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A fault of ours, not of the model: the pump folds its state anew."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.run.pump.on_broken(error)


def written(completion: Completion) -> bytes:
    """The completion as JSON, as its step keeps it."""
    return orjson.dumps(completion, default=str)


def completion_of(recorded: Mapping[str, Any]) -> Completion:
    """The completion that a step has kept."""
    said = dict(recorded)
    said["tool_calls"] = tuple(ToolCall(**call) for call in said["tool_calls"])
    said["cost_usd"] = Decimal(said["cost_usd"])
    return Completion(**said)
