"""Prompts of AgentStack: ``config/agents/{name}/{version}.json`` → a checked record; faults by JSON pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from organism.config.faults import near
from organism.config.json_schema import TYPES, JsonSchema
from organism.config.json_text import MAX_SHOWN, NotJson, came, read_json
from organism.errors import Fault, pointer

Mode = Literal["Chooser", "Writer", "Extractor"]
PromptKey = tuple[str, str]
"""Name and version."""

PROMPT_FOLDER: Final = "config/agents"
MAX_NAME: Final = 128

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


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


Prompts = Mapping[PromptKey, PromptConfig]

SERVED: Final[ContextVar[Prompts | None]] = ContextVar("organism_served_prompts", default=None)
"""The prompts of the handling under way, as they were loaded with its code; None outside of all handlings.

``AgentFactory.create`` is asked for a name and a version alone: the folder follows from the handling that asks. The
pump alone sets it.
"""


class BadPrompt(ValueError):
    """A file of a prompt is not valid. ``faults`` has all that is wrong, by JSON pointers."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


def is_prompt_name(name: object) -> bool:
    """Whether it may name a prompt or a version: no such name leads out of the folder."""
    return isinstance(name, str) and len(name) <= MAX_NAME and bool(_NAME.fullmatch(name))


def prompt_path(name: str, version: str) -> str:
    """Where the file lies, seen from the folder of organism.yaml."""
    return f"{PROMPT_FOLDER}/{name}/{version}.json"


def read_prompt(text: str, name: str, version: str) -> PromptConfig:
    """The prompt in the text of ``{name}/{version}.json``. Raises ``BadPrompt``."""
    try:
        plain = read_json(text)
    except NotJson as error:
        raise BadPrompt(error.faults) from None
    if faults := _faults(plain, (name, version)):
        raise BadPrompt(faults)
    return PromptConfig(**{**plain, "input_keys": tuple(plain.get("input_keys", ()))})


def with_enums(schema: Mapping[str, Any], enums: Mapping[str, list[str]]) -> dict[str, Any]:
    """The schema that answers must fit: the file's, without its notes, with the bounds that only ``enums`` gives."""
    schema = _without_notes(schema)
    properties = {**schema.get("properties", {})}
    for name, allowed in enums.items():
        if name in properties and _enum_of(properties[name]) is None:
            field = properties[name]
            is_list = field.get("type") == "array"
            bound = {"items": {**field.get("items", {}), "enum": allowed}} if is_list else {"enum": allowed}
            properties[name] = {**field, **bound}
    return {**schema, "properties": properties}


