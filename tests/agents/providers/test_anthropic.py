"""The provider `anthropic`: a talk in the words of its API, and what it learns of a server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from organism.agents.providers.anthropic import AnthropicProvider
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.agents.providers.asking import KEY, ask, called, refusing, tool

SCHEMA = {"type": "object", "properties": {"tone": {"type": "string", "maxLength": 5}}, "required": ["tone"]}


@pytest.fixture
async def provider(peer: Peer) -> AsyncIterator[AnthropicProvider]:
    made = AnthropicProvider(peer.url, KEY, "SOME_KEY")
    yield made
    await made.close()


async def sent(peer: Peer, provider: AnthropicProvider, *texts: Any, **options: Any) -> dict[str, Any]:
    """The body of one request."""
    await ask(provider, *texts, **options)
    body: dict[str, Any] = (await peer.requests())[-1]["body"]
    return body


def said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_a_request_says_what_was_asked_for(peer: Peer, provider: AnthropicProvider) -> None:
    search = tool("search", "Looks things up.", words={"type": "string"})
    body = await sent(peer, provider, "Hello!", tools=[search], model="claude", temperature=0.5, max_tokens=64)
    assert body == {
        "model": "claude",
        "max_tokens": 64,
        "messages": [said("user", text("Hello!"))],
        "stream": True,
        "temperature": 0.5,
        "tools": [
            {
                "name": "search",
                "description": "Looks things up.",
                "input_schema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
            }
        ],
    }


REQUIRED = {"type": "function", "function": {"name": "search"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
        ({"tool_choice": REQUIRED}, {"tool_choice": {"type": "tool", "name": "search"}}),
        ({"parallel_tool_calls": False}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        ({"stop": "END", "top_p": 0.5, "seed": 7}, {"stop_sequences": ["END"], "top_p": 0.5}),
        ({"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}),
    ],
)
async def test_the_parameters_of_the_other_api_are_reported_in_the_words_of_this_one(
    peer: Peer, provider: AnthropicProvider, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    body = await sent(peer, provider, "Hello!", parameters=given)
    assert {
        name: body.get(name) for name in ("tool_choice", "stop_sequences", "top_p", "seed") if name in body
    } == expected


async def test_an_image_is_given_as_it_lies_in_its_address(peer: Peer, provider: AnthropicProvider) -> None:
    urls = ("data:image/png;base64,aGk=", "https://x.org/a.png")
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    talk = {"role": "user", "content": [{"type": "text", "text": "See:"}, *images]}
    body = await sent(peer, provider, talk)
    sources = [
        {"type": "base64", "media_type": "image/png", "data": "aGk="},
        {"type": "url", "url": "https://x.org/a.png"},
    ]
    assert body["messages"][0]["content"][1:] == [{"type": "image", "source": source} for source in sources]


async def test_the_api_gets_a_bound_and_no_more_heat_than_it_takes(peer: Peer, provider: AnthropicProvider) -> None:
    body = await sent(peer, provider, "Hello!", temperature=1.7)
    assert (body["max_tokens"], body["temperature"]) == (4096, 1.0)


def asks(arguments: Any, id_: str = "c0") -> dict[str, Any]:
    call = {"id": id_, "function": {"name": "search", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def use(id_: str = "c0", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "search", "input": given}


def result(id_: str, content: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


SYSTEM, DEVELOPER = {"role": "system", "content": "Be brief."}, {"role": "developer", "content": "And kind."}
HELLO, THANKS = {"role": "user", "content": "Hello!"}, {"role": "user", "content": "Thanks!"}
BLANK = [{"role": "assistant", "content": " \n"}, {"role": "assistant", "content": None}]


@pytest.mark.parametrize(
    ("talk", "turns"),
    [
        ([SYSTEM, HELLO, DEVELOPER], [said("user", text("Hello!"))]),
        ([HELLO, *BLANK, THANKS], [said("user", text("Hello!"), text("Thanks!"))]),
        (
            [HELLO, *called(("search", "a!"), ("search", "b!"), text="I look."), THANKS],
            [
                said("user", text("Hello!")),
                said("assistant", text("I look."), use("c0"), use("c1")),
                said("user", result("c0", "a!"), result("c1", "b!"), text("Thanks!")),
            ],
        ),
        (
            [asks('{"a": 1}', "f.search:0"), {"role": "tool", "tool_call_id": "f.search:0", "content": "a!"}],
            [said("assistant", use("f_search_0", a=1)), said("user", result("f_search_0", "a!"))],
        ),
        ([asks("x = 1")], [said("assistant", use(arguments="x = 1"))]),
        ([asks("[1]")], [said("assistant", use(arguments="[1]"))]),
        ([asks("")], [said("assistant", use())]),
        ([asks(None)], [said("assistant", use())]),
        ([asks({"a": 1})], [said("assistant", use(a=1))]),
    ],
)
async def test_a_talk_is_written_in_turns_of_blocks_with_the_system_above(
    peer: Peer, provider: AnthropicProvider, talk: list[Any], turns: list[Any]
) -> None:
    body = await sent(peer, provider, *talk)
    assert body["messages"] == turns
    assert body.get("system") == ("Be brief.\n\nAnd kind." if SYSTEM in talk else None)


@pytest.mark.parametrize("form", [SCHEMA, {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}])
async def test_a_schema_is_given_as_the_api_takes_it(
    peer: Peer, provider: AnthropicProvider, form: dict[str, Any]
) -> None:
    body = await sent(peer, provider, "Hello!", response_format=form)
    schema = body["output_config"]["format"]["schema"]
    assert schema["additionalProperties"] is False
    assert "maxLength" not in schema["properties"]["tone"]
    assert schema["required"] == ["tone"]


async def test_a_schema_that_cannot_be_made_to_fit_goes_as_it_is(peer: Peer, provider: AnthropicProvider) -> None:
    schema = {"type": ["object", "null"], "properties": {}}
    body = await sent(peer, provider, "Hello!", response_format=schema)
    assert body["output_config"]["format"]["schema"] == schema


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("temperature: this parameter is deprecated for this model", "temperature"),
        ("output_config: Extra inputs are not permitted", "output_config"),
    ],
)
async def test_a_server_that_does_not_know_an_option_is_asked_without_it(
    peer: Peer, provider: AnthropicProvider, message: str, name: str
) -> None:
    await peer.script(refusing({"type": "invalid_request_error", "message": message}), Answer(text="Hi."))
    assert (await ask(provider, "Hello!", response_format=SCHEMA)).text == "Hi."
    assert [name in each["body"] for each in await peer.requests()] == [True, False]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_the_address_may_end_with_the_version_or_not(peer: Peer, ending: str) -> None:
    provider = AnthropicProvider(f"{peer.place}{ending}")
    await ask(provider, "Hello!")
    assert (await peer.requests())[0]["path"] == "/v1/messages"
    await provider.close()


async def test_the_key_is_sent_with_the_version_and_nothing_of_this_machine(
    peer: Peer, provider: AnthropicProvider
) -> None:
    await ask(provider, "Hello!")
    headers = (await peer.requests())[0]["headers"]
    assert headers["x-api-key"] == KEY
    assert set(headers) == {
        *("accept", "accept-encoding", "anthropic-version", "connection", "content-length", "content-type", "host"),
        *("user-agent", "x-api-key"),
    }


async def test_no_variable_changes_what_is_sent(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/of-another")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer of-another\nX-Other: of-another")
    provider = AnthropicProvider(peer.url)
    assert (await ask(provider, "Hello!")).finish == "stop"
    assert "of-another" not in str(await peer.requests())
    assert {"authorization", "x-api-key"}.isdisjoint((await peer.requests())[0]["headers"])
    await provider.close()


def test_without_its_package_the_provider_says_how_to_get_it() -> None:
    code = (
        "import sys, asyncio; sys.modules['anthropic'] = None;"
        "from organism.agents.providers.anthropic import AnthropicProvider;"
        "from organism.model.completion import ModelRequest;"
        "stream = AnthropicProvider('http://127.0.0.1').stream(ModelRequest('m', ()));"
        "asyncio.run(anext(stream))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert "ProviderError: The provider `anthropic` lacks its package: install it by" in done.stderr
