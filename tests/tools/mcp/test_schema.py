"""The schemas of tools of strangers: what is refused before it is used, and what is said of unfit arguments."""

from __future__ import annotations

from typing import Any

import pytest

from organism.tools.mcp.schema import TOO_MANY_CHECKS, ArgumentsSchema

ONE_TEXT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
NODE = {"$ref": "#/$defs/node"}
TWICE = {"twice": {"anyOf": [{"items": {"$ref": "#/$defs/twice"}}, {"prefixItems": [{"$ref": "#/$defs/twice"}]}]}}
LISTS: list[Any] = []
for _ in range(50):
    LISTS = [LISTS]


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
        (of(properties={"a": {"$ref": "#here"}}), "here"),
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
        of(properties={"a": {"$ref": "#/properties/b~1c"}, "b/c": {"type": "string"}}),
        of(properties={f"a{n}": of(properties={f"b{m}": {"type": "string"} for m in range(20)}) for n in range(20)}),
        of(anyOf=[of(properties={"kind": {"const": n}, "owner": NODE}) for n in range(9)], **{"$defs": {"node": of()}}),
        of(properties={"a": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}),
    ],
)
def test_schemas_as_tools_have_them_are_taken(schema: dict[str, Any]) -> None:
    assert ArgumentsSchema(schema).faults({"x": 1}) == (["/a: is missing"] if "required" in schema else [])


def test_of_many_faults_the_first_ten_are_reported() -> None:
    schema = ArgumentsSchema(of(additionalProperties={"type": "string"}))
    faults = schema.faults({f"k{n}": n for n in range(50)})
    assert len(faults) == 10
    assert faults[0] == "/k0: expected text, came 0 (a number)"


def test_a_pointer_is_written_as_json_pointers_are() -> None:
    schema = ArgumentsSchema(of(additionalProperties={"type": "string"}))
    assert schema.faults({"a/b~c": 1}) == ["/a~1b~0c: expected text, came 1 (a number)"]


DEEP: dict[str, Any] = {}
for _ in range(50):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (of(**{"$ref": "#"}), {}),
        (of(allOf=[{"$ref": "#"}]), {}),
        (laughs(40), {}),
        (of(allOf=[of(properties={"a": {"$ref": "#"}})] * 2), DEEP),
        (of(additionalProperties={"$ref": "#"}, properties={"a": {"$ref": "#"}}), DEEP),
        (of(properties={"all": {"items": {"$ref": "#/$defs/twice"}}}, **{"$defs": TWICE}), {"all": LISTS}),
    ],
)
def test_arguments_that_a_schema_looks_at_without_end_are_refused(schema: dict[str, Any], arguments: Any) -> None:
    assert ArgumentsSchema(schema).faults(arguments) == [TOO_MANY_CHECKS]


def test_a_tree_of_arguments_is_looked_at_once() -> None:
    tree = of(properties={side: {"$ref": "#"} for side in ("left", "right")}, additionalProperties=False)
    arguments: dict[str, Any] = {}
    for _ in range(10):
        arguments = {"left": arguments, "right": arguments}
    assert ArgumentsSchema(tree).faults(arguments) == []