def _without_notes(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the words that only describe: another draft or format must not change what is checked."""
    bare = {word: value for word, value in schema.items() if word not in _NOTES}
    if "properties" in bare:
        bare["properties"] = {name: _without_notes(each) for name, each in bare["properties"].items()}
    if "items" in bare:
        bare["items"] = _without_notes(bare["items"])
    return bare


def filled(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The value with defaults for what is missing; what is there stays, even null."""
    return {**{name: default for name, default in defaults.items() if name not in value}, **value}


def _faults(plain: Any, key: PromptKey) -> list[Fault]:
    """The file by itself, then ``enums`` against its schema in both directions, then ``defaults`` against both."""
    faults = JsonSchema(_FILE).faults(plain)
    if not isinstance(plain, dict):
        return faults
    for each, asked in zip(("agent_name", "version"), key, strict=True):
        if isinstance(plain.get(each), str) and plain[each] != asked:
            message = f"expected `{asked}`, as the file's path says, came {came(plain[each])}"
            faults.append(Fault(pointer("", each), message))
    wrong = [fault.pointer for fault in faults]
    if "output_schema" not in plain or any(each.startswith("/output_schema") for each in wrong):
        return faults  # checks against a faulty schema would only repeat its faults
    schema, given = plain["output_schema"], plain.get("enums", {})
    properties = schema["properties"]
    for name in schema.get("required", ()):
        if name not in properties:
            faults.append(_no_property("/output_schema/required", name, properties))
    enums = {}
    if isinstance(given, dict):
        enums = {name: allowed for name, allowed in given.items() if not _is_wrong(pointer("/enums", name), wrong)}
        faults += _enum_faults(properties, given, enums)
    if plain.get("mode") == "Chooser" and given == {}:
        faults.append(Fault("/enums", "expected the values to choose from: the mode is Chooser"))
    defaults = plain.get("defaults", {})
    bounded = with_enums(schema, enums)["properties"]
    for name, default in defaults.items() if isinstance(defaults, dict) else ():
        where = pointer("/defaults", name)
        known = name in bounded
        faults += JsonSchema(bounded[name]).faults(default, where) if known else [_no_property(where, name, bounded)]
    return faults


def _is_wrong(where: str, wrong: list[str]) -> bool:
    return any(each == where or each.startswith(f"{where}/") for each in wrong)


def _no_property(where: str, name: str, properties: Mapping[str, Any]) -> Fault:
    return Fault(where, f"the schema has no property `{name[:MAX_SHOWN]}`{near(name, properties)}")


def _enum_faults(
    properties: Mapping[str, Any], given: Mapping[str, Any], enums: Mapping[str, list[str]]
) -> Iterator[Fault]:
    """Each field of ``enums`` against the schema, each enum of the schema against what was given."""
    for name, allowed in enums.items():
        where = pointer("/enums", name)
        if name not in properties:
            yield _no_property(where, name, properties)
            continue
        stated: list[Any] = _enum_of(properties[name]) or allowed
        for one, other, there in ((allowed, stated, "the schema's enum"), (stated, allowed, "`enums`")):
            for lacking in [each for each in one if each not in other and each is not None][:1]:
                yield Fault(where, f"{came(lacking)} is not in {there}")
    for name, schema in properties.items():
        chosen = _enum_of(schema)
        if chosen and name not in given:
            message = f"is missing: the schema has an enum for it, {came(chosen[0])} …"
            yield Fault(pointer("/enums", name), message)


def _enum_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of a field: its own enum, or that of its items where several may be chosen."""
    inner = schema.get("items", {}) if schema.get("type") == "array" else schema
    found: list[Any] | None = inner.get("enum")
    return found


_TEXT: Final = {"type": "string", "pattern": r"\S"}
_SCHEMA: Final = {"$ref": "#/$defs/schema"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "number"}
_TRUTH: Final = {"type": "boolean"}
_NOTES: Final = ("$schema", "$id", "$comment", "title", "description", "examples", "format")
_DIFFERENT: Final = {"type": "array", "minItems": 1, "uniqueItems": True}
_ONE_TYPE: Final = {"enum": [*TYPES]}
_FILE: Final = {
        "type": "object",
        "additionalProperties": False,
        "required": [
            "agent_name", "version", "mode", "system_text", "purpose_text", "output_schema", "model_name",
        ],
        "properties": {
            "agent_name": _TEXT,
            "version": _TEXT,
            "mode": {"enum": [*get_args(Mode)]},
            "system_text": _TEXT,
            "purpose_text": _TEXT,
            "output_schema": {
                **_SCHEMA,
                "required": ["type", "properties"],
                "properties": {"type": {"const": "object"}, "properties": {"minProperties": 1}},
            },
            "enums": {
                "type": "object",
                "additionalProperties": {**_DIFFERENT, "items": {"type": "string", "minLength": 1}},
            },
            "defaults": {"type": "object"},
            "model_name": {"type": "string", "pattern": r"^\S+$"},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "max_output_tokens": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            "input_keys": {"type": "array", "items": _TEXT, "uniqueItems": True},
        },
        "$defs": {
            "schema": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **dict.fromkeys(_NOTES, True),
                    "type": {"if": {"type": "array"}, "then": {**_DIFFERENT, "items": _ONE_TYPE}, "else": _ONE_TYPE},
                    "enum": _DIFFERENT,
                    "const": True,
                    "properties": {"type": "object", "additionalProperties": _SCHEMA},
                    "required": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                    "additionalProperties": _TRUTH,
                    "items": _SCHEMA,
                    "uniqueItems": _TRUTH,
                    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _COUNT),
                    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
                },
            }
        },
    }  # fmt: skip
"""What a file says. Of JSON Schema it may use what every provider holds a model to: no references, no choices between
schemas, no patterns. Another word is refused when the file is read, so that none is ignored in silence."""
