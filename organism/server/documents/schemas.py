"""Records → JSON Schemas (2020-12), as the documents need them: named once, closed, and without titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

import orjson
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import FieldInfo, fields
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypeAliasType, TypedDict, is_typeddict  # pydantic wants these below Python 3.12

from organism.model.words import COMPLETED

Schema = dict[str, Any]
TEMPLATE: Final = "#/components/schemas/{model}"


class _Untitled(GenerateJsonSchema):
    """A field's name says it all: no titles."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - as pydantic calls it
        return False


class Schemas:
    """The schemas of many records. Each record becomes a component; everything else is written where it stands.

    ``others`` are finished components, which replace those of their names.
    """

    def __init__(self, kinds: Iterable[Any], others: Mapping[str, Schema] = MappingProxyType({})) -> None:
        listed = list(dict.fromkeys(kinds))
        inputs: list[Any] = [(at, "validation", TypeAdapter(_readable(kind))) for at, kind in enumerate(listed)]
        made, defined = TypeAdapter.json_schemas(inputs, ref_template=TEMPLATE, schema_generator=_Untitled)
        self._of = {kind: tidied(made[at, "validation"]) for at, kind in enumerate(listed)}
        own = {name: tidied(schema) for name, schema in defined.get("$defs", {}).items()}
        self.components: Mapping[str, Schema] = dict(sorted({**own, **others}.items()))

    def of(self, kind: Any) -> Schema:
        """The schema of one of the kinds: a reference, if it is a record."""
        found: Schema = self._of[kind]
        return found

    def resolved(self, schema: Schema) -> Schema:
        """The schema itself, where this is a reference to it."""
        return self.components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def described(self, kind: Any) -> str:
        description: str = self.resolved(self.of(kind)).get("description", "")
        return description


