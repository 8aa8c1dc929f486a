"""A model's call as a step: reserved in the unit that begins it, settled in the one that records it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

import orjson
from msgspec import field

from organism.config.foreign_code import described, run_json
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Content
from organism.model.completion import (
    ChatMessage,
    CompleteOptions,
    Completion,
    Part,
    TextDelta,
    ThoughtDelta,
)
from organism.model.run import LONGEST_ID
from organism.model.thread import Step
from organism.model.tool import ToolSpec
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.decide.spend import ModelCall, Outcome
from organism.pump.prompt import PromptMessage, digest
from organism.pump.run.run_stream import Block, RunStream
from organism.pump.writer import Writer

OPTIONS: Final = tuple(CompleteOptions.__annotations__)
NOT_SENT: Final = frozenset({"block"})
"""Options that are not sent to the model: its answer does not depend on them."""
FIRST_TEXT_SECONDS: Final = 0.001
"""How long the start of a text waits for the rest: an answer that arrives at once saves a commit."""


def check(messages: Sequence[ChatMessage], options: CompleteOptions) -> None:
    """Raise ``ValueError`` for an invalid call."""
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


def call_digest(model: str | None, prompt: Sequence[PromptMessage], options: CompleteOptions) -> str:
    """The digest by which a replay is checked against its record. Raises ``TypeError`` for what is no JSON."""
    sent: dict[str, Any] = {name: value for name, value in options.items() if name not in NOT_SENT}
    if "tools" in options:
        sent["tools"] = [tool.as_offered for tool in options["tools"]]
    head, tail = orjson.dumps(options.get("model") or model), orjson.dumps(sent, option=orjson.OPT_SORT_KEYS)
    return digest(b"complete\0[%b," % head, (message.json for message in prompt), b",%b]" % tail)


def _are_messages(messages: object) -> bool:
    if not isinstance(messages, Sequence) or not messages:
        return False
    return all(isinstance(each, Mapping) and isinstance(each.get("role"), str) for each in messages)


@dataclass(frozen=True, slots=True)
class AnswerRestarted:
    """An attempt failed after some of its parts were given: the answer starts again with the parts that follow."""


StreamPart = Part | AnswerRestarted
"""What a call yields while it runs."""


class Models(Protocol):
    """Calls models (``organism/agents``). ``reserve`` decides and never waits; the others wait and decide nothing."""

    async def prepare(self, call: ModelCall) -> None:
        """Do what takes long in ``reserve`` before it, in portions between which the loop has a turn."""

    def reserve(self, decision: Decision, call: ModelCall) -> None:
        """Add ``budget_reserved``, or raise ``CompleteError`` (rights, depth, rate, budget, leak) and add nothing."""

    async def call(self, call: ModelCall, on_part: Callable[[StreamPart], None]) -> Outcome:
        """Call, retry, fall back; ``on_part`` gets leak-checked parts, in the loop. Raises only ``CancelledError``."""


class RunningCall(Entity):
    """One model call, from its start to its record. Once its handling is over it has no effect."""

    _models: Models
    _writer: Writer
    _stream: RunStream
    _call: ModelCall
    _step: Step
    _task: asyncio.Task[None] | None = None
    _text: Block | None = None
    _due: asyncio.TimerHandle | None = None
    _thought: Block | None = None
    _thoughts: int = 0
    _pieces: list[str] = field(default_factory=list)
    _block: str = ""

    def __post_init__(self) -> None:
        self._stream.calls[self._step.number] = self
        self._block = self._call.options.get("block", "")

    def on_disk(self, unit: Decision) -> None:
        """Its reservation is on disk: make the call."""
        if unit.failed is None and not self._is_over():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._ended)

    def stop(self) -> None:
        """It has no effect any more."""
        if self._task is not None:
            self._task.cancel()
        self._cancel_timer()

    def cancel(self, decision: Decision) -> None:
        """The handler wants no answer any more: show no more of it, and count its reservation as spent."""
        self.stop()
        self._end_thought(decision)
        if self._pieces or self._text is not None:
            self._text_in(decision).cut(decision)
        spend.settle_lost(decision, self._call.message, self._step.number)

    def _is_over(self) -> bool:
        return self._stream.is_closed or self._stream.calls.get(self._step.number) is not self

    async def _run(self) -> None:
        now = self._writer.state.now
        begun_at = now()
        try:
            outcome = await self._models.call(self._call, self._on_part)
        except Exception as error:  # noqa: BLE001 - recorded as the call's error, whatever it is
            outcome = Outcome(None, events.StepError("upstream_error", described(error)), 1, now() - begun_at)
        if not self._is_over():
            self._settle(outcome)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A bug of ours, not a fault of the model: fold the state again."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._writer.on_broken(error)

    def _on_part(self, part: StreamPart) -> None:
        """Show a part of the answer."""
        if self._is_over() or not self._block:
            return
        if isinstance(part, AnswerRestarted):
            self._begin_again()
        elif isinstance(part, TextDelta) and part.text:
            self._pieces.append(part.text)
            if self._text is not None:
                self._text.add(part.text)
            elif self._due is None:
                self._due = asyncio.get_running_loop().call_later(FIRST_TEXT_SECONDS, self._on_due)
        elif isinstance(part, ThoughtDelta) and part.text:
            if self._due is not None:
                self._show_text()
            if self._thought is None:
                self._thoughts += 1
                number = f"-{self._thoughts}" if self._thoughts > 1 else ""
                self._thought = self._begin_block("thought", f"{self._block}-thought{number}")
            self._thought.add(part.text)

    def _on_due(self) -> None:
        try:
            self._show_text()
        except Exception as error:  # noqa: BLE001 - a fault of ours, not of the model: the state is folded again
            self._writer.on_broken(error)

    def _show_text(self) -> None:
        """Begin the block with the text so far."""
        self._cancel_timer()
        self._text = self._begin_block("message", self._block)
        self._text.add("".join(self._pieces))

    def _cancel_timer(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _begin_block(self, kind: str, block_id: str) -> Block:
        decision = self._stream.decide()
        self._end_thought(decision)
        block = self._stream.begin(kind, block_id, decision)
        self._writer.write(decision, block.on_disk)
        return block

    def _begin_again(self) -> None:
        self._pieces.clear()
        self._cancel_timer()
        if self._text is not None:
            self._text.drop()
            self._text = self._begin_block("message", self._block)

    def _end_thought(self, decision: Decision) -> None:
        if self._thought is not None:
            self._stream.end(self._thought, decision)
            self._thought = None

    def _settle(self, outcome: Outcome) -> None:
        """The call is over: end what it was shown in, settle its cost, record its step."""
        completion = outcome.completion
        decision = self._stream.decide()
        self._cancel_timer()
        self._end_thought(decision)
        content = None
        if completion is not None:
            is_shown_whole = self._end_text(decision, completion)
            shown = self._block if self._text is not None else ""
            json = _completion_json(completion, shown, whole=is_shown_whole)
            content = Content(self._call.message.thread.owner, json)
        elif self._pieces or self._text is not None:
            self._text_in(decision).cut(decision)
        spend.settle(decision, self._call, outcome)
        decision.record(self._step, outcome.error, content, completion)
        del self._stream.calls[self._step.number]
        self._writer.write(decision)

    def _end_text(self, decision: Decision, completion: Completion) -> bool:
        """Show the final text if it differs from what arrived; gives whether the block contains it."""
        if not self._block:
            return False
        text, is_seen = "".join(self._pieces), self._text is not None
        if text.strip() != completion.text.strip():
            if self._text is not None:
                self._text.drop()
            self._text, self._pieces = None, [text := completion.text]
        if not text and not is_seen:
            return False
        self._stream.end(self._text_in(decision), decision)
        return text == completion.text

    def _text_in(self, decision: Decision) -> Block:
        """The block of the text; if it waited until now, it begins with this decision."""
        if self._text is None:
            self._text = self._stream.begin("message", self._block, decision)
            self._text.add("".join(self._pieces))
        return self._text


def _completion_json(completion: Completion, shown: str, *, whole: bool) -> bytes:
    """The completion as its step records it; ``shown`` is its block, which may contain the ``whole`` text already."""
    body = {**asdict(completion), "cost_usd": str(completion.cost_usd)}
    if whole:
        del body["text"]
    return run_json({**body, "shown": shown} if shown else body)
