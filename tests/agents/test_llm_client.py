"""The lowest way to a model: what the environment chooses, what is sent, what comes back."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from structlog.testing import capture_logs

from organism.agents import llm_client
from organism.agents.providers import ProviderError
from organism.model.completion import Finish, TextDelta, Usage
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FINE_TUNED = "ft:gpt-4.1-mini-2025-04-14:personal:a2-promptshaper-v1:XXXX"


@pytest.fixture(autouse=True)
def _no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def openai(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Peer:
    """A server of models that the environment names."""
    monkeypatch.setenv("OPENAI_BASE_URL", peer.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    return peer


def test_the_signature_is_the_seeds() -> None:
    for function in (llm_client.call, llm_client.acall, llm_client.stream):
        signature = inspect.signature(function)
        assert list(signature.parameters) == ["model", "messages", "response_format", "temperature", "max_tokens"]
        defaults = {name: each.default for name, each in signature.parameters.items()}
        assert (defaults["response_format"], defaults["temperature"], defaults["max_tokens"]) == (None, 0.0, None)


def test_without_a_provider_in_the_environment_the_offline_model_answers_and_says_so() -> None:
    schema = {"type": "object", "properties": {"tone": {"type": "string", "enum": ["direct", "formal"]}}}
    answer = llm_client.call("gpt-4.1-mini", MESSAGES, schema)
    assert answer == llm_client.call("gpt-4.1-mini", MESSAGES, schema)
    assert answer.text.startswith("{")
    assert (answer.finish, answer.model, answer.served_by) == ("stop", "gpt-4.1-mini", "offline")


async def test_a_call_sends_what_it_was_given_and_gives_what_came(openai: Peer) -> None:
    await openai.script(Answer(text='{"n": 1}', input_tokens=7, output_tokens=3))
    answer = llm_client.call(
        model="gpt-4.1-mini", messages=MESSAGES, response_format=SCHEMA, temperature=0.5, max_tokens=99
    )
    assert (answer.text, answer.finish, answer.input_tokens, answer.output_tokens) == ('{"n": 1}', "stop", 7, 3)
    (request,) = await openai.requests()
    body: dict[str, Any] = request["body"]
    assert (body["model"], body["messages"], body["temperature"], body["max_tokens"]) == (
        "gpt-4.1-mini",
        MESSAGES,
        0.5,
        99,
    )
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert request["headers"]["authorization"] == "Bearer sk-canary"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"model": ""}, "Expected the name of a model"),
        ({"model": None}, "Expected the name of a model"),
        ({"messages": []}, "Expected `messages` as a list of dicts"),
        ({"messages": "hi"}, "Expected `messages` as a list of dicts"),
        ({"messages": ["hi"]}, "Expected `messages` as a list of dicts"),
        ({"messages": {"role": "user"}}, "Expected `messages` as a list of dicts"),
        ({"messages": [{"content": "hi"}]}, "Expected `messages` as a list of dicts"),
        ({"response_format": "json"}, "Expected `response_format` as a dict"),
        ({"max_tokens": 0}, "Expected `max_tokens` as a whole number from 1; came 0."),
    ],
)
def test_what_is_no_call_is_refused_by_what_was_expected(call: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}"):
        llm_client.call(**{"model": "m", "messages": MESSAGES, **call})


async def test_the_async_twin_gives_the_same(openai: Peer) -> None:
    await openai.script(Answer(text="hi", times=2))
    assert await llm_client.acall("m", MESSAGES) == llm_client.call("m", MESSAGES)


async def test_a_stream_gives_the_parts_as_they_come(openai: Peer) -> None:
    await openai.script(Answer(text="hello", pieces=5, input_tokens=7, output_tokens=3))
    parts = [part async for part in llm_client.stream("m", MESSAGES)]
    assert [part.text for part in parts if isinstance(part, TextDelta)] == list("hello")
    assert parts[-2:] == [Usage(7, 3), Finish("stop")]


async def test_a_stream_that_is_left_ends_the_call(openai: Peer) -> None:
    await openai.script(Answer(text="hello", pieces=5, hang_after=3))
    parts = llm_client.stream("m", MESSAGES)
    assert isinstance(await anext(parts), TextDelta)
    await parts.aclose()
    assert [request["end"] for request in await openai.until(gone=1)] == ["gone"]


async def test_a_failure_is_raised_after_one_attempt_and_logged_without_prompt_and_key(openai: Peer) -> None:
    await openai.script(Answer(status=500, error="overloaded", times=0))
    with capture_logs() as said, pytest.raises(ProviderError) as failed:
        llm_client.call("m", [{"role": "user", "content": "canary-prompt"}])
    assert failed.value.fault == "unavailable"
    assert len(await openai.requests()) == 1
    assert [(each["event"], each["model"], each["fault"]) for each in said] == [("llm_call_failed", "m", "unavailable")]
    assert "canary" not in str(said)
