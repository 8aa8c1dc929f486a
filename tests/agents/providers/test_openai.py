"""The provider `openai`: what it sends to a server, and what it learns of one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from organism.agents.providers.openai import OpenAIProvider
from organism.model.completion import ChatMessage, ModelRequest, Usage
from tests.agents.peer.answers import Answer
from tests.agents.peer.fixture import Peer
from tests.agents.providers.asking import KEY, ask, called, fault, gathered, refusing, request, tool

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


async def test_what_was_not_asked_for_is_left_out(peer: Peer, provider: OpenAIProvider) -> None:
    body = await sent(peer, provider, "Hello!")
    assert set(body) == {"model", "messages", "stream", "stream_options", "temperature"}


@pytest.mark.parametrize("schema", [SCHEMA, CLOSED, {**SCHEMA, "type": ["object", "null"]}])
async def test_a_plain_schema_is_wrapped_as_the_api_wants_it(
    peer: Peer, provider: OpenAIProvider, schema: dict[str, Any]
) -> None:
    body = await sent(peer, provider, "Hello!", response_format=schema)
    wrapper = {"name": "Some_labels", "schema": schema, "strict": schema is CLOSED}
    assert body["response_format"] == {"type": "json_schema", "json_schema": wrapper}


@pytest.mark.parametrize(
    "form", [{"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}]
)
async def test_a_format_in_the_words_of_the_api_stands(
    peer: Peer, provider: OpenAIProvider, form: dict[str, Any]
) -> None:
    assert (await sent(peer, provider, "Hello!", response_format=form))["response_format"] == form


async def test_one_open_object_inside_is_enough_for_a_schema_not_to_be_strict(
    peer: Peer, provider: OpenAIProvider
) -> None:
    schema = {**CLOSED, "properties": {"tone": {"type": "array", "items": SCHEMA}}}
    body = await sent(peer, provider, "Hello!", response_format=schema)
    assert body["response_format"]["json_schema"]["strict"] is False


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


async def test_a_key_that_is_missing_is_told_by_its_variable_before_anything_is_asked(peer: Peer) -> None:
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


async def test_blanks_around_a_key_do_no_harm(peer: Peer) -> None:
    provider = OpenAIProvider(peer.url, f" {KEY}\n")
    await ask(provider, "Hello!")
    assert (await peer.requests())[0]["headers"]["authorization"] == f"Bearer {KEY}"
    await provider.close()


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


async def test_a_model_that_has_one_temperature_is_asked_without_one(peer: Peer, provider: OpenAIProvider) -> None:
    error = {"message": "Unsupported value: 'temperature' does not support 0.0.", "param": "temperature"}
    await peer.script(refusing(error), Answer(text="Hi."))
    assert (await ask(provider, "Hello!")).text == "Hi."
    assert "temperature" not in (await peer.requests())[-1]["body"]


async def test_a_server_that_does_not_stream_is_asked_for_the_whole_answer(
    peer: Peer, provider: OpenAIProvider
) -> None:
    await peer.script(refusing({"message": "stream is not supported"}), Answer(text="Hi.", cost=None))
    came = await ask(provider, "Hello!")
    assert (came.text, came.usage, came.finish) == ("Hi.", Usage(7, 3), "stop")
    assert {"stream", "stream_options"}.isdisjoint((await peer.requests())[-1]["body"])


async def test_several_options_are_unlearned_one_after_the_other(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(refusing({"message": OPTIONS_UNKNOWN}), refusing(MAX_TOKENS_UNKNOWN), Answer(text="Hi."))
    assert (await ask(provider, "Hello!", max_tokens=7)).text == "Hi."


async def test_a_value_that_is_refused_is_no_option_that_is_unknown(peer: Peer, provider: OpenAIProvider) -> None:
    error = {"message": "max_tokens is too large: 7. This model takes at most 5.", "param": "max_tokens"}
    await peer.script(refusing(error))
    assert (await fault(provider, max_tokens=7)).fault == "rejected"
    assert len(await peer.requests()) == 1


async def test_an_option_that_is_refused_again_and_again_ends_in_a_fault(peer: Peer, provider: OpenAIProvider) -> None:
    await peer.script(Answer(status=400, error="stream_options unsupported", times=0))
    assert (await fault(provider)).fault == "rejected"
    assert len(await peer.requests()) == 2


async def test_a_cost_is_taken_from_the_usage_or_from_the_header(peer: Peer, provider: OpenAIProvider) -> None:
    header = {"x-litellm-response-cost": "0.0021"}
    await peer.script(Answer(cost=0.5, headers=header), Answer(headers=header))
    assert (await ask(provider, "Hello!")).usage == Usage(7, 3, Decimal("0.5"))
    assert (await ask(provider, "Hello!")).usage == Usage(7, 3, Decimal("0.0021"))


@pytest.mark.parametrize("cost", ["0.0", "0", "None", "", "NaN"])
async def test_a_header_that_does_not_know_the_cost_yet_tells_none(
    peer: Peer, provider: OpenAIProvider, cost: str
) -> None:
    await peer.script(Answer(headers={"x-litellm-response-cost": cost}))
    assert (await ask(provider, "Hello!")).usage == Usage(7, 3)


def test_the_package_is_imported_at_the_first_call_and_not_before() -> None:
    code = (
        "import sys; from organism.agents.providers.openai import OpenAIProvider;"
        "from organism.agents.providers.anthropic import AnthropicProvider;"
        "OpenAIProvider('http://127.0.0.1/v1'); AnthropicProvider('http://127.0.0.1');"
        "print({'anthropic', 'httpx2', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"


async def test_a_request_is_left_as_it_is(peer: Peer, provider: OpenAIProvider) -> None:
    asked: ModelRequest = request("Hello!", response_format=CLOSED)
    before = repr(asked)
    await gathered(provider.stream(asked))
    assert repr(asked) == before
