"""Files of prompts: what is taken, and what is refused, all of it at once, by JSON pointers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from organism.config.prompts import BadPrompt, read_prompt
from tests.agents.stack import a2, prompt_of

GONE = object()


def changed(path: str, value: Any) -> dict[str, Any]:
    """The file of A2 with one value in another's place, or gone."""
    plain = a2()
    *way, last = path.split("/")[1:]
    owner: Any = plain
    for step in way:
        owner = owner[step]
    if isinstance(owner, list):
        owner[int(last)] = value
    elif value is GONE:
        del owner[last]
    else:
        owner[last] = value
    return plain


def faults(plain: Any) -> dict[str, str]:
    text = plain if isinstance(plain, str) else json.dumps(plain)
    with pytest.raises(BadPrompt) as refused:
        read_prompt(text, "A2", "v1")
    return {fault.pointer: fault.message for fault in refused.value.faults}


def test_the_shipped_file_is_taken() -> None:
    assert read_prompt(json.dumps(a2()), "A2", "v1").mode == "Chooser"


@pytest.mark.parametrize(
    "key", ["agent_name", "version", "mode", "system_text", "purpose_text", "output_schema", "model_name"]
)
def test_each_key_that_must_be_there_is_named(key: str) -> None:
    assert faults(changed(f"/{key}", GONE)) == {f"/{key}": "is missing"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("/agent_name", "A3", 'expected `A2`, as the file\'s path says, came "A3" (text)'),
        ("/agent_name", 2, "expected text, came 2 (a number)"),
        ("/version", "v2", 'expected `v1`, as the file\'s path says, came "v2" (text)'),
        ("/mode", "chooser", 'expected one of "Chooser", "Writer", "Extractor", came "chooser" (text)'),
        ("/mode", ["Writer"], 'expected one of "Chooser", "Writer", "Extractor", came a list'),
        ("/system_text", " \n", ""),
        ("/purpose_text", ["a"], "expected text, came a list"),
        ("/model_name", "", ""),
        ("/model_name", "gpt 4", ""),
        ("/temperature", -0.1, "-0.1 is less than the minimum of 0"),
        ("/temperature", True, "expected a number, came true"),
        ("/max_output_tokens", 0, "0 is less than the minimum of 1"),
        ("/max_output_tokens", 1.5, "expected a whole number, came 1.5 (a number)"),
        ("/input_keys", "task", "expected a list"),
        ("/input_keys", ["a", "a"], '["a","a"] has non-unique elements'),
        ("/temprature", 0, "`temprature` is not known here"),
        ("/enums", [], "expected an object, came a list"),
        ("/enums/tone", [], ""),
        ("/enums/tone", "direct", ""),
        ("/enums/tone", ["direct", "direct"], ""),
        ("/enums/tone/1", 1, ""),
        ("/enums/tone/0", "", ""),
        ("/defaults", None, "expected an object, came null"),
        ("/output_schema", "object", 'expected an object, came "object" (text)'),
        ("/output_schema/type", "array", 'expected "object" (text), came "array" (text)'),
        ("/output_schema/type", GONE, "is missing"),
        ("/output_schema/properties", {}, ""),
        ("/output_schema/properties", GONE, "is missing"),
        ("/output_schema/properties/tone/type", "text", 'expected one of "string", "integer"'),
        ("/output_schema/properties/tone/enum", [], ""),
        ("/output_schema/properties/tone/minLength", True, "expected a whole number, came true"),
        ("/output_schema/properties/tone/items", True, "expected an object"),
        ("/output_schema/properties/tone/pattern", ".*", "`pattern` is not known here"),
        ("/output_schema/properties/tone/default", "x", "`default` is not known here"),
        ("/output_schema/oneOf", [], "`oneOf` is not known here"),
        ("/output_schema/required", ["tonne"], "the schema has no property `tonne`; did you"),
    ],
)
def test_each_wrong_value_is_refused_where_it_stands(path: str, value: Any, message: str) -> None:
    found = faults(changed(path, value))
    assert list(found) == [path]
    assert found[path].startswith(message)


def test_the_schemas_enum_and_enums_must_be_the_same_in_any_order() -> None:
    read_prompt(json.dumps(changed("/enums/tone", ["formal", "direct", "friendly"])), "A2", "v1")
    found = faults(changed("/enums/tone", ["direct", "loud", "formal"]))
    assert found == {"/enums/tone": '"friendly" (text) is not in `enums`'}
    assert faults(changed("/enums/tone", ["direct", "friendly", "formal", "loud"])) == {
        "/enums/tone": '"loud" (text) is not in the schema\'s enum'
    }


def test_enums_need_a_property_and_an_enum_of_the_schema_needs_enums() -> None:
    assert faults(changed("/enums/tonne", ["direct"])) == {
        "/enums/tonne": "the schema has no property `tonne`; did you mean `tone`?"
    }
    assert faults(changed("/enums/tone", GONE)) == {
        "/enums/tone": 'is missing: the schema has an enum for it, "direct" (text) …'
    }


