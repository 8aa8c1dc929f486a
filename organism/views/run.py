"""The fold of a run: from its entries to the messages of the turn. Batch answers, histories and the page are this fold.

It takes any stream, one that was cut or came from elsewhere too: what it does not know it leaves out. Entries are
those of ``model/run.py``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import orjson
from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model.run import RunEntry
from organism.model.unseen import Unseen
from organism.views.views import ERASED

Message = dict[str, Any]


class _Block(Entity):
    """A message while its text comes: joined once, since adding to a text again and again is quadratic."""

    message: Message
    parts: list[str] = field(default_factory=list)
    unseen: Unseen = field(default_factory=Unseen)

    def write(self) -> None:
        self.message["content"] = "".join(self.parts)


class Fold(Entity):
    """A run so far; ``add`` takes its next entry, ``result`` gives what it has become."""

    messages: list[Message] = field(default_factory=list)
    stop_reason: str | None = None
    _open: dict[Any, _Block] = field(default_factory=dict)
    _calls: dict[Any, Message] = field(default_factory=dict)
    _requests: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def add(self, entry: RunEntry) -> None:
        """Take the next entry. One that is not known, or whose id is no text or number, is left out."""
        found = entry.get("data")
        data = found if isinstance(found, dict) else {}
        name = data.get("id")
        if not (isinstance(name, str) or isinstance(name, Hashable)):  # noqa: SIM101 - text costs less
            return
        match entry.get("type"):
            case "message_delta":
                self._say(name, data)
            case "message_start":
                self._begin(name)
            case "message_end":
                self._open.pop(name, _Block({})).write()
            case "message":
                self.messages.append({"role": "assistant", "content": data.get("text", "")})
            case "tool_call":
                self._call(name, data)
            case "tool_result":
                result = {"role": "tool", "content": data.get("output", ""), "tool_call_id": name}
                self.messages.append({**result, "is_error": bool(data.get("isError"))})
            case "interaction_request" | "interaction_response" as kind:
                self._requests.pop(name, None)
                self._requests.update({name: data} if kind == "interaction_request" else {})
            case "done" if data.get("stopReason") is not None:
                self.stop_reason = data["stopReason"]

    def result(self, stop_reason: str | None = None) -> dict[str, Any]:
        """``messages``, ``stop_reason``, ``pending_interaction``; a reason given here overrides the entries'."""
        for block in self._open.values():
            block.write()
        reason = stop_reason if stop_reason is not None else self.stop_reason
        pending = next(reversed(self._requests.values()), None) if reason == "paused" else None
        if pending is not None:
            pending = {**pending, "tool": pending.get("tool", _tool_of(pending.get("payload")))}
        return {"messages": self.messages, "stop_reason": reason, "pending_interaction": pending}

    def _begin(self, name: Any) -> None:
        """A block begins; one that begins again, because its model call is repeated, keeps its place."""
        begun = self._open.get(name)
        if begun is None:
            message = {"role": "assistant", "content": ""}
            self.messages.append(message)
        else:
            message = begun.message
        self._open[name] = _Block(message)

    def _say(self, name: Any, data: dict[str, Any]) -> None:
        block = self._open.get(name)
        delta, offset = data.get("delta"), data.get("offset")
        if block is None or not isinstance(delta, str):
            return
        block.parts.append(block.unseen.take(delta, offset if isinstance(offset, int) and offset >= 0 else None))

    def _call(self, name: Any, data: dict[str, Any]) -> None:
        raw = data.get("rawInput")
        given = raw if raw is not None else data.get("input")
        known = self._calls.get(name)
        if known is not None:
            known["input"] = given if given is not None else known["input"]
            return
        call = {"role": "tool", "content": "", "tool_call_id": name, "tool_name": data.get("name"), "input": given}
        self._calls[name] = call
        self.messages.append(call)


def fold(entries: Iterable[RunEntry], stop_reason: str | None = None) -> dict[str, Any]:
    """``{messages, stop_reason, pending_interaction}`` of a whole run, with the terminal result's reason, if known."""
    run = Fold()
    for entry in entries:
        run.add(entry)
    return run.result(stop_reason)


def _tool_of(payload: Any) -> str | None:
    """The name of the tool whose call waits for an answer: its own, else the best label of the call."""
    if not isinstance(payload, dict):
        return None
    call = payload.get("toolCall")
    names = [payload.get("toolName")]
    if isinstance(call, dict):
        names += [call.get("name"), call.get("title"), call.get("kind")]
    return next((name for name in names if isinstance(name, str) and name), None)


def kind_of(record: Record[events.RunEvent]) -> str:
    """The entry's type."""
    return record.type.removeprefix("run_")


def data_of(record: Record[events.RunEvent]) -> bytes:
    """The entry's data as JSON: the record's content, which can be erased; without one, the event's own fields."""
    event, content = record.event, record.content
    if content is not None:
        return ERASED if content.erased else content.json
    data = {} if event.id is None else {"id": event.id}
    return orjson.dumps({**data, "stopReason": event.stop_reason} if isinstance(event, events.RunDone) else data)


def is_erased(entry: RunEntry) -> bool:
    """Whether its data were erased, so that it has none of its fields."""
    return bool(entry["data"] == {"erased": True})


def entry_of(record: Record[events.RunEvent]) -> RunEntry:
    """An event of a run as the entry that it is: ``{"type", "data"}``."""
    data: dict[str, Any] = orjson.loads(data_of(record))
    return {"type": kind_of(record), "data": data}
