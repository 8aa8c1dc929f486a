"""Prompts of AgentStack: ``config/agents/{name}/{version}.json`` → a checked record.

JSON only. Each file is checked by itself, and all that is wrong with it is told at once, by JSON pointers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from organism.config.answer_schema import Add, check_schema, fit, noting
from organism.config.json_text import MAX_SHOWN, NotJson, came, pointer, read_json
from organism.config.text import near
from organism.errors import Fault

Mode = Literal["Chooser", "Writer", "Extractor"]
PromptKey = tuple[str, str]
"""Name and version."""

PROMPT_FOLDER: Final = "config/agents"
MAX_NAME: Final = 128
MAX_TEMPERATURE: Final = 2
MAX_OUTPUT_TOKENS: Final = 1_000_000

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_REQUIRED: Final = ("agent_name", "version", "mode", "system_text", "purpose_text", "output_schema", "model_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptConfig:
    """One file. ``output_schema`` is the schema of the answer; ``input_keys`` are what a payload must have."""

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
    input_keys: tuple[str, ...] = ()


class BadPrompt(ValueError):
    """A file of a prompt is not valid. ``faults`` has all that is wrong, by JSON pointers."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


def is_prompt_name(name: object) -> bool:
    """Whether a prompt or a version may be called that: no path leads out of its folder by it."""
    return isinstance(name, str) and len(name) <= MAX_NAME and bool(_NAME.fullmatch(name))


def prompt_path(name: str, version: str) -> str:
    """Where the file lies, seen from the folder of organism.yaml."""
    return f"{PROMPT_FOLDER}/{name}/{version}.json"


def read_prompt(text: str, name: str, version: str) -> PromptConfig:
    """The prompt that the text of ``{name}/{version}.json`` says. Raises ``BadPrompt``."""
    try:
        plain = read_json(text)
    except NotJson as error:
        raise BadPrompt(error.faults) from None
    faults: list[Fault] = []
    if not isinstance(plain, dict):
        raise BadPrompt([Fault("", f"expected an object, came {came(plain)}")])
    _check(plain, (name, version), noting(faults))
    if faults:
        raise BadPrompt(faults)
    return PromptConfig(**{**plain, "input_keys": tuple(plain.get("input_keys", ()))})


def with_enums(schema: Mapping[str, Any], enums: Mapping[str, list[str]]) -> dict[str, Any]:
    """The schema in which each field that ``enums`` alone bounds is bounded too."""
    properties = {**schema.get("properties", {})}
    for name, allowed in enums.items():
        if name in properties and _enum_of(properties[name]) is None:
            properties[name] = _bounded(properties[name], allowed)
    return {**schema, "properties": properties}


