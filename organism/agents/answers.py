"""From what a model gave to the JSON object that it means.

Taken are: the object itself, a ``Completion``, what OpenAI-compatible servers and their SDKs answer, and a text in
which an object stands, be it in a fence, behind a thought or between sentences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from organism.config.json_text import Found, NotJson, came, found_in, read_json
from organism.errors import Fault
from organism.model.completion import Completion

MAX_TEXT: Final = 1_000_000

_END_OF_THOUGHT: Final = "</think>"


class NoObject(ValueError):
    """No JSON object can be had of it; ``faults`` say why."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults


def candidates(raw: Any) -> list[Found]:
    """The objects that the answer may mean, in their order; at least one. Raises ``NoObject``."""
    said = _said(raw)
    return _in_text(said) if isinstance(said, str) else [_as_it_is(said)]


def _said(raw: Any) -> str | Mapping[str, Any]:
    if isinstance(raw, Completion):
        return raw.text
    choices = _part(raw, "choices")
    first = choices[0] if isinstance(choices, Sequence) and choices else None
    message = _part(first, "message")
    if message is not None:
        return _content(_part(message, "content"), _part(first, "finish_reason"))
    if isinstance(raw, bytes | bytearray):
        return bytes(raw).decode("utf-8", "replace")
    if isinstance(raw, str | Mapping):
        return raw
    raise NoObject(Fault("", f"expected a JSON object or a text that holds one, came a {type(raw).__name__}"))


def _part(owner: Any, name: str) -> Any:
    return owner.get(name) if isinstance(owner, Mapping) else getattr(owner, name, None)


def _content(content: Any, finish: Any) -> str | Mapping[str, Any]:
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        texts = [_part(part, "text") for part in content]
        content = "".join(text for text in texts if isinstance(text, str))
    if isinstance(content, str | Mapping) and content:
        return content
    why = f" (it finished with `{finish}`)" if isinstance(finish, str) else ""
    raise NoObject(Fault("", f"the model's message has no text{why}"))


def _as_it_is(value: Mapping[str, Any]) -> Found:
    """A copy that shares nothing with what was given, held to JSON like everything else."""
    try:
        copy = read_json(json.dumps(value, ensure_ascii=True))
    except NotJson as error:
        raise NoObject(*error.faults) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise NoObject(Fault("", f"expected an object of JSON: {error}")) from None
    return Found(copy, ())


def _in_text(text: str) -> list[Found]:
    if len(text) > MAX_TEXT:
        raise NoObject(Fault("", f"expected at most {MAX_TEXT} characters, came {len(text)}"))
    try:
        found = list(found_in(text.rpartition(_END_OF_THOUGHT)[2]))
    except NotJson as error:
        raise NoObject(*error.faults) from None
    objects = [each for each in found if isinstance(each, Found) and isinstance(each.value, dict)]
    if objects:
        return objects
    if any(isinstance(each, Found) for each in found):
        raise NoObject(Fault("", "expected one JSON object, came a list"))
    broken = [each for each in found if isinstance(each, Fault)]
    raise NoObject(broken[0] if broken else Fault("", f"no JSON object stands in the text: {came(text)}"))
