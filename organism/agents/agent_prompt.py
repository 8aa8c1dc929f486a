"""A prompt of the AgentStack: it composes a model's input and validates its output, and calls no model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from organism.config.json_schema import TYPES, JsonSchema, fitted
from organism.config.json_text import Found, NotJson, came, found_in, read_json
from organism.config.prompts import (
    Mode,
    filled,
    with_enums,
)
from organism.errors import Fault
from organism.model.completion import Completion

JSON_ONLY: Final = (
    "Return only JSON: one object that matches the schema below. No text before it, none after it, no code fence."
)
LAST_SENTENCE: Final = "Reply with a single JSON object only, no extra text, matching the schema."

MAX_SHOWN_FAULTS: Final = 20
MAX_TEXT: Final = 1_000_000
WRITTEN_AS_TEXT: Final = (date, time, timedelta, Decimal, Enum, PurePath, UUID)

_END_OF_THOUGHT: Final = "</think>"
_PLAIN_KEY: Final = re.compile(r"[\w.-]+")
_BREAKS: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class AgentPromptInputError(ValueError):
    """The payload is not what the prompt is composed of."""


class AgentPromptValidationError(ValueError):
    """The model's answer does not fit the prompt's schema; ``faults`` names every field, by its JSON pointer."""

    def __init__(self, who: str, faults: tuple[Fault, ...]) -> None:
        shown = [f"{fault.pointer}: {fault.message}".removeprefix(": ") for fault in faults[:MAX_SHOWN_FAULTS]]
        more = f"; and {len(faults) - MAX_SHOWN_FAULTS} more" if len(faults) > MAX_SHOWN_FAULTS else ""
        super().__init__(f"The answer to {who} does not fit: {'; '.join(shown)}{more}.")
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPrompt:
    """A prompt, as its file says. With ``max_output_tokens`` None the model sets the bound."""

    agent_name: str
    version: str
    mode: Mode
    system_text: str
    purpose_text: str
    output_schema: Mapping[str, Any]
    model_name: str
    enums: Mapping[str, list[str]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    temperature: float = 0.0
    max_output_tokens: int | None = None

    def compose(self, input_payload: Mapping[str, Any]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """The messages, SYSTEM and USER, and the answer's plain JSON Schema. Raises ``AgentPromptInputError``."""
        lines = _lines(input_payload)
        system = (
            self.system_text,
            self.purpose_text,
            f"Agent: {self.agent_name}, version {self.version}.",
            f"{JSON_ONLY}\n{json.dumps(self.output_schema, ensure_ascii=False)}",
        )
        user = (lines, self._instruction(), LAST_SENTENCE)
        messages = [
            {"role": "system", "content": "\n\n".join(system)},
            {"role": "user", "content": "\n\n".join(part for part in user if part)},
        ]
        return messages, deepcopy(dict(self.output_schema))

    def parse_and_validate(self, raw_output: Any) -> dict[str, Any]:
        """The answer as a plain dict: the schema's fields, in its order, with the defaults of what is missing.

        ``raw_output`` is the object itself, a ``Completion``, what an OpenAI-compatible server or SDK answers, or a
        text that holds one such object, in a fence or between sentences. Of several objects the one that fits is
        taken; if different ones fit, none is. Raises ``AgentPromptValidationError`` and nothing else.
        """
        who = f"{self.agent_name}@{self.version}"
        try:
            found = _candidates(raw_output)
        except NotJson as error:
            raise AgentPromptValidationError(who, tuple(error.faults)) from None
        fitted = [self._fitted(each) for each in found]
        right = [answer for answer, faults in fitted if not faults]
        if not right:
            raise AgentPromptValidationError(who, min((faults for _, faults in reversed(fitted)), key=len))
        if any(answer != right[0] for answer in right):
            message = f"expected one JSON object, came {len(right)} different ones that fit"
            raise AgentPromptValidationError(who, (Fault("", message),))
        return right[0]

    def _fitted(self, found: Found) -> tuple[dict[str, Any], tuple[Fault, ...]]:
        if found.faults or not isinstance(found.value, dict):
            return {}, found.faults
        value = filled(found.value, deepcopy(dict(self.defaults)))
        schema = with_enums(self.output_schema, self.enums)
        return fitted(value, schema), tuple(JsonSchema(schema).faults(value))

    def _instruction(self) -> str:
        """What the mode asks for, field by field."""
        if self.mode == "Chooser":
            return "\n".join(f"Choose `{name}` from {_listed(allowed)}." for name, allowed in self.enums.items())
        fields = "\n".join(_described(name, schema) for name, schema in self.output_schema["properties"].items())
        if self.mode == "Writer":
            return f"Fill each field with appropriate text following the purpose:\n{fields}"
        return f"Extract the information from the input above, or map it, into these fields:\n{fields}"


