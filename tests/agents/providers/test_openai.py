"""The provider `openai`: what it sends to a server, and what it learns of one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from organism.agents.providers.openai import OpenAIProvider
from organism.model.completion import ChatMessage, Usage
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.agents.providers.asking import KEY, ask, called, fault, refusing, request, tool

SCHEMA = {"title": "Some labels", "type": "object", "properties": {"tone": {"type": "string"}}, "required": ["tone"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
OPTIONS_UNKNOWN = "Unrecognized request argument supplied: stream_options"
MAX_TOKENS_UNKNOWN = {
    "message": "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "param": "max_tokens",
    "code": "unsupported_parameter",
}


@pytest.fixture
async def provider(peer: Peer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider(peer.url, KEY, "SOME_KEY")
    yield made
    await made.close()


async def sent(peer: Peer, provider: OpenAIProvider, *texts: Any, **options: Any) -> dict[str, Any]:
    """The body of one request."""
    await ask(provider, *texts, **options)
    body: dict[str, Any] = (await peer.requests())[-1]["body"]
    return body


async def test_a_request_says_what_was_asked_for(peer: Peer, provider: OpenAIProvider) -> None:
    search = tool("search", "Looks things up.", words={"type": "string"})
    talk: list[str | ChatMessage] = [
        {"role": "system", "content": "Be brief."},
        "Find a.",
        *called(("search", "found")),
        "Thanks!",
    ]
    body = await sent(peer, provider, *talk, tools=[search], model="some/model", temperature=0.5, max_tokens=64)
    assert body == {
        "model": "some/model",
        "messages": list(request(*talk).messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 64,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "description": "Looks things up.",
                    "parameters": {
                        "type": "object",
                        "properties": {"words": {"type": "string"}},
                        "required": ["words"],
                    },
                },
            }
        ],
    }


JSON = {"type": "json_object"}
WRAPPED = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
INNER = {**CLOSED, "properties": {"tone": {"type": "array", "items": SCHEMA}}}


def wrapped(schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "Some_labels", "schema": schema, "strict": strict}}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (SCHEMA, wrapped(SCHEMA, strict=False)),
        (CLOSED, wrapped(CLOSED, strict=True)),
        (INNER, wrapped(INNER, strict=False)),
        (JSON, JSON),
        (WRAPPED, WRAPPED),
    ],
)
async def test_a_schema_is_wrapped_as_the_api_wants_it_and_is_strict_if_every_object_is_closed(
    peer: Peer, provider: OpenAIProvider, form: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert (await sent(peer, provider, "Hello!", response_format=form))["response_format"] == expected


async def test_the_key_is_sent_and_nothing_of_this_machine(peer: Peer, provider: OpenAIProvider) -> None:
    await ask(provider, "Hello!")
    headers = (await peer.requests())[0]["headers"]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert set(headers) == {
        *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"),
        "user-agent",
    }


async def test_no_variable_changes_what_is_sent(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "ALL_PROXY")
    for name in (*names, "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/of-another")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-another\nX-Other: of-another")
    provider = OpenAIProvider(peer.url)
    assert (await ask(provider, "Hello!")).finish == "stop"
    assert "of-another" not in str(await peer.requests())
    assert "authorization" not in (await peer.requests())[0]["headers"]
    await provider.close()


async def test_a_key_that_is_missing_is_reported_by_its_variable_before_anything_is_asked(peer: Peer) -> None:
    provider = OpenAIProvider(peer.url, None, "SOME_KEY")
    error = await fault(provider)
    assert error.fault == "unauthorized"
    assert "set the variable SOME_KEY" in str(error)
    assert await peer.requests() == []


async def test_openai_itself_is_not_asked_without_a_key() -> None:
    error = await fault(OpenAIProvider())
    assert str(error) == ("There is no key for api.openai.com: put it into a variable and name that by `api_key_env`.")


@pytest.mark.parametrize("key", ["ключ", "two words", "a\nb", "\x00"])
async def test_a_key_that_no_header_takes_is_refused_without_being_shown(peer: Peer, key: str) -> None:
    error = await fault(OpenAIProvider(peer.url, key, "SOME_KEY"))
    assert error.fault == "unauthorized"
    assert key not in str(error)
    assert await peer.requests() == []


async def test_a_server_that_does_not_know_an_option_is_asked_without_it_from_then_on(
    peer: Peer, provider: OpenAIProvider
) -> None:
    await peer.script(refusing({"message": OPTIONS_UNKNOWN}), Answer(text="Hi."), Answer(text="Hi again."))
    assert (await ask(provider, "Hello!")).text == "Hi."
    assert (await ask(provider, "Hello!")).text == "Hi again."
    assert ["stream_options" in each["body"] for each in await peer.requests()] == [True, False, False]


async def test_a_model_that_wants_the_newer_name_of_max_tokens_gets_it(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(refusing(MAX_TOKENS_UNKNOWN), Answer(text="Hi."))
    await ask(provider, "Hello!", max_tokens=7)
    body = (await peer.requests())[-1]["body"]
    assert body["max_completion_tokens"] == 7
    assert "max_tokens" not in body


async def test_a_server_that_does_not_stream_is_asked_for_the_whole_answer(
    peer: Peer, provider: OpenAIProvider
) -> None:
    await peer.script(refusing({"message": "stream is not supported"}), Answer(text="Hi.", cost=None))
    came = await ask(provider, "Hello!")
    assert (came.text, came.usage, came.finish) == ("Hi.", Usage(7, 3), "stop")
    assert {"stream", "stream_options"}.isdisjoint((await peer.requests())[-1]["body"])


async def test_a_value_that_is_refused_is_no_option_that_is_unknown(peer: Peer, provider: OpenAIProvider) -> None:
    error = {"message": "max_tokens is too large: 7. This model takes at most 5.", "param": "max_tokens"}
    await peer.script(refusing(error))
    assert (await fault(provider, max_tokens=7)).fault == "rejected"
    assert len(await peer.requests()) == 1


async def test_a_cost_is_taken_from_the_usage_or_from_the_header(peer: Peer, provider: OpenAIProvider) -> None:
    header = {"x-litellm-response-cost": "0.0021"}
    await peer.script(Answer(cost=0.5, headers=header), Answer(headers=header))
    assert (await ask(provider, "Hello!")).usage == Usage(7, 3, Decimal("0.5"))
    assert (await ask(provider, "Hello!")).usage == Usage(7, 3, Decimal("0.0021"))


def test_the_package_is_imported_at_the_first_call_and_not_before() -> None:
    code = (
        "import sys; from organism.agents.providers.openai import OpenAIProvider;"
        "from organism.agents.providers.anthropic import AnthropicProvider;"
        "OpenAIProvider('http://127.0.0.1/v1'); AnthropicProvider('http://127.0.0.1');"
        "print({'anthropic', 'httpx2', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"
