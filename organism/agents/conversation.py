"""The messages of one turn, and the fences around text of others in them (S20).

A fence's mark is a digest over a secret of the turn: unpredictable, not in the text, the same after a restart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from organism.model.agent import Said
from organism.model.completion import ChatMessage, ToolCall
from organism.model.sessions import SessionMessage, is_call, results_of
from organism.pump.history import NO_RESULT

BEFORE: Final = "What did we say so far?"
"""Comes before the summary with which a successor begins: the templates of some models want a user's message first."""
_MARK_CHARS: Final = 12
_FENCED: Final = re.compile(
    r"<<(?P<label>[^\n]*) \[(?P<mark>[0-9a-f]{12})\]>>\n(?P<text>.*)\n<<end \[(?P=mark)\]>>", re.DOTALL
)


class Passage(NamedTuple):
    """A document that was found; ``source`` is its index and its id, ``INDEX/ID``."""

    source: str
    text: str


class Conversation:
    """A turn's messages, as OpenAI-compatible servers take them. The fences' marks are made of ``secret``."""

    def __init__(self, instructions: Iterable[str], secret: str) -> None:
        self._secret = secret
        text = "\n\n".join(part.strip() for part in instructions if part.strip())
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": text}] if text else []

    @property
    def messages(self) -> Sequence[ChatMessage]:
        return tuple(self._messages)

    def remember(self, history: Iterable[Said]) -> None:
        self._messages += [{"role": said.role, "content": said.content} for said in history]

    def resume(self, history: Sequence[SessionMessage], call_of: Callable[[SessionMessage], ToolCall]) -> None:
        """What was said in the session before: each round's calls together, each with its result.

        ``call_of`` makes the call of a message that is one. A call of a turn that died gets an error as its result.
        """
        if history and history[0]["role"] != "user":
            self.ask(BEFORE)
        results, calls = results_of(history), list[tuple[int, ToolCall]]()
        for at, message in enumerate(history):
            if is_call(message):
                calls.append((at, call_of(message)))
                if at + 1 < len(history) and is_call(history[at + 1]):
                    continue
                self._say_again([call for _, call in calls])
                for place, call in calls:
                    self.answer(call, history[results[place]]["content"] if place in results else NO_RESULT)
                calls = []
            elif message["role"] != "tool":
                self._messages.append({"role": message["role"], "content": message["content"]})

    def _say_again(self, calls: Iterable[ToolCall]) -> None:
        """Add earlier calls to what the assistant said with them."""
        last = self._messages[-1] if self._messages else {}
        if last.get("role") == "assistant" and "tool_calls" not in last:
            self._messages.pop()
            self.say(last["content"], calls)
        else:
            self.say("", calls)

    def take(self, messages: Iterable[ChatMessage]) -> None:
        """Messages as a caller has them."""
        self._messages += [dict(message) for message in messages]

    def ask(self, text: str, sender: str | None = None, passages: Iterable[Passage] = ()) -> None:
        """The message of this turn, behind the passages that were found for it, each in a fence.

        With ``sender`` it is fenced too, as the text of another agent or tool.
        """
        quoted = [fenced(f"passage {each.source}", each.text, f"{self._secret}/{each.source}") for each in passages]
        content = text if sender is None else fenced(f"message from {sender}", text, self._secret)
        self._messages.append({"role": "user", "content": "\n\n".join((*quoted, content))})

    def say(self, text: str, calls: Iterable[ToolCall] = ()) -> None:
        written = [_written(call) for call in calls]
        more = {"tool_calls": written} if written else {}
        self._messages.append({"role": "assistant", "content": text, **more})

    def answer(self, call: ToolCall, output: str) -> None:
        content = fenced(f"result of {call.name}", output, f"{self._secret}/{call.id}")
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def _written(call: ToolCall) -> dict[str, Any]:
    """Servers parse the arguments of earlier calls as JSON; invalid ones appear only in the call's result."""
    arguments = orjson.dumps(call.input or {}).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


class Fenced(NamedTuple):
    """The text in a fence, and the label that says what it is."""

    label: str
    text: str


def split_fences(content: str) -> tuple[list[str], str]:
    """The texts of the fences with which a message begins, and what follows them."""
    texts, end = list[str](), 0
    while (found := _FENCED.match(content, end)) is not None and found.end() < len(content):
        texts.append(found["text"])
        end = found.end() + len("\n\n")
    return texts, content[end:]


def fenced(label: str, text: str, secret: str) -> str:
    """``text`` between marks. ``label`` is one line of our own words."""
    mark = _mark(secret, label, text)
    return f"<<{label} [{mark}]>>\n{text}\n<<end [{mark}]>>"


def unfenced(content: str) -> Fenced | None:
    """The content of a message that is one fence from beginning to end; else None."""
    found = _FENCED.fullmatch(content)
    return Fenced(found["label"], found["text"]) if found else None


def _mark(secret: str, label: str, text: str) -> str:
    mark = sha256(f"{secret}\x00{label}\x00{text}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_CHARS]
    while mark in text:
        mark = sha256(mark.encode()).hexdigest()[:_MARK_CHARS]
    return mark