def _lines(payload: Mapping[str, Any]) -> str:
    """Each entry as ``key = "value"`` on a line of its own; no value can look like another line."""
    if not isinstance(payload, Mapping):
        raise AgentPromptInputError(f"Expected input_payload as a dict, came a {type(payload).__name__}.")
    return "\n".join(f"{_key(key)} = {_text(value)}" for key, value in payload.items())


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise AgentPromptInputError(f"Expected the keys of input_payload as text, came {key!r}.")
    return key if _PLAIN_KEY.fullmatch(key) else _text(key)


def _text(value: Any) -> str:
    """A value as JSON, with every character escaped that would end a line."""
    try:
        written = json.dumps(value, ensure_ascii=False, default=_as_text)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentPromptInputError(f"A value of input_payload cannot be written: {error}.") from None
    return _BREAKS.sub(lambda sign: f"\\u{ord(sign.group()):04x}", written)


def _as_text(value: Any) -> str:
    """Values without JSON that always have the same text; other objects' text may hold their address."""
    if isinstance(value, WRITTEN_AS_TEXT):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no text that is always the same; give its JSON instead")


def _listed(allowed: list[str]) -> str:
    return json.dumps(allowed, ensure_ascii=False)


def _described(name: str, schema: Mapping[str, Any]) -> str:
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    called = " or ".join(TYPES[kind] for kind in kinds) or "any value"
    described = f": {schema['description']}" if isinstance(schema.get("description"), str) else ""
    chosen = f", one of {_listed(schema['enum'])}" if "enum" in schema else ""
    return f"- `{name}` ({called}{chosen}){described}"


def _candidates(raw: Any) -> list[Found]:
    """The objects that the answer may mean, in order; at least one. Raises ``NotJson``."""
    content = _content(raw)
    return _in_text(content) if isinstance(content, str) else [_copied(content)]


def _refusal(message: str) -> NotJson:
    return NotJson([Fault("", message)])


def _content(raw: Any) -> str | Mapping[str, Any]:
    if isinstance(raw, Completion):
        return raw.text
    choices = _part(raw, "choices")
    first = choices[0] if isinstance(choices, Sequence) and choices else None
    message = _part(first, "message")
    if message is not None:
        return _message_content(_part(message, "content"), _part(first, "finish_reason"))
    if isinstance(raw, bytes | bytearray):
        return bytes(raw).decode("utf-8", "replace")
    if isinstance(raw, str | Mapping):
        return raw
    raise _refusal(f"expected a JSON object or a text that holds one, came a {type(raw).__name__}")


def _part(owner: Any, name: str) -> Any:
    return owner.get(name) if isinstance(owner, Mapping) else getattr(owner, name, None)


def _message_content(content: Any, finish: Any) -> str | Mapping[str, Any]:
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        texts = [_part(part, "text") for part in content]
        content = "".join(text for text in texts if isinstance(text, str))
    if isinstance(content, str | Mapping) and content:
        return content
    why = f" (it finished with `{finish}`)" if isinstance(finish, str) else ""
    raise _refusal(f"the model's message has no text{why}")


def _copied(value: Mapping[str, Any]) -> Found:
    """A copy that shares nothing with the original, checked like any JSON."""
    try:
        return Found(read_json(json.dumps(value, ensure_ascii=True)), ())
    except NotJson:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(f"expected an object of JSON: {error}") from None


def _in_text(text: str) -> list[Found]:
    if len(text) > MAX_TEXT:
        raise _refusal(f"expected at most {MAX_TEXT} characters, came {len(text)}")
    found = list(found_in(text.rpartition(_END_OF_THOUGHT)[2]))
    whole = [each for each in found if isinstance(each, Found)]
    if objects := [each for each in whole if isinstance(each.value, dict)]:
        return objects
    if whole:
        raise _refusal("expected one JSON object, came a list")
    broken = [each for each in found if isinstance(each, Fault)]
    raise NotJson(broken[:1]) if broken else _refusal(f"no JSON object stands in the text: {came(text)}")
