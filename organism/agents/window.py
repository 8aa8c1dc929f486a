"""The part of a conversation that a model is sent: all, or what fits its context, with a mark for what is left out.

The instructions and the user's newest message are always sent whole; a session refuses a message for which there is no
room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.agents.conversation import BEFORE, fenced, unfenced
from organism.agents.providers.messages import CHARS_PER_TOKEN, SYSTEM_ROLES, tokens_of_message
from organism.model.completion import ChatMessage

SHARE: Final = 2
"""A text from before the newest message has at most this part of the context, as have the newest results together."""
MARK: Final = "[left out, since the model's context has no room: {}]"


def fitted(messages: Sequence[ChatMessage], most_tokens: float, secret: str) -> list[ChatMessage]:
    """The messages, cut to at most ``most_tokens`` estimated tokens where that is possible.

    First long texts are cut, then results of tools are left out, then whole turns, the oldest first.
    ``secret`` is that of the fences around the results.
    """
    over = sum(map(tokens_of_message, messages)) - most_tokens
    if over <= 0:
        return list(messages)
    first = next((at for at, message in enumerate(messages) if message["role"] not in SYSTEM_ROLES), 0)
    newest = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=first)
    fresh = len(messages)  # where the results of the newest round begin
    while messages[fresh - 1]["role"] == "tool":
        fresh -= 1
    older = [at for at in range(first, fresh) if at < newest or messages[at]["role"] == "tool"]
    shares = dict.fromkeys(older, most_tokens / SHARE)
    shares |= dict.fromkeys(range(fresh, len(messages)), most_tokens / SHARE / max(1, len(messages) - fresh))
    shares_of_results = {at: 0.0 for at in older if messages[at]["role"] == "tool"}
    kept = list(messages)
    for at, share in (*shares.items(), *shares_of_results.items()):
        if over > 0:
            before, kept[at] = tokens_of_message(kept[at]), _cut(messages[at], int(share), secret)
            over += tokens_of_message(kept[at]) - before
    return _without_turns(kept, first, newest, over) if over > 0 else kept


def _cut(message: ChatMessage, most_tokens: int, secret: str) -> ChatMessage:
    """The message with at most ``most_tokens`` of its text. A result is cut in its fence, whose label says so."""
    content, most_chars = message["content"], most_tokens * CHARS_PER_TOKEN
    quoted = unfenced(content) if message["role"] == "tool" else None
    text = content if quoted is None else quoted.text
    if len(text) <= most_chars:
        return message
    mark = MARK.format(f"{len(text) - most_chars} characters")
    if quoted is None:
        return {**message, "content": f"{text[:most_chars]}\n{mark}"}
    label, of_call = f"{quoted.label} {mark}", f"{secret}/{message['tool_call_id']}"
    return {**message, "content": fenced(label, text[:most_chars], of_call)}


def _without_turns(messages: Sequence[ChatMessage], first: int, newest: int, over: float) -> list[ChatMessage]:
    """The messages without so many tokens of the oldest turns, or without all that come before the newest message.

    What stands in their place begins with a user's message, as the templates of some models want it.
    """
    end, over = first, over + sum(map(tokens_of_message, _mark_of(newest)))
    while end < newest and over > 0:
        begin = end
        end = next(at for at in range(begin + 1, newest + 1) if messages[at]["role"] == "user")
        over -= sum(map(tokens_of_message, messages[begin:end]))
    return [*messages[:first], *_mark_of(end - first), *messages[end:]] if end > first else list(messages)


def _mark_of(count: int) -> list[ChatMessage]:
    mark = MARK.format(f"{count} earlier messages")
    return [{"role": "user", "content": BEFORE}, {"role": "assistant", "content": mark}]