def test_a_property_without_an_enum_may_be_bounded_by_enums_alone() -> None:
    plain = changed("/output_schema/properties/tone/enum", GONE)
    assert read_prompt(json.dumps(plain), "A2", "v1").enums["tone"] == ["direct", "friendly", "formal"]
    plain["defaults"]["tone"] = "loud"
    assert faults(plain) == {
        "/defaults/tone": 'expected one of "direct", "friendly", "formal", came "loud" (text)',
    }


def test_what_several_are_chosen_from_stands_at_the_items() -> None:
    several = {"type": "array", "items": {"type": "string", "enum": ["direct", "formal"]}}
    plain = changed("/output_schema/properties/tone", several)
    del plain["defaults"]["tone"]
    assert faults(plain) == {"/enums/tone": '"friendly" (text) is not in the schema\'s enum'}
    plain["enums"]["tone"] = ["direct", "formal"]
    assert read_prompt(json.dumps(plain), "A2", "v1").enums["tone"] == ["direct", "formal"]


def test_null_may_be_chosen_where_the_schema_takes_it() -> None:
    plain = changed("/output_schema/properties/tone", {"type": ["string", "null"], "enum": ["direct", None]})
    plain["enums"]["tone"] = ["direct"]
    assert read_prompt(json.dumps(plain), "A2", "v1").enums["tone"] == ["direct"]


def test_notes_of_a_schema_change_nothing_of_what_is_checked() -> None:
    noted = {
        "type": "string", "$schema": "http://elsewhere.example/x", "$id": 5, "format": "date", "$comment": 1,
        "title": 2, "description": 3, "examples": 4,
    }  # fmt: skip
    plain = changed("/output_schema/properties/note", noted)
    plain["output_schema"]["$schema"] = "http://json-schema.org/draft-07/schema#"
    plain["defaults"]["note"] = "no date"
    answer = {"system": "Friend", "audience": "Self", "tone": "formal", "response_depth": "short", "confidence": "low"}
    assert prompt_of(plain).parse_and_validate(answer) == {**answer, "note": "no date"}
    assert faults(changed("/output_schema/required", ["tone", "tone"])).keys() == {"/output_schema/required"}


def test_a_chooser_has_something_to_choose_from() -> None:
    plain = {**a2(), "enums": {}, "defaults": {}}
    plain["output_schema"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert faults(plain) == {"/enums": "expected the values to choose from: the mode is Chooser"}
    assert read_prompt(json.dumps({**plain, "mode": "Writer"}), "A2", "v1").enums == {}


@pytest.mark.parametrize(
    ("name", "default", "message"),
    [
        ("tone", "loud", "expected one of"),
        ("tone", None, "expected text, came null"),
        ("tonne", "direct", "the schema has no property `tonne`; did you mean `tone`?"),
        ("a/b~c", "x", "the schema has no property `a/b~c`"),
    ],
)
def test_a_default_must_fit_the_schema(name: str, default: Any, message: str) -> None:
    plain = a2()
    plain["defaults"][name] = default
    ((where, what),) = faults(plain).items()
    assert where == "/defaults/" + name.replace("~", "~0").replace("/", "~1")
    assert what.startswith(message)


@pytest.mark.parametrize(
    ("text", "pointer", "message"),
    [
        ("", "", "this is not JSON (line 1, column 1): Expecting value"),
        ("[]", "", "expected an object, came a list"),
        ("null", "", "expected an object, came null"),
        ("{\n  // a comment\n}", "", "this is not JSON (line 2, column 3): Expecting property name"),
        ('{"mode": "Writer",}', "", "this is not JSON (line 1, column"),
        ("agent_name: A2", "", "this is not JSON (line 1, column 1)"),
        ('{"mode": "Writer"} {}', "", "this is not JSON (line 1, column 20): Extra data"),
        ('{"a": {"b/c": 1, "b/c": 2}}', "/a/b~1c", "this key stands here twice"),
        ('{"a": NaN}', "/a", "expected a value of JSON, came NaN"),
        ('{"a": "\n"}', "", "this is not JSON (line 1, column 8): Invalid control character"),
        ('{"a":' * 100 + "1" + "}" * 100, "/a" * 64, "nested deeper than 64 levels"),
        ("[" * 100_000, "", "nested deeper than 64 levels"),
        ('{"a": "\\ud800"}', "/a", "expected characters, came half of a surrogate pair"),
    ],
)
def test_what_is_not_json_is_refused(text: str, pointer: str, message: str) -> None:
    ((where, what),) = faults(text).items()
    assert where == pointer
    assert what.startswith(message)


def test_all_faults_are_reported_at_once() -> None:
    plain = a2()
    del plain["purpose_text"]
    plain["mode"] = "Guesser"
    plain["temperature"] = 9
    plain["enums"]["tone"] = ["direct"]
    plain["defaults"]["confidence"] = 3
    assert list(faults(plain)) == [
        "/purpose_text",
        "/mode",
        "/temperature",
        "/enums/tone",
        "/defaults/confidence",
    ]
