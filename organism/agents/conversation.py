"""What a model is told in one turn: instructions, what was said before, the message, and round by round its calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from organism.agents.fence import fenced
from organism.model.agent import Said
from organism.model.completion import ChatMessage, ToolCall


class Conversation:
    """The messages as OpenAI-compatible servers take them. ``secret`` makes the marks of this turn's fences."""

    def __init__(self, instructions: Iterable[str], secret: str) -> None:
        self._secret = secret
        text = "\n\n".join(part.strip() for part in instructions if part.strip())
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": text}] if text else []

    @property
    def messages(self) -> Sequence[ChatMessage]:
        """All so far; what is given does not change when more is said."""
        return tuple(self._messages)

    def remember(self, history: Iterable[Said]) -> None:
        """What was said in earlier turns."""
        self._messages += [{"role": said.role, "content": said.content} for said in history]

    def ask(self, text: str, sender: str | None = None) -> None:
        """The message of this turn; with ``sender``, as the text of another agent or tool that it is."""
        content = text if sender is None else fenced(f"message from {sender}", text, self._secret)
        self._messages.append({"role": "user", "content": content})

    def say(self, text: str, calls: Iterable[ToolCall] = ()) -> None:
        """What the model said, with the calls that it asked for."""
        written = [_written(call) for call in calls]
        more = {"tool_calls": written} if written else {}
        self._messages.append({"role": "assistant", "content": text, **more})

    def answer(self, call: ToolCall, output: str) -> None:
        """The result of a call."""
        content = fenced(f"result of {call.name}", output, f"{self._secret}/{call.id}")
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def _written(call: ToolCall) -> dict[str, Any]:
    """Servers read the arguments of earlier calls as JSON: those that were none are told in the result alone."""
    arguments = orjson.dumps(call.input or {}).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
