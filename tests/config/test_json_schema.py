"""What does not fit a JSON Schema is named, and what fits is given back clean."""

from __future__ import annotations

from typing import Any

import pytest

from organism.config.json_schema import JsonSchema, fitted

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        (1, TEXT, ": expected text, came 1 (a number)"),
        (1.5, {"type": "integer"}, ": expected a whole number, came 1.5 (a number)"),
        (True, {"type": "integer"}, ": expected a whole number, came true"),
        ({}, {"type": "array"}, ": expected a list, came an object"),
        (None, {"type": ["string", "number"]}, ": expected a number or text, came null"),
        (3, {"type": "string", "enum": ["a"]}, ": expected text, came 3 (a number)"),
        (True, {"enum": [1]}, ": expected one of 1 (a number), came true"),
        (
            "colour",
            {"enum": ["color", "size"]},
            ': expected one of "color", "size", came "colour" (text); did you mean',
        ),
        ("x", {"enum": [str(at) for at in range(30)]}, ': expected one of "0", "1", '),
        (2, {"const": 3}, ": expected 3 (a number), came 2 (a number)"),
        (2, {"minimum": 3}, ": 2 is less than the minimum of 3"),
        (["a", 1], {"items": TEXT}, "/1: expected text, came 1 (a number)"),
        ({"a": [{"b": 1}]}, {"properties": {"a": {"items": {"properties": {"b": TEXT}}}}}, "/a/0/b: expected text"),
        ({}, {"properties": {"a": {}}, "required": ["a/b"]}, "/a~1b: is missing"),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, "/b: `b` is not known here"),
        ("x" * 1000, {"maxLength": 5}, ': "xxx'),
    ],
)
def test_what_does_not_fit_is_named(value: Any, schema: dict[str, Any], message: str) -> None:
    (found,) = JsonSchema(schema).faults(value)
    assert f"{found.pointer}: {found.message}".startswith(message)
    assert len(found.message) < 500


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (3.0, {"type": "integer"}, 3),
        (3.0, {"type": "number"}, 3.0),
        (3, {"type": "number"}, 3),
        (1.0, {"enum": [1]}, 1.0),
        (None, {"type": ["string", "null"]}, None),
        ({"a": 1, "b": 2}, {"properties": {"a": {}}}, {"a": 1}),
        ({"a": 1, "b": 2}, {"properties": {"a": {}}, "additionalProperties": True}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"type": "object"}, {"a": 1, "b": 2}),
        ({"b": 1, "a": 2}, {"properties": {"a": {}, "b": {}}}, {"a": 2, "b": 1}),
        ([{"a": 1, "b": 2}], {"items": {"properties": {"a": {}}}}, [{"a": 1}]),
    ],
)
def test_what_fits_is_given_back_clean(value: Any, schema: dict[str, Any], expected: Any) -> None:
    assert JsonSchema(schema).faults(value) == []
    answer = fitted(value, schema)
    assert (answer, list(answer)) == (expected, list(expected)) if isinstance(answer, dict) else answer == expected
    assert type(answer) is type(expected)


@pytest.mark.parametrize(
    "schema", [{"type": "text"}, {"$ref": "https://elsewhere.example/schema"}, {"pattern": "(?=a)"}]
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"text|elsewhere|look-around|regex"):
        JsonSchema(schema)
