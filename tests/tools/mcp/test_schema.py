"""The schemas of tools of strangers: what is refused before it is used, and what is said of unfit arguments."""

from __future__ import annotations

from typing import Any

import pytest

from organism.tools.mcp import schema as schemas
from organism.tools.mcp.schema import ArgumentsSchema

ONE_TEXT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
NODE = {"$ref": "#/$defs/node"}


def of(**words: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", **words}


def laughs(count: int) -> dict[str, Any]:
    """A schema of few lines that looks at one place 2 ** count times."""
    inner = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(count)}
    return of(allOf=[{"$ref": "#/$defs/d0"}], **{"$defs": {**inner, f"d{count}": {"type": "object"}}})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({}, "is not of an object"),
        ({"type": "array"}, "is not of an object"),
        ({"type": ["object", "null"]}, "is not of an object"),
        (of(description="x" * 70_000), "at most 65536 are taken"),
        (of(properties=5), "5 is not of type"),
        (of(properties={"a": {"pattern": "("}}), "pattern"),
        (of(properties={"a": {"pattern": "(x{1,1000}){1,1000}"}}), "pattern"),
        (of(properties={"a": {"$ref": "https://evil.example/schema"}}), "evil.example"),
        (of(properties={"a": {"$ref": "file:///etc/passwd"}}), "etc/passwd"),
        (of(properties={"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}), "is not within it"),
        (of(properties={"a": {"$ref": "#/$defs/none"}}), "defs/none"),
        (of(**{"$ref": "#"}), "without end"),
        (of(allOf=[{"$ref": "#"}]), "without end"),
        (laughs(40), "without end"),
        (of(allOf=[of(properties={"a": {"$ref": "#"}})] * 2), "without end"),
        (of(additionalProperties={"$ref": "#"}, properties={"a": {"$ref": "#"}}), "without end"),
        (of(anyOf=[{"items": NODE}, {"prefixItems": [NODE]}], **{"$defs": {"node": {"$ref": "#"}}}), "without end"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ArgumentsSchema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        of(),
        ONE_TEXT,
        of(**{"$defs": {"node": of(properties={"left": {**NODE}, "right": {**NODE}})}}, properties={"tree": NODE}),
        of(properties={side: of(properties={"value": {"$ref": "#"}}) for side in ("left", "right")}),
        of(**{"$defs": {"node": of(properties={"all": {"type": "array", "items": NODE}})}}, properties={"a": NODE}),
        of(properties={"a": {"$ref": "#/properties/b~1c"}, "b/c": {"$anchor": "here"}, "d": {"$ref": "#here"}}),
        of(properties={f"a{n}": of(properties={f"b{m}": {"type": "string"} for m in range(20)}) for n in range(20)}),
        of(anyOf=[of(properties={"kind": {"const": n}, "owner": NODE}) for n in range(9)], **{"$defs": {"node": of()}}),
        of(properties={"a": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}),
    ],
)
def test_schemas_as_tools_have_them_are_taken(schema: dict[str, Any]) -> None:
    assert ArgumentsSchema(schema).faults({"x": 1}) == (["/a: is missing"] if "required" in schema else [])


def test_of_many_faults_the_first_ten_are_told() -> None:
    schema = ArgumentsSchema(of(additionalProperties={"type": "string"}))
    faults = schema.faults({f"k{n}": n for n in range(50)})
    assert len(faults) == 10
    assert faults[0] == "/k0: expected text, came 0 (a number)"


def test_a_pointer_is_written_as_json_pointers_are() -> None:
    schema = ArgumentsSchema(of(additionalProperties={"type": "string"}))
    assert schema.faults({"a/b~c": 1}) == ["/a~1b~0c: expected text, came 1 (a number)"]


def test_where_it_would_take_long_it_is_not_said_where(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = ArgumentsSchema(ONE_TEXT)
    monkeypatch.setattr(schemas, "MOST_WORK", 10)
    assert schema.faults({"a": 5}) == ["/: these are not of the tool's schema, and too many to say where"]
    assert schema.faults({"a": "fits"}) == []