def filled(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The value with the defaults of what is missing; what is there stays, null too."""
    return {**{name: default for name, default in defaults.items() if name not in value}, **value}


def _check(plain: dict[str, Any], key: PromptKey, add: Add) -> None:
    for each in _REQUIRED:
        if each not in plain:
            add(pointer("", each), "is missing")
    for each, value in plain.items():
        if each not in _CHECKS:
            shown = each[:MAX_SHOWN]
            add(pointer("", shown), f"unknown key `{shown}`{near(each, list(_CHECKS))}")
        elif not _CHECKS[each][1](value):
            add(pointer("", each), f"expected {_CHECKS[each][0]}, came {came(value)}")
    for each, asked in zip(("agent_name", "version"), key, strict=True):
        if isinstance(plain.get(each), str) and plain[each] != asked:
            add(pointer("", each), f"expected `{asked}`, as the file's path says, came {came(plain[each])}")
    if isinstance(plain.get("output_schema"), dict):
        _check_answer(plain, add)


def _check_answer(plain: dict[str, Any], add: Add) -> None:
    """The schema by itself, then ``enums`` against it in both directions, then ``defaults`` against both."""
    schema = plain["output_schema"]
    wrong: list[Fault] = []
    check_schema(schema, "/output_schema", noting(wrong))
    if schema.get("type") != "object":
        noting(wrong)("/output_schema/type", f'expected "object", came {came(schema.get("type"))}')
    if not isinstance(schema.get("properties"), dict) or not schema["properties"]:
        noting(wrong)("/output_schema/properties", "expected at least one property")
    for fault in wrong:
        add(fault.pointer, fault.message)
    if wrong:
        return  # what is held against a schema in doubt would tell the same again
    given = plain.get("enums", {})
    enums = _sound_enums(given, add)
    if isinstance(given, dict):
        _check_enums(schema["properties"], given, enums, add)
    if plain.get("mode") == "Chooser" and given == {}:
        add("/enums", "expected the values to choose from: the mode is Chooser")
    defaults = plain.get("defaults", {})
    bounded = with_enums(schema, enums)["properties"]
    for name, default in defaults.items() if isinstance(defaults, dict) else ():
        where = pointer("/defaults", name)
        if name in bounded:
            fit(default, bounded[name], where, add)
        else:
            add(where, f"the schema has no property `{name[:MAX_SHOWN]}`{near(name, bounded)}")


def _sound_enums(enums: Any, add: Add) -> dict[str, list[str]]:
    """Those that are lists of different texts; the others are noted."""
    sound = {}
    for name, allowed in enums.items() if isinstance(enums, dict) else ():
        is_texts = isinstance(allowed, list) and all(isinstance(each, str) and each for each in allowed)
        if is_texts and allowed and len(set(allowed)) == len(allowed):
            sound[name] = allowed
        else:
            add(pointer("/enums", name), f"expected a list of different texts, came {came(allowed)}")
    return sound


def _check_enums(properties: dict[str, Any], given: dict[str, Any], enums: dict[str, list[str]], add: Add) -> None:
    """Each field of ``enums`` against the schema, each enum of the schema against what was given."""
    for name, allowed in enums.items():
        where = pointer("/enums", name)
        if name not in properties:
            add(where, f"the schema has no property `{name[:MAX_SHOWN]}`{near(name, properties)}")
            continue
        stated = _enum_of(properties[name])
        if stated is not None:
            _check_equal(allowed, stated, where, add)
    for name, schema in properties.items():
        stated = _enum_of(schema)
        if stated is not None and name not in given:
            add(pointer("/enums", name), f"is missing: the schema has an enum for it, {came(stated[0])} …")


def _check_equal(allowed: list[str], stated: list[Any], where: str, add: Add) -> None:
    for one, other, there in ((allowed, stated, "the schema's enum"), (stated, allowed, "`enums`")):
        lacking = [each for each in one if each not in other and each is not None]
        if lacking:
            add(where, f"{came(lacking[0])} is not in {there}")


def _enum_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """What a field is chosen from: its own enum, or that of its items where several may be chosen."""
    inner = schema.get("items", {}) if schema.get("type") == "array" else schema
    found: list[Any] | None = inner.get("enum")
    return found


def _bounded(schema: Mapping[str, Any], allowed: list[str]) -> dict[str, Any]:
    if schema.get("type") == "array":
        return {**schema, "items": {**schema.get("items", {}), "enum": allowed}}
    return {**schema, "enum": allowed}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


_NAMED: Final = (f"a name of letters, digits, `_`, `.` and `-`, at most {MAX_NAME}", is_prompt_name)
_TEXT: Final = ("text that is not blank", _is_text)
_OBJECT: Final = ("an object", _is_object)
_CHECKS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "agent_name": _NAMED,
    "version": _NAMED,
    "mode": (" or ".join(get_args(Mode)), lambda value: value in get_args(Mode)),
    "system_text": _TEXT,
    "purpose_text": _TEXT,
    "output_schema": _OBJECT,
    "enums": _OBJECT,
    "defaults": _OBJECT,
    "model_name": ("the name of a model", lambda value: _is_text(value) and len(value.split()) == 1),
    "temperature": (
        f"a number from 0 to {MAX_TEMPERATURE}",
        lambda value: _is_number(value) and 0 <= value <= MAX_TEMPERATURE,
    ),
    "max_output_tokens": (
        f"a whole number from 1 to {MAX_OUTPUT_TOKENS}",
        lambda value: isinstance(value, int) and _is_number(value) and 1 <= value <= MAX_OUTPUT_TOKENS,
    ),
    "input_keys": ("a list of different names", _are_names),
}
"""What each key's value must be: in words, and whether a value is."""
