"""The result of a run, trimmed if asked for: what every batch answer is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import field
from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.errors import OrganismError, ThreadKilled
from organism.events.entity import Entity
from organism.model.run import COUNTS, RunEntry
from organism.server.http import problems
from organism.views.run import Fold, Message, is_erased

KILLED: Final = "The thread was killed."
WAITING: Final = "waiting"


class RunError(TypedDict):
    """Why a run failed."""

    code: Annotated[str, Field(examples=["upstream_error"])]
    message: str


def waiting_entry(reason: str) -> RunEntry:
    """What a stream says that waits. It is no entry of the run, and not in the log."""
    return {"type": WAITING, "data": {"reason": reason}}


class FoldedRun(Entity):
    """A run so far; ``add`` takes its next entry.

    ``is_trimmed``: of its messages the last unit is shown. ``usage`` are the tokens of all its model calls,
    ``served_by`` is the provider that answered last, and ``unanswered`` are the tool calls without a result, by id.
    """

    is_trimmed: bool = False
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    served_by: str = ""
    unanswered: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _run: Fold = field(default_factory=Fold)
    _thoughts: Fold = field(default_factory=Fold)
    _error: Mapping[str, Any] | None = None
    _last: tuple[str, ...] = ("", "")  # the types of the last two entries

    def add(self, entry: RunEntry) -> None:
        """Take the next entry."""
        kind, data = entry["type"], entry["data"]
        self._last = (self._last[1], kind)
        self._run.add(entry)
        if kind == "error":
            self._error = data
        if is_erased(entry):
            return
        if kind.startswith("thought"):
            self._thoughts.add({"type": kind.replace("thought", "message"), "data": data})
        elif kind == "usage":
            for name in COUNTS:
                self.usage[name] += data[name]
            self.served_by = data.get("served_by", "")
        elif kind == "tool_call":
            self.unanswered[data["id"]] = data
        elif kind == "tool_result":
            self.unanswered.pop(data["id"], None)

    @property
    def stop_reason(self) -> str | None:
        """Why it ended; None if it has not."""
        return self._run.stop_reason

    @property
    def failure(self) -> OrganismError | None:
        """The error that the run ended with. One after which another attempt succeeded does not count."""
        before, last = self._last
        if self._error is None or last != "done":
            return None
        if self.stop_reason == "killed":
            return ThreadKilled(KILLED)
        if self.stop_reason != "error" and before != "error":
            return None
        return problems.error_of(self._error)

    @property
    def thoughts(self) -> list[Message]:
        """What the model thought aloud, in the form of messages."""
        messages: list[Message] = self._thoughts.result()["messages"]
        return messages

    def outputs(self) -> dict[str, Any]:
        """Its messages, stop reason and what it waits for, if anything.

        Of a run that failed after it had shown something, the ``error`` says why.
        """
        found = self._run.result()
        if self.is_trimmed:
            found["messages"] = trim_to_trailing_unit(found["messages"])
        if self.stop_reason == "error" and self._error is not None:  # its text may be erased
            found["error"] = {name: str(self._error.get(name, "")) for name in ("code", "message")}
        return {name: value for name, value in found.items() if value is not None}


def trim_to_trailing_unit(messages: Sequence[Message]) -> list[Message]:
    """The last message; of a turn that ends in tools all of that run, with the one message that began it."""
    start = len(messages) - 1
    while start > 0 and messages[start]["role"] == "tool":
        start -= 1
    return list(messages[max(start, 0) :])
