"""A session's messages as conversations and compactions know them, and what a compaction is asked for and answers.

Messages are those that the fold of a run makes (``views/run.py``), oldest first: ``role`` and ``content``; a tool call
has ``tool_call_id``, ``tool_name`` and ``input``, its result ``tool_call_id`` and ``is_error``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

SessionMessage = Mapping[str, Any]


@dataclass
class CompactionRequest:
    """The compaction of a session that stands at ``position`` of its own stream, of its messages ``before`` another.

    ``summarizer`` is asked for pieces of at most ``most_chars``, each for at most ``summary_seconds``, with ``model``
    unless it is to use its own. ``tokens`` is about how much of its model's context the session fills.
    """

    session_id: str
    position: int
    before: int
    keep_last_n: int
    is_masked: bool
    summarizer: str
    model: str | None
    most_chars: int
    summary_seconds: float
    tokens: int


@dataclass
class CompactionResult:
    """The session that goes on with a compacted one, and the summary with which it begins, made in ``thread_id``.

    ``tokens`` is about how much of its model's context the source had filled.
    """

    source_session_id: str
    successor_session_id: str
    summary_id: str
    summary_text: str
    tokens: int
    thread_id: str


@dataclass
class CompactionFailure:
    """Why a session was not compacted: the code of an error, and what is known of the cause."""

    code: str
    message: str


SUMMARY_OF: Final = "[compaction summary from session "


def is_call(message: SessionMessage) -> bool:
    """Whether the message is a tool call; any other of the role ``tool`` is a result."""
    return "tool_name" in message


def results_of(messages: Sequence[SessionMessage]) -> dict[int, int]:
    """Where the result of each call stands, by where the call does, in the order of the results.

    A result is that of the newest call of its id. A call has none if its turn has died.
    """
    open_calls: dict[Any, int] = {}
    found: dict[int, int] = {}
    for at, message in enumerate(messages):
        call_id = message.get("tool_call_id")
        if is_call(message):
            open_calls[call_id] = at
        elif call_id in open_calls:
            found[open_calls.pop(call_id)] = at
    return found


def summary_message(source: str, text: str) -> SessionMessage:
    """The message with which the successor of a compacted session begins."""
    return {"role": "assistant", "content": f"{SUMMARY_OF}{source}] {text}"}


def is_summary(message: SessionMessage) -> bool:
    """Whether the message is a summary, or says so."""
    return message["role"] == "assistant" and str(message["content"]).startswith(SUMMARY_OF)
