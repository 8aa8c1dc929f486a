"""Whatever a model gives is read as documented, or refused by name: never another exception, never a hang."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.agents.agent_prompt import MAX_TEXT, AgentPrompt, AgentPromptValidationError
from organism.model.completion import Completion
from tests.agents.stack import a2, prompt_of, prompt_with

GOOD = {"system": "Friend", "audience": "Self", "tone": "formal", "response_depth": "short", "confidence": "low"}
TEXT = json.dumps(GOOD)
OTHER = json.dumps({**GOOD, "tone": "direct"})
WRONG = json.dumps({**GOOD, "tone": "loud"})


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name not in names})


def put(name: str, value: Any) -> str:
    return json.dumps({**GOOD, name: value})


def chat(content: Any, finish: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.fixture(scope="module")
def prompt() -> AgentPrompt:
    return prompt_of(a2())


@pytest.mark.parametrize(
    "raw",
    [
        GOOD,
        TEXT,
        TEXT.encode(),
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"```python\nprint(1)\n```\n```json\n{TEXT}\n```",
        f"Sure!\n\n{TEXT}\n\nAnything else?",
        f'He said "{TEXT}"',
        f"Use {{braces}} like so: {TEXT}",
        f"A set {{1, 2}} and {{}} of nothing: {TEXT}",
        f"{TEXT} and again: {json.dumps(dict(reversed(GOOD.items())))}",
        f'{TEXT}\n{{"done": true}}',
        f"First I thought {WRONG}, but no: {TEXT}",
        f'{{"a": 1, "a": 2}} is wrong, {TEXT} is right',
        f"<think>What about {OTHER}?</think>{TEXT}",
        f"What about {OTHER}?</think>{TEXT}",
        TEXT.replace("system", "\\u0073ystem"),
        json.dumps({**GOOD, "reason": "because } of { this ```"}),
        json.dumps({**GOOD, "reason": 'he said \\"{\\" and "}"'}),
        put("reason", "").replace('"reason": ""', '"reason": "two\nlines\tand a tab"'),
        put("reason", "\u2028\x7f\x85"),
        put("x", json.loads(nested(60))),
        Completion(model="m", text=TEXT),
        Completion(model="m", text=f"```json\n{TEXT}\n```", finish="length"),
        chat(TEXT),
        chat([{"type": "text", "text": TEXT[:9]}, {"type": "image_url"}, {"type": "text", "text": TEXT[9:]}]),
        chat(GOOD),
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=TEXT), finish_reason="stop")]),
    ],
)
def test_an_answer_is_found_in_any_of_these(prompt: AgentPrompt, raw: Any) -> None:
    assert prompt.parse_and_validate(raw) == GOOD


@pytest.mark.parametrize(
    ("raw", "pointer", "message"),
    [
        ("", "", "no JSON object stands in the text"),
        ("I don't know.", "", 'no JSON object stands in the text: "I don\'t know." (text)'),
        ("42", "", "no JSON object stands in the text"),
        (json.dumps(TEXT), "", "no JSON object stands in the text"),
        (str(GOOD), "", "no JSON object stands in the text"),
        ("{" * 50_000, "", "no JSON object stands in the text"),
        ("x" * (MAX_TEXT + 1), "", f"expected at most {MAX_TEXT} characters, came {MAX_TEXT + 1}"),
        ("[]", "", "expected one JSON object, came a list"),
        (f"[{TEXT}]", "", "expected one JSON object, came a list"),
        (TEXT[:-1], "", "what begins at character 1 breaks off at"),
        (TEXT.replace("}", ",}"), "", "what begins at character 1 breaks off at"),
        (TEXT.replace(",", " // comment\n,", 1), "", "what begins at character 1 breaks off at"),
        (nested(100), "/a" * 64, "nested deeper than 64 levels"),
        ('{"a"' * 60_000, "", "more than 1000 brackets that may begin an object or a list"),
        (f"{TEXT}\n" * 1001, "", "more than 1000 brackets that may begin an object or a list"),
        (f"{OTHER}\n{TEXT}", "", "expected one JSON object, came 2 different ones that fit"),
        (f'{{"a": 1}} {WRONG}', "/tone", "expected one of"),
        (WRONG, "/tone", 'expected one of "direct", "friendly", "formal", came "loud" (text)'),
        (
            put("tone", "Formal"),
            "/tone",
            'expected one of "direct", "friendly", "formal", came "Formal" (text); did you',
        ),
        (put("tone", "direct, formal"), "/tone", "expected one of"),
        (put("tone", None), "/tone", "expected text, came null"),
        (put("tone", ["formal"]), "/tone", "expected text, came a list"),
        (without("system"), "/system", "is missing"),
        (TEXT.replace('"system"', '"System"'), "/system", "is missing"),
        ("{}", "/system", "is missing"),
        (json.dumps({"labels": GOOD}), "/system", "is missing"),
        (TEXT.replace("{", '{"tone": "direct", ', 1), "/tone", "this key stands here twice"),
        (TEXT.replace('"low"', "NaN"), "/confidence", "expected a value of JSON, came NaN"),
        (TEXT.replace('"low"', "1e999"), "/confidence", "expected a number that can be held, came 1e999"),
        (TEXT.replace('"low"', "9" * 5000), "/confidence", "expected a number of at most 40 digits, came one of 5000"),
        (TEXT.replace("low", "\ud800"), "/confidence", "expected characters, came half of a surrogate pair"),
        (None, "", "expected a JSON object or a text that holds one, came a NoneType"),
        ([GOOD], "", "expected a JSON object or a text that holds one, came a list"),
        (GOOD | {"tone": float("nan")}, "/tone", "expected a value of JSON, came NaN"),
        (GOOD | {"tone": {1, 2}}, "", "expected an object of JSON: Object of type set"),
        (GOOD | {"x": json.loads(nested(70))}, "/x" + "/a" * 63, "nested deeper than 64 levels"),
        (chat(None, "content_filter"), "", "the model's message has no text (it finished with `content_filter`)"),
        (chat(""), "", "the model's message has no text (it finished with `stop`)"),
        ({"error": {"message": "overloaded"}}, "/system", "is missing"),
    ],
)
def test_anything_else_is_refused_by_name(prompt: AgentPrompt, raw: Any, pointer: str, message: str) -> None:
    with pytest.raises(AgentPromptValidationError) as refused:
        prompt.parse_and_validate(raw)
    first = refused.value.faults[0]
    assert first.pointer == pointer
    assert first.message.startswith(message)


def test_every_field_that_does_not_fit_is_named(prompt: AgentPrompt) -> None:
    with pytest.raises(AgentPromptValidationError) as refused:
        prompt.parse_and_validate({"audience": "Cat", "tone": 3, "confidence": None})
    assert str(refused.value) == (
        "The answer to A2@v1 does not fit: /system: is missing; "
        '/audience: expected one of "Developer", "Manager", "Friend", "Self", came "Cat" (text); '
        "/tone: expected text, came 3 (a number); /confidence: expected text, came null."
    )


def test_an_answer_of_a_field_named_choices_is_no_completion() -> None:
    prompt = prompt_with("Extractor", {"choices": {"type": "array", "items": {"type": "string"}}})
    assert prompt.parse_and_validate({"choices": ["a", "b"]}) == {"choices": ["a", "b"]}


def test_the_answer_shares_nothing_with_what_was_given() -> None:
    prompt = prompt_with("Extractor", {"n": {"type": "object"}}, defaults={"n": {"deep": [1]}})
    given: dict[str, Any] = {"n": {"deep": [3]}}
    prompt.parse_and_validate(given)["n"]["deep"].append(2)
    prompt.parse_and_validate({})["n"]["deep"].append(2)
    assert given == {"n": {"deep": [3]}}
    assert prompt.parse_and_validate({}) == {"n": {"deep": [1]}}


@pytest.mark.parametrize(
    "unit",
    [
        '{"',
        '{"a":',
        '{"a":"',
        "[{",
        '[{"a":1},',
        '{"\\"',
        "{ ",
        '"{"',
        "```json\n{",
        '{"a":1}',
        "[1]",
        "</think>",
        "\\",
    ],
)
def test_no_long_text_takes_long(prompt: AgentPrompt, unit: str) -> None:
    text = (unit * (MAX_TEXT // len(unit)))[: MAX_TEXT - len(TEXT)]
    with pytest.raises(AgentPromptValidationError):
        prompt.parse_and_validate(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@given(raw=st.one_of(st.text(), st.binary(), JSON, st.dictionaries(st.sampled_from(sorted(GOOD)), JSON)))
def test_whatever_comes_is_a_whole_answer_or_refused(prompt: AgentPrompt, raw: Any) -> None:
    try:
        answer = prompt.parse_and_validate(raw)
    except AgentPromptValidationError:
        return
    assert set(answer) == set(GOOD)
