"""The leak check before a model: no secret goes out in a prompt (S23, S30, adr/0035)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from organism.model.completion import ChatMessage, CompleteError
from organism.model.redact import Redactor
from organism.model.tool import ToolSpec


def cleared(redactor: Redactor, messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The messages as they may leave: without secrets, without what stands under their names or looks like one."""
    return tuple(redactor.value(message) for message in messages)


def hold_back(redactor: Redactor, *parts: Any) -> None:
    """Raise ``CompleteError`` (``leak_refused``) if a live secret is in what cannot be changed, or was left after all.

    A schema without a part of it would be another schema: the call is refused, and nobody hears which secret it was.
    """
    for part in parts:
        said = orjson.dumps(part, default=_plain)
        if redactor.holds(said) or redactor.holds_token(said):
            raise CompleteError(
                "leak_refused",
                "The tools or the answer's schema hold a live secret of this installation; take it out of them.",
            )


def _plain(value: Any) -> Any:
    if isinstance(value, ToolSpec):
        return [value.name, value.description, value.parameters]
    raise TypeError(type(value).__name__)
