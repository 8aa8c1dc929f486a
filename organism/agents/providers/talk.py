"""A talk as providers read it: the text of its messages, and where in it the model stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from organism.model.completion import ChatMessage

SYSTEM_ROLES = frozenset({"system", "developer"})


def text_of(message: ChatMessage) -> str:
    """The text of a message, whether it came whole or in parts; parts of other kinds have none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a talk stands: its newest text from a user, and what has come since.

    ``turn`` counts the user's messages so far; ``round`` the model's answers since the newest of them. ``results`` are
    the texts of the tool results that wait to be answered: those behind the model's last message.
    """

    system: str
    user: str
    turn: int
    round: int
    results: tuple[str, ...]


def standing(messages: Sequence[ChatMessage]) -> Standing:
    """Where the talk stands."""
    roles = [message.get("role") for message in messages]
    users = [at for at, role in enumerate(roles) if role == "user"]
    newest = users[-1] if users else -1
    answers = [at for at, role in enumerate(roles) if role == "assistant" and at > newest]
    since = answers[-1] if answers else newest
    return Standing(
        system="\n".join(text_of(message) for message in messages if message.get("role") in SYSTEM_ROLES),
        user=text_of(messages[newest]) if users else "",
        turn=len(users),
        round=len(answers),
        results=tuple(text_of(message) for message in messages[since + 1 :] if message.get("role") == "tool"),
    )