def _readable(kind: Any) -> Any:
    """The type as pydantic reads it: a Struct as a record, what a ``Meta`` says as a ``Field``, a title as a name.

    msgspec makes schemas too, but has no named types, and sorts the words of a ``Literal``.
    """
    if is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Struct)):
        return _record(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(kind)
    if origin is Literal or not args:
        return Any if kind is Raw else kind
    shown = [part for part in args if part is not UnsetType]
    parts = tuple(_readable(part) for part in shown if part is not Raw or len(shown) == 1)
    whole = Union if origin is UnionType else origin
    return whole[parts if len(parts) > 1 else parts[0]]


@cache
def _record(kind: Any) -> Any:
    if is_typeddict(kind):
        hints, total = get_type_hints(kind, include_extras=True), kind.__total__
    else:
        tag = kind.__struct_config__
        tagged = {} if tag.tag_field is None else {tag.tag_field: Literal[tag.tag]}
        hints, total = {**tagged, **{field.encode_name: _type_of(field) for field in fields(kind)}}, True
    readable = {name: _readable(hint) for name, hint in hints.items()}
    made = TypedDict(kind.__name__, readable, total=total)  # type: ignore[misc]  # its fields are those of another type
    made.__doc__, made.__module__ = kind.__doc__, kind.__module__
    return made


def _type_of(field: FieldInfo) -> Any:
    """Whatever may be unset may be left out, but for what completes each row that is shown."""
    is_completed = COMPLETED in getattr(field.type, "__metadata__", ())
    return NotRequired[field.type] if field.default is UNSET and not is_completed else field.type


@cache
def _annotated(kind: Any) -> Any:
    """The first note that has a title ends what is named so."""
    inner, *notes = get_args(kind)
    made = _readable(inner)
    for note in notes:
        made = Annotated[made, _field(note) if isinstance(note, Meta) else note]
        if isinstance(note, Meta) and note.title is not None:
            made = TypeAliasType(note.title, made)  # type: ignore[misc]  # its name is a text
    return made


def _field(meta: Meta) -> Any:
    said = {name: value for name in _SAID if (value := getattr(meta, name)) is not None}
    return Field(**said, json_schema_extra=meta.extra_json_schema)


_SAID: Final = (
    *("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern"),
    *("description", "examples"),
)
"""What ``Meta`` and ``Field`` call by the same names."""


def example(schema: Schema, components: Mapping[str, Schema]) -> Any:
    """A value that fits the schema, put together of the examples that stand at its fields."""
    values = [schema[name] for name in ("const", "default") if name in schema]
    values += [schema[name][0] for name in ("examples", "enum") if name in schema]
    if values:
        return values[0]
    if "type" not in schema and (inner := _inner(schema, components)) is not None:
        return example(inner, components)
    return _MADE[schema.get("type", "null")](schema, components)


def _inner(schema: Schema, components: Mapping[str, Schema]) -> Schema | None:
    """What the schema refers to, or the first of its choices."""
    if "$ref" in schema:
        return components[schema["$ref"].rpartition("/")[2]]
    choices: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or []
    return choices[0] if choices else None


def _object(schema: Schema, components: Mapping[str, Schema]) -> dict[str, Any]:
    needed = schema.get("required", ())
    shown = {
        name: field for name, field in schema.get("properties", {}).items() if name in needed or not _or_null(field)
    }
    return {name: example(field, components) for name, field in shown.items()}


def _or_null(schema: Schema) -> bool:
    """Whether it may be null, which an example leaves out."""
    saying = {"type", "$ref", "enum", "const", "anyOf", "oneOf"}
    return {"type": "null"} in schema.get("anyOf", ()) or not schema.keys() & saying


_MADE: Final[Mapping[str, Callable[[Schema, Mapping[str, Schema]], Any]]] = {
    "object": _object,
    "array": lambda schema, components: [example(schema["items"], components)],
    "boolean": lambda *_: False,
    "string": lambda *_: "text",
    "integer": lambda *_: 1,
    "number": lambda *_: 1.0,
    "null": lambda *_: None,
}


def tidied(schema: Any) -> Any:
    """The schema with objects of named fields closed, no titles of classes, and Markdown's marks of code.

    Generators of clients stumble over a default of null, which an optional field has anyway, and over ``items: false``
    behind ``prefixItems``, of which ``maxItems`` says the same.
    """
    if isinstance(schema, list):
        return [tidied(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {name: tidied(part) for name, part in schema.items() if not _is_idle(name, part)}
    if tidy.get("type") == "object" and isinstance(tidy.get("properties"), dict):
        tidy.setdefault("additionalProperties", False)
    if isinstance(tidy.get("description"), str):
        tidy["description"] = " ".join(tidy["description"].replace("``", "`").split())
    return tidy


def _is_idle(keyword: str, value: Any) -> bool:
    is_title = keyword == "title" and isinstance(value, str)
    return is_title or (keyword == "default" and value is None) or (keyword == "items" and value is False)


WIDTH: Final = 120

_PLAIN: Final[Mapping[str, str]] = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def type_of(schema: Schema) -> str:
    """The type in TypeScript, which is how people are shown it too."""
    if "$ref" in schema:
        named: str = schema["$ref"].rpartition("/")[2]
        return named
    if "const" in schema or "enum" in schema:
        return one_of([_literal(value) for value in schema.get("enum", [schema.get("const")])])
    if "anyOf" in schema:
        return one_of([type_of(choice) for choice in schema["anyOf"]])
    if schema.get("type") == "array":
        return _list_type(schema)
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {type_of(values) if isinstance(values, dict) else 'unknown'}>"
    return _PLAIN.get(schema.get("type", ""), "unknown")


def _list_type(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(map(type_of, schema['prefixItems']))}]"
    item = type_of(schema["items"])
    return f"Array<{item}>" if "|" in item else f"{item}[]"


def one_of(choices: Sequence[str]) -> str:
    listed = list(dict.fromkeys(choices))
    line = " | ".join(listed)
    return line if len(line) < WIDTH // 2 else "".join(f"\n    | {choice}" for choice in listed)


def _literal(value: Any) -> str:
    return orjson.dumps(value).decode()
