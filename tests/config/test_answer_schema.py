"""The words of a schema, and what fits them."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.config.answer_schema import check_schema, fit, noting
from organism.errors import Fault

TEXT = {"type": "string"}


def wrong_words(schema: Any) -> dict[str, str]:
    faults: list[Fault] = []
    check_schema(schema, "", noting(faults))
    return {fault.pointer: fault.message for fault in faults}


def wrong(value: Any, schema: dict[str, Any]) -> list[str]:
    faults: list[Fault] = []
    fit(value, schema, "", noting(faults))
    return [f"{fault.pointer}: {fault.message}" for fault in faults]


def fitted(value: Any, schema: dict[str, Any]) -> Any:
    assert wrong(value, schema) == []
    return fit(value, schema, "", noting([]))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("type", "text"), ("type", []), ("type", ["string", "text"]), ("type", None), ("type", {}), ("enum", []),
        ("enum", "a"), ("enum", [1, 1.0]), ("enum", [{}, {}]), ("properties", []), ("items", [TEXT]), ("items", True),
        ("required", "a"), ("required", [1]), ("additionalProperties", {}), ("uniqueItems", 1), ("minItems", -1),
        ("maxItems", 1.5), ("minLength", True), ("maxLength", "3"), ("minimum", "0"), ("exclusiveMaximum", True),
    ],
)  # fmt: skip
def test_a_word_with_a_wrong_value_is_refused(word: str, value: Any) -> None:
    assert list(wrong_words({"properties": {"x": {word: value}}})) == [f"/properties/x/{word}"]


@pytest.mark.parametrize("word", ["anyOf", "$ref", "pattern", "patternProperties", "if", "not", "propertyNames"])
def test_a_word_that_is_not_known_is_refused(word: str) -> None:
    ((where, what),) = wrong_words({word: {}}).items()
    assert where == f"/{word}"
    assert what.startswith(f"the word `{word}` is not taken here")


def test_a_default_stands_elsewhere() -> None:
    assert "stands in `defaults`" in wrong_words({"default": 1})["/default"]


def test_annotations_are_taken() -> None:
    words = ("$schema", "$id", "$comment", "title", "description", "examples", "format")
    assert wrong_words(dict.fromkeys(words, "x")) == {}


def test_schemas_within_are_checked_with_their_place() -> None:
    schema = {"properties": {"a/b": {"items": {"properties": {"c": {"type": "x"}}}}}}
    assert list(wrong_words(schema)) == ["/properties/a~1b/items/properties/c/type"]
    assert wrong_words({"items": {"properties": {"a": 3}}}) == {
        "/items/properties/a": "expected a schema, came 3 (a number)"
    }


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        (1, TEXT, ": expected text, came 1 (a number)"),
        ("1", {"type": "integer"}, ': expected a whole number, came "1" (text)'),
        (1.5, {"type": "integer"}, ": expected a whole number, came 1.5 (a number)"),
        (True, {"type": "integer"}, ": expected a whole number, came true"),
        (True, {"type": "number"}, ": expected a number, came true"),
        (0, {"type": "boolean"}, ": expected true or false, came 0 (a number)"),
        ({}, {"type": "array"}, ": expected a list, came an object"),
        ([], {"type": "object"}, ": expected an object, came a list"),
        (None, {"type": ["string", "number"]}, ": expected text or a number, came null"),
        ("c", {"enum": ["a", "b"]}, ': expected one of "a", "b", came "c" (text)'),
        (True, {"enum": [1]}, ": expected one of 1 (a number), came true"),
        (1, {"enum": [True]}, ": expected one of true, came 1 (a number)"),
        ([1], {"enum": [[2]]}, ": expected one of a list, came a list"),
        ("B", {"enum": ["a", "b"]}, ': expected one of "a", "b", came "B" (text); did you mean `b`?'),
        (
            "colour",
            {"enum": ["color", "size"]},
            ': expected one of "color", "size", came "colour" (text); did you mean',
        ),
        ("x", {"enum": [str(at) for at in range(30)]}, ': expected one of "0", "1", '),
        (2, {"const": 3}, ": expected 3 (a number), came 2 (a number)"),
        (2, {"minimum": 3}, ": expected at least 3, came 2 (a number)"),
        (4, {"maximum": 3}, ": expected at most 3, came 4 (a number)"),
        (3, {"exclusiveMinimum": 3}, ": expected more than 3, came 3 (a number)"),
        (3, {"exclusiveMaximum": 3}, ": expected less than 3, came 3 (a number)"),
        ("ab", {"minLength": 3}, ": expected at least 3 characters, came 2"),
        ("ab", {"maxLength": 1}, ": expected at most 1 characters, came 2"),
        ([1], {"minItems": 2}, ": expected at least 2 items, came 1"),
        ([1], {"maxItems": 0}, ": expected at most 0 items, came 1"),
        ([1, 1.0], {"uniqueItems": True}, ": expected different items, came one twice"),
        (["a", 1], {"items": TEXT}, "/1: expected text, came 1 (a number)"),
        ({"a": [{"b": 1}]}, {"properties": {"a": {"items": {"properties": {"b": TEXT}}}}}, "/a/0/b: expected text"),
        ({}, {"properties": {"a": {}}, "required": ["a"]}, "/a: is missing"),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, "/b: there is no field `b`"),
    ],
)
def test_what_does_not_fit_is_named(value: Any, schema: dict[str, Any], message: str) -> None:
    (found,) = wrong(value, schema)
    assert found.startswith(message)


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
        ("größe", {"maxLength": 5}, "größe"),
    ],
)
def test_what_fits_is_given_back_clean(value: Any, schema: dict[str, Any], expected: Any) -> None:
    answer = fitted(value, schema)
    assert answer == expected
    assert type(answer) is type(expected)


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0, "", "a", "ab", "b"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS | st.lists(KINDS, min_size=1, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=3, unique_by=lambda each: (type(each) is bool, each)),
        "const": SCALARS,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "additionalProperties": st.booleans(),
    },
)
SCHEMAS = st.recursive(
    PLAIN,
    lambda inner: st.builds(
        lambda plain, properties, items, required: {
            **plain,
            "properties": properties,
            "items": items,
            "required": sorted(set(required) & set(properties)),
        },
        PLAIN,
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        inner,
        st.lists(st.sampled_from("abc")),
    ),
    max_leaves=5,
)


@given(schema=SCHEMAS, value=VALUES)
def test_it_says_what_a_second_opinion_says(schema: dict[str, Any], value: Any) -> None:
    assert wrong_words(schema) == {}
    assert (wrong(value, schema) == []) == jsonschema_rs.is_valid(schema, value)
