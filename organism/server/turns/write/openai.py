"""A turn as a completion of OpenAI's API, whole or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from msgspec import field

from organism import errors
from organism.errors import OrganismError
from organism.events.entity import Entity
from organism.model.run import RunEntry
from organism.model.unseen import AppendOnly
from organism.server.http.streaming import SSE
from organism.server.turns.run_result import FoldedRun
from organism.server.turns.write.sse import DONE, event
from organism.views.run import is_erased

FINISHES: Final = {"stop": "stop", "content_filter": "content_filter", "refusal": "content_filter"}
"""A run's stop reason in the API's words; any other one means that the answer was cut: ``length``."""
BETWEEN: Final = "\n\n"
"""Between the texts of two rounds, and between two thoughts."""


class Head(NamedTuple):
    """What the answer and each of its chunks begin with. ``id`` is the thread's."""

    id: str
    created: int
    model: str

    def of(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


class Said(Entity):
    """What the run has said or thought, as a reader has it, from whom text cannot be taken back."""

    has_text: bool = False
    is_parted: bool = False
    """A block began again, because its model call is repeated, in other words or in fewer."""
    _id: str = ""  # of the open block
    _block: AppendOnly = field(default_factory=AppendOnly)

    def add(self, entry: RunEntry) -> str:
        """The text that the entry adds: a block that begins again goes on where it is the same."""
        data, (_, _, phase) = entry["data"], entry["type"].partition("_")
        if phase == "delta":
            return self._text(data["delta"], data["offset"])
        if phase == "end":
            self.is_parted |= self._block.is_shorter
            return ""
        block = data.get("id", "")
        if block and block == self._id:
            self._block.restart()
        else:
            self._id, self._block = block, AppendOnly()
        return "" if phase else self._text(data["text"], None)

    def _text(self, text: str, offset: int | None) -> str:
        if self.is_parted:
            return ""
        between = BETWEEN if self.has_text and self._block.is_empty else ""
        new = self._block.take(text, offset)
        self.is_parted = new is None
        if not new:
            return ""
        self.has_text = True
        return between + new


class CompletionWriter(Entity):
    """Writes one run's entries as chunks, ``[DONE]`` last; the last chunk tells the cost.

    A reader takes every event for a chunk, and cannot take text back. So an error is sent only once the run has ended
    with it, or with a text that began again in other words. ``problem`` gives an error as JSON.
    """

    _head: Head
    _problem: Callable[[OrganismError], bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    _includes_usage: bool = False
    media_type: str = SSE
    _run: FoldedRun = field(default_factory=FoldedRun)
    _has_begun: bool = False
    _said: Said = field(default_factory=Said)
    _thought: Said = field(default_factory=Said)

    def waiting(self, reason: str) -> bytes:
        """A chunk without text; ``spass_waiting`` says why no other follows yet."""
        return self._chunk(self._beginning(), spass_waiting={"reason": reason})

    def lines(self, entry: RunEntry) -> bytes:
        """The events that the entry becomes; none if the API has no form for it."""
        self._run.add(entry)
        beginning = self._beginning()
        begin = self._chunk(beginning) if beginning else b""
        block = "" if is_erased(entry) else entry["type"].partition("_")[0]
        if block == "message" and (text := self._said.add(entry)):
            return begin + self._chunk({"content": text})
        if block == "thought" and (text := self._thought.add(entry)):
            return begin + self._chunk({"reasoning_content": text})
        return begin

    def end(self, cost: Mapping[str, str]) -> bytes:
        run, extra = self._run, {"spass_cost": cost} if cost else {}
        error = run.failure or errors.HandlingFailed() if run.stop_reason in {"error", "killed"} else None
        if error is None and self._said.is_parted:
            error = errors.Upstream("The model began its answer again, in other words; ask again.")
        if error is not None:
            return event({**orjson.loads(self._problem(error)), **extra}) + DONE
        calls = _called(run)
        delta = {"tool_calls": [{"index": index, **called} for index, called in enumerate(calls)]} if calls else {}
        if not self._includes_usage:
            return self._chunk(delta, _finish(run), served_by=run.served_by, **extra) + DONE
        whole = {**self._head.of("chat.completion.chunk"), "choices": [], "usage": _usage(run), **extra}
        return self._chunk(delta, _finish(run), served_by=run.served_by) + event(whole) + DONE

    def whole(self, folded: FoldedRun) -> dict[str, Any]:
        """The completion. Raises the error that the run ended with."""
        if folded.failure is not None:
            raise folded.failure
        calls = _called(folded)
        content = BETWEEN.join(filter(None, _texts(folded.outputs()["messages"]))) or None
        message: dict[str, Any] = {"role": "assistant", "content": content}
        thoughts = BETWEEN.join(filter(None, _texts(folded.thoughts)))
        message |= {"reasoning_content": thoughts} if thoughts else {}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": _finish(folded)}
        shown = {"choices": [choice], "usage": _usage(folded), "served_by": folded.served_by}
        return {**self._head.of("chat.completion"), **shown}

    def _beginning(self) -> dict[str, str]:
        """What the first chunk has to say; nothing once it was said."""
        beginning = {} if self._has_begun else {"role": "assistant", "content": ""}
        self._has_begun = True
        return beginning

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        usage = {"usage": None} if self._includes_usage else {}
        return event({**self._head.of("chat.completion.chunk"), "choices": [choice], **usage, **more})


def _texts(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (message["content"] for message in messages if message["role"] == "assistant")


def _called(run: FoldedRun) -> list[dict[str, Any]]:
    """The calls that are for the caller to make."""
    shown = []
    for call in run.unanswered.values():
        arguments = call["rawInput"] if "rawInput" in call else orjson.dumps(call["input"]).decode()
        function = {"name": call["name"], "arguments": arguments}
        shown.append({"id": call["id"], "type": "function", "function": function})
    return shown


def _finish(run: FoldedRun) -> str:
    """Why the answer ends, in the API's words."""
    reason = run.stop_reason or ""
    return "tool_calls" if run.unanswered and reason == "stop" else FINISHES.get(reason, "length")


def _usage(run: FoldedRun) -> dict[str, int]:
    """The tokens of all calls of the turn, as the provider counted them."""
    read, written = run.usage["input"], run.usage["output"]
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
