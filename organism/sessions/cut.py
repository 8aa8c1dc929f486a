"""Where a compaction cuts a session's messages, how long they are, and how a summarizer reads them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import json

from organism.model.sessions import SessionMessage, is_call, results_of

CHARS_PER_TOKEN: Final = 4


def cut(messages: Sequence[SessionMessage], keep_last_n: int) -> int:
    """How many of the oldest messages a compaction summarises.

    All but the newest ``keep_last_n``, or fewer where that would part a tool call from its result.
    """
    end = max(0, len(messages) - keep_last_n)
    for call_at, result_at in reversed(results_of(messages).items()):  # the latest first: moving back skips no pair
        if call_at < end <= result_at:
            end = call_at
    return end


def estimate_tokens(messages: Iterable[SessionMessage]) -> int:
    """About how many tokens a model reads in the messages: one for four characters."""
    return sum(len(message["content"]) + len(_input(message)) for message in messages) // CHARS_PER_TOKEN


def transcript(messages: Iterable[SessionMessage], *, masked: bool) -> str:
    """The messages as a summarizer reads them; ``masked`` leaves out what tools answered, errors included.

    Further lines of a message are indented, so that none looks like the beginning of another message.
    """
    return "\n\n".join(entry.replace("\n", "\n  ") for entry in _entries(messages, masked=masked))


def _entries(messages: Iterable[SessionMessage], *, masked: bool) -> Iterator[str]:
    for message in messages:
        if is_call(message):
            yield f"assistant calls {message['tool_name']}: {_input(message)}"
        elif message["role"] == "tool" and not masked:
            yield f"{'error' if message.get('is_error') else 'result'}: {message['content']}"
        elif message["role"] != "tool" and message["content"].strip():
            yield f"{message['role']}: {message['content']}"


def _input(message: SessionMessage) -> str:
    given = message.get("input")
    return given if isinstance(given, str) else "" if given is None else json.encode(given).decode()
