"""Whatever a model gives is read as documented, or refused by name: never another exception, never a hang."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.agents.prompt import MAX_TEXT, AgentPrompt, AgentPromptValidationError
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
        bytearray(TEXT.encode()),
        f"  \n\t{TEXT}\n ",
        f"\ufeff{TEXT}",
        json.dumps(GOOD, indent=4).replace("\n", "\r\n"),
        f"```json\n{TEXT}\n```",
        f"```JSON\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"~~~json\n{TEXT}\n~~~",
        f"```json {TEXT}```",
        f"``{TEXT}``",
        f"```json\n{TEXT}",
        f"```python\nprint(1)\n```\n```json\n{TEXT}\n```",
        f"Here you are: {TEXT}",
        f"{TEXT}\nI hope this helps!",
        f"Sure!\n\n{TEXT}\n\nAnything else?",
        f"As asked ({TEXT}).",
        f'He said "{TEXT}"',
        f"labels = {TEXT};",
        f"<answer>{TEXT}</answer>",
        f"**Answer:** `{TEXT}`",
        f"Use {{braces}} like so: {TEXT}",
        f"A set {{1, 2}} and {{}} of nothing: {TEXT}",
        f"[note] as of [1]: {TEXT}",
        f"[1, 2] {TEXT} [3]",
        f"It's {{ not easy: {TEXT}",
        f"{TEXT}}}}}",
        f"]]>{TEXT}",
        f"{TEXT}{TEXT}",
        f"{TEXT}\n{TEXT}\n{TEXT}",
        f"{TEXT} and again: {json.dumps(dict(reversed(GOOD.items())))}",
        f'Given {{"input": 1}} I choose {TEXT}',
        f'{TEXT}\n{{"done": true}}',
        f"First I thought {WRONG}, but no: {TEXT}",
        f'{{"a": 1, "a": 2}} is wrong, {TEXT} is right',
        f'{{"n": NaN}} {TEXT}',
        f"<think>What about {OTHER}?</think>{TEXT}",
        f"<think>{{{{{{</think>\n{TEXT}",
        f"What about {OTHER}?</think>{TEXT}",
        f'{{"broken": {TEXT[:20]}\n{TEXT}',
        TEXT.replace(", ", ",\n\n\t "),
        TEXT.replace("system", "\\u0073ystem"),
        json.dumps({**GOOD, "reason": "because } of { this ```"}),
        json.dumps({**GOOD, "reason": 'he said \\"{\\" and "}"'}),
        json.dumps({**GOOD, "nested": {"deep": [{"er": {}}]}}),
        json.dumps({**GOOD, "": None}),
        put("reason", "").replace('"reason": ""', '"reason": "two\nlines\tand a tab"'),
        put("reason", "\u2028\x7f\x85"),
        put("n", 10**39),
        put("x", json.loads(nested(60))),
        Completion(model="m", text=TEXT),
        Completion(model="m", text=f"```json\n{TEXT}\n```", finish="length"),
        chat(TEXT),
        chat(f"Here: {TEXT}"),
        chat([{"type": "text", "text": TEXT}]),
        chat([{"type": "text", "text": TEXT[:9]}, {"type": "image_url"}, {"type": "text", "text": TEXT[9:]}]),
        chat(GOOD),
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=TEXT), finish_reason="stop")]),
        SimpleNamespace(choices=({"message": {"content": TEXT}},)),
    ],
)
def test_an_answer_is_found_in_any_of_these(prompt: AgentPrompt, raw: Any) -> None:
    assert prompt.parse_and_validate(raw) == GOOD


@pytest.mark.parametrize(
    ("raw", "pointer", "message"),
    [
        ("", "", "no JSON object stands in the text"),
        ("I don't know.", "", 'no JSON object stands in the text: "I don\'t know." (text)'),
        ("null", "", "no JSON object stands in the text"),
        ("true", "", "no JSON object stands in the text"),
        ("42", "", "no JSON object stands in the text"),
        ('"Friend"', "", "no JSON object stands in the text"),
        (json.dumps(TEXT), "", "no JSON object stands in the text"),
        ("Friend, Self, formal, short, low", "", "no JSON object stands in the text"),
        (str(GOOD), "", "no JSON object stands in the text"),
        ("{system: Friend}", "", "no JSON object stands in the text"),
        ("{", "", "no JSON object stands in the text"),
        ("{" * 50_000, "", "no JSON object stands in the text"),
        ("}" * 50_000, "", "no JSON object stands in the text"),
        ("\x00\x01\x02", "", "no JSON object stands in the text"),
        ("x" * (MAX_TEXT + 1), "", f"expected at most {MAX_TEXT} characters, came {MAX_TEXT + 1}"),
        ("[]", "", "expected one JSON object, came a list"),
        ("[1, 2]", "", "expected one JSON object, came a list"),
        (f"[{TEXT}]", "", "expected one JSON object, came a list"),
        (f"Here: [{TEXT}, {TEXT}]", "", "expected one JSON object, came a list"),
        (f"```json\n[{TEXT}]\n```", "", "expected one JSON object, came a list"),
        (TEXT[:-1], "", "what begins at character 1 breaks off at"),
        (f'{{"answer": {TEXT}, and more}}', "", "what begins at character 1 breaks off at"),
        (f"[{TEXT}, {TEXT}", "", "what begins at character 1 breaks off at"),
        (TEXT[:-4], "", "what begins at character 1 breaks off at"),
        (f"```json\n{TEXT[:40]}\n```", "", "what begins at character 9 breaks off at"),
        (TEXT.replace("}", ",}"), "", "what begins at character 1 breaks off at"),
        (TEXT.replace('"', "'", 1).replace("{'", '{"a": \''), "", "what begins at character 1 breaks off at"),
        (TEXT.replace(": ", "= "), "", "what begins at character 1 breaks off at"),
        (TEXT.replace(",", " // comment\n,", 1), "", "what begins at character 1 breaks off at"),
        (TEXT.replace('"low"', "low"), "", "what begins at character 1 breaks off at"),
        (TEXT.replace('"low"', "True"), "", "what begins at character 1 breaks off at"),
        (TEXT.replace('"low"', "01"), "", "what begins at character 1 breaks off at"),
        (TEXT.replace('"low"', '"\\x41"'), "", "what begins at character 1 breaks off at"),
        (TEXT.encode("utf-16"), "", "no JSON object stands in the text"),
        (nested(100), "/a" * 64, "nested deeper than 64 levels"),
        (nested(100_000), "", "nested deeper than 64 levels"),
        ("[" * 100_000, "", "nested deeper than 64 levels"),
        ('{"a":[' * 60_000, "", "nested deeper than 64 levels"),
        ('{"a"' * 900, "", "what begins at character 1 breaks off at 5"),
        ('{"a"' * 60_000, "", "more than 1000 brackets that may begin an object or a list"),
        (f"{TEXT}\n" * 1001, "", "more than 1000 brackets that may begin an object or a list"),
        (TEXT + "[1]" * 1000, "", "more than 1000 brackets that may begin an object or a list"),
        (TEXT + "[" * 100_000, "", "nested deeper than 64 levels"),
        (f"{OTHER}\n{TEXT}", "", "expected one JSON object, came 2 different ones that fit"),
        (f"{TEXT} or {OTHER} or {TEXT}", "", "expected one JSON object, came 3 different ones that fit"),
        (f"```json\n{TEXT}\n```\nOr:\n```json\n{OTHER}\n```", "", "expected one JSON object, came 2 different"),
        (f"{WRONG} {WRONG}", "/tone", "expected one of"),
        (f'{{"a": 1}} {WRONG}', "/tone", "expected one of"),
        (WRONG, "/tone", 'expected one of "direct", "friendly", "formal", came "loud" (text)'),
        (
            put("tone", "Formal"),
            "/tone",
            'expected one of "direct", "friendly", "formal", came "Formal" (text); did you',
        ),
        (put("tone", " formal "), "/tone", "expected one of"),
        (put("tone", "FORMAL"), "/tone", "expected one of"),
        (put("tone", "formel"), "/tone", "expected one of"),
        (put("tone", ""), "/tone", "expected one of"),
        (put("tone", "formal\x00"), "/tone", "expected one of"),
        (put("tone", "direct, formal"), "/tone", "expected one of"),
        (put("tone", "f\u043ermal"), "/tone", "expected one of"),
        (put("tone", "formal" * 10_000), "/tone", "expected one of"),
        (put("tone", None), "/tone", "expected text, came null"),
        (TEXT.replace('"formal"', "true"), "/tone", "expected text, came true"),
        (put("tone", 1), "/tone", "expected text, came 1 (a number)"),
        (put("tone", ["formal"]), "/tone", "expected text, came a list"),
        (put("tone", {"value": "formal"}), "/tone", "expected text, came an object"),
        (put("tone", 0.5), "/tone", "expected text, came 0.5 (a number)"),
        (without("system"), "/system", "is missing"),
        (TEXT.replace('"system"', '"System"'), "/system", "is missing"),
        (TEXT.replace('"system"', '" system"'), "/system", "is missing"),
        ("{}", "/system", "is missing"),
        (json.dumps({"labels": GOOD}), "/system", "is missing"),
        (json.dumps({"output": TEXT}), "/system", "is missing"),
        (TEXT.replace("{", '{"tone": "direct", ', 1), "/tone", "this key stands here twice"),
        (TEXT.replace("{", '{"x": {"y": 1, "y": 2}, ', 1), "/x/y", "this key stands here twice"),
        (TEXT.replace('"low"', "NaN"), "/confidence", "expected a value of JSON, came NaN"),
        (TEXT.replace('"low"', "-Infinity"), "/confidence", "expected a value of JSON, came -Infinity"),
        (TEXT.replace('"low"', "1e999"), "/confidence", "expected a number that can be held, came 1e999"),
        (TEXT.replace('"low"', "9" * 5000), "/confidence", "expected a number of at most 40 digits, came one of 5000"),
        (TEXT.replace("low", "\\ud800"), "/confidence", "expected characters, came half of a surrogate pair"),
        (TEXT.replace("low", "\ud800"), "/confidence", "expected characters, came half of a surrogate pair"),
        (None, "", "expected a JSON object or a text that holds one, came a NoneType"),
        (42, "", "expected a JSON object or a text that holds one, came a int"),
        ([GOOD], "", "expected a JSON object or a text that holds one, came a list"),
        ((GOOD,), "", "expected a JSON object or a text that holds one, came a tuple"),
        (object(), "", "expected a JSON object or a text that holds one, came a object"),
        (GOOD | {"tone": float("nan")}, "/tone", "expected a value of JSON, came NaN"),
        (GOOD | {"tone": {1, 2}}, "", "expected an object of JSON: Object of type set"),
        (GOOD | {"tone": b"formal"}, "", "expected an object of JSON: Object of type bytes"),
        (GOOD | {"x": json.loads(nested(70))}, "/x" + "/a" * 63, "nested deeper than 64 levels"),
        ({}, "/system", "is missing"),
        (chat(None, "content_filter"), "", "the model's message has no text (it finished with `content_filter`)"),
        (chat(""), "", "the model's message has no text (it finished with `stop`)"),
        (chat([]), "", "the model's message has no text"),
        (chat(5), "", "the model's message has no text"),
        (chat([{"type": "image_url"}]), "", "the model's message has no text"),
        (chat(TEXT[:30], "length"), "", "what begins at character 1 breaks off at"),
        ({"choices": []}, "/system", "is missing"),
        ({"error": {"message": "overloaded"}}, "/system", "is missing"),
        (Completion(model="m"), "", "no JSON object stands in the text"),
    ],
)
def test_anything_else_is_refused_by_name(prompt: AgentPrompt, raw: Any, pointer: str, message: str) -> None:
    with pytest.raises(AgentPromptValidationError) as refused:
        prompt.parse_and_validate(raw)
    first = refused.value.faults[0]
    assert first.pointer == pointer
    assert first.message.startswith(message)


def test_an_object_that_contains_itself_is_refused(prompt: AgentPrompt) -> None:
    endless: dict[str, Any] = dict(GOOD)
    endless["x"] = endless
    with pytest.raises(AgentPromptValidationError, match="Circular reference"):
        prompt.parse_and_validate(endless)


def test_every_field_that_does_not_fit_is_named(prompt: AgentPrompt) -> None:
    with pytest.raises(AgentPromptValidationError) as refused:
        prompt.parse_and_validate({"audience": "Cat", "tone": 3, "confidence": None})
    assert str(refused.value) == (
        "The answer to A2@v1 does not fit: /system: is missing; "
        '/audience: expected one of "Developer", "Manager", "Friend", "Self", came "Cat" (text); '
        "/tone: expected text, came 3 (a number); /confidence: expected text, came null."
    )


def test_a_long_list_of_faults_is_cut() -> None:
    prompt = prompt_with("Extractor", {"n": {"type": "array", "items": {"type": "integer"}}})
    with pytest.raises(AgentPromptValidationError) as refused:
        prompt.parse_and_validate({"n": ["x"] * 100_000})
    assert str(refused.value).endswith("; and 30 more.")


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


@given(before=st.text(), after=st.text(), value=st.dictionaries(st.text(), JSON))
def test_what_stands_around_an_object_changes_nothing(before: str, after: str, value: Mapping[str, Any]) -> None:
    prompt = prompt_with("Extractor", {"answer": {"type": "object"}}, required=["answer"])
    raw = json.dumps({"answer": value})
    try:
        plain = prompt.parse_and_validate(raw)
    except AgentPromptValidationError:
        return  # NaN within, half of a surrogate pair, a number too large
    around = "".join(sign for sign in before + "\n" if sign not in "{[")
    assert prompt.parse_and_validate(f"{around}{raw}{after.replace('</think>', '')}") == plain
