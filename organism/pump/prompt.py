"""The messages of a model call, each written as JSON once.

Of that text the digests of the step and of the prompt are made, and it is searched for secrets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import orjson

from organism.events.entity import Entity
from organism.model.completion import ChatMessage

_TEXT: Final = frozenset({str})


class SentMessage(NamedTuple):
    """A message as the model gets it: without the secrets of a ``generation`` of the redactor.

    ``tokens`` are an estimate. What ``may_leak`` has a text that could be a token, of which each call asks.
    """

    message: ChatMessage
    json: bytes
    tokens: int
    generation: int
    may_leak: bool


class PromptMessage(Entity):
    """A message as the handler gave it, as plain JSON whose keys are in order, and what the gateway made of it.

    ``is_text``: its values are texts alone, so that whatever equals it has the same JSON, unlike 1 and True.
    """

    given: ChatMessage
    json: bytes
    is_text: bool
    sent: SentMessage | None = None

    @classmethod
    def of(cls, message: ChatMessage) -> PromptMessage:
        """Raises ``TypeError`` for what is no JSON."""
        json = json_of(message)
        given = orjson.loads(json)
        return cls(given, json, is_text="content" in given and _TEXT.issuperset(map(type, given.values())))


def json_of(message: ChatMessage) -> bytes:
    """The message as JSON, whatever the order of its keys. Raises ``TypeError``.

    It is a copy, since the bytes that orjson makes keep a buffer of 4 KiB.
    """
    return b"%b" % orjson.dumps(dict(message), option=orjson.OPT_SORT_KEYS)


def digest(head: bytes, messages: Iterable[bytes], tail: bytes) -> str:
    """The digest of the messages' JSON array between a head and a tail."""
    found = hashlib.sha256(head)
    found.update(b"[%b]" % b",".join(messages))
    found.update(tail)
    return found.hexdigest()[:32]
