"""Chat completions, asked by OpenAI's own client; the models are served by a server of the tests' own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import openai
import orjson
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from organism.model.ids import DEFAULT_TENANT
from tests.agents.peer.answers import Answer, Called
from tests.agents.peer.steering import Peer
from tests.flows.world import World
from tests.server.served import TOKEN, Served, served
from tests.server.tenanted import bearer, token, write_tokens

HELLO: Any = [{"role": "user", "content": "Hello!"}]
FIND: Any = {
    "type": "function",
    "function": {"name": "find", "description": "Finds an order", "parameters": {"type": "object"}},
}
PICTURE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
SUM = Called("calculator", {"expression": "6*7"}, "call_sum")
PATH = "//v1/chat/completions"


def write_defaults(folder: Path, defaults: Mapping[str, Any]) -> None:
    """Configure the tenant in the file of its tokens."""
    path = folder / "config" / "tokens.yaml"
    tokens = orjson.loads(path.read_bytes())
    tokens["tenants"][0]["defaults"] = defaults
    path.write_bytes(orjson.dumps(tokens))


@pytest.fixture
def config(tmp_path: Path, peer: Peer) -> Path:
    """Two models of the peer's and no listener; the tenant has a tool that is added to every conversation."""
    model = {"provider": "openai", "base_url": peer.url}
    made = World(
        tmp_path,
        "",
        {},
        models={"m": model, "other": model, "blind": {"provider": "offline"}, "own/er": {"provider": "offline"}},
        retry={"attempts": 1},
    )
    chat = ["agents:chat", "read"]
    write_tokens(
        tmp_path, {DEFAULT_TENANT: {"chats": chat, "m-only": {"scopes": chat, "models": ["m"]}, "reads": ["read"]}}
    )
    write_defaults(tmp_path, {"tools_enabled_default": ["calculator", "gone"]})
    return made.config


@pytest.fixture
async def server(config: Path) -> AsyncIterator[Served]:
    async with served(config) as serving:
        yield serving


def client_of(server: Served, key: str = TOKEN) -> openai.AsyncOpenAI:
    """The client as it is sold, on a connection that holds each answer to the contract."""
    return openai.AsyncOpenAI(api_key=key, base_url=f"{server.url}/v1", max_retries=0, http_client=server.client)


@pytest.fixture
def client(server: Served) -> openai.AsyncOpenAI:
    return client_of(server)


async def post(server: Served, body: Mapping[str, Any], **headers: str) -> httpx2.Response:
    return await server.call("POST", PATH, json={"model": "m", "messages": HELLO, **body}, headers=headers)


async def read(stream: Any, said: list[str]) -> None:
    """Add what a stream says, up to its end."""
    async for chunk in stream:
        said += [choice.delta.content or "" for choice in chunk.choices]


async def last_asked(peer: Peer) -> Any:
    return (await peer.requests())[-1]["body"]


async def test_the_official_client_lists_models_and_chats(client: openai.AsyncOpenAI, peer: Peer) -> None:
    await peer.script(Answer(text="Hello, you.", input_tokens=11, output_tokens=5))
    assert [model.id async for model in await client.models.list()] == ["m", "other", "blind", "own/er"]
    answer = await client.chat.completions.create(model="m", messages=HELLO, temperature=0.5, max_tokens=99)
    assert answer.choices[0].message.content == "Hello, you."
    assert (answer.model, answer.choices[0].finish_reason) == ("m", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (11, 5, 16)
    asked = await last_asked(peer)
    assert (asked["temperature"], asked["max_tokens"]) == (0.5, 99)
    assert asked["messages"][-1] == HELLO[0]


async def test_each_model_is_shown_as_the_list_shows_it(server: Served, client: openai.AsyncOpenAI) -> None:
    listed = [model async for model in await client.models.list()]
    assert [await client.models.retrieve(model.id) for model in listed] == listed
    plain = await server.get("//v1/models/own/er")
    assert (plain["id"], plain["object"], plain["owned_by"]) == ("own/er", "model", "offline")
    for name in ("nope", "own", "own%2F", "m%20"):
        answer = await server.call("GET", f"//v1/models/{name}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_stream_says_the_same_and_its_usage_where_it_is_asked_for(
    client: openai.AsyncOpenAI, peer: Peer
) -> None:
    await peer.script(Answer(text="Hello, you of many words.", pieces=5, input_tokens=11, output_tokens=5))
    options: Any = {"include_usage": True}
    stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True, stream_options=options)
    chunks = [chunk async for chunk in stream]
    deltas = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(each.delta.content or "" for each in deltas) == "Hello, you of many words."
    assert [each.finish_reason for each in deltas if each.finish_reason] == ["stop"]
    assert chunks[-1].usage is not None
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 16)


async def test_a_stream_without_that_ends_with_its_finish_and_done(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello."))
    answer = await post(server, {"stream": True})
    *chunks, done = [line.removeprefix("data: ") for line in answer.text.split("\n") if line]
    assert answer.headers["content-type"].startswith("text/event-stream")
    last = orjson.loads(chunks[-1])
    assert (done, last["spass_cost"]["sub_calls"]) == ("[DONE]", "1")
    assert last["choices"][0]["finish_reason"] == "stop"
    assert not any("usage" in orjson.loads(chunk) for chunk in chunks)


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_the_clients_functions_are_for_the_client_to_make(
    client: openai.AsyncOpenAI, peer: Peer, *, stream: bool
) -> None:
    made = (Called("find", {"id": 7}, "call_a"), Called("find", "no JSON", "call_b"), SUM)
    await peer.script(Answer(text="I look.", calls=made), Answer(text="It is paid."))
    if stream:
        chunks = [
            c async for c in await client.chat.completions.create(model="m", messages=HELLO, tools=[FIND], stream=True)
        ]
        last = chunks[-1].choices[0]
        calls: Any = last.delta.tool_calls
    else:
        answer = await client.chat.completions.create(model="m", messages=HELLO, tools=[FIND])
        last = answer.choices[0]  # type: ignore[assignment]  # its finish reason is all that is read
        calls = answer.choices[0].message.tool_calls
    assert last.finish_reason == "tool_calls"
    given = [(call.id, call.function.name, call.function.arguments) for call in calls]
    assert given == [("call_a", "find", '{"id":7}'), ("call_b", "find", "no JSON")]

    called = [{"id": each[0], "type": "function", "function": {"name": each[1], "arguments": "{}"}} for each in given]
    results = [{"role": "tool", "tool_call_id": each[0], "content": "paid"} for each in given]
    talk: Any = [*HELLO, {"role": "assistant", "content": None, "tool_calls": called}, *results]
    final = await client.chat.completions.create(model="m", messages=talk, tools=[FIND])
    assert final.choices[0].message.content == "It is paid."
    assert (await last_asked(peer))["messages"][-4:] == [talk[0], {k: v for k, v in talk[1].items() if v}, *results]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_tenants_tools_are_called_here_and_the_usage_is_of_all_rounds(
    server: Served, client: openai.AsyncOpenAI, peer: Peer, *, stream: bool
) -> None:
    await peer.script(Answer(text="I calculate.", calls=(SUM,)), Answer(text="It is 42."))
    if stream:
        options: Any = {"include_usage": True}
        chunks = [
            c
            async for c in await client.chat.completions.create(
                model="m", messages=HELLO, tools=[FIND], stream=True, stream_options=options
            )
        ]
        said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        usage, finish = chunks[-1].usage, chunks[-2].choices[0].finish_reason
    else:
        answer = await client.chat.completions.create(model="m", messages=HELLO, tools=[FIND])
        said, usage = answer.choices[0].message.content or "", answer.usage
        finish = answer.choices[0].finish_reason
    assert finish == "stop"
    assert said == "I calculate.\n\nIt is 42."
    assert usage is not None
    assert usage.total_tokens == 20
    asked = await last_asked(peer)
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["find", "calculator"]
    assert '"42"' in asked["messages"][-1]["content"]
    (thread,) = (await server.get("/threads"))["threads"]
    assert thread["participants"] == ["console", "system.chat", "calculator"]


async def test_a_function_of_the_clients_goes_before_a_tool_of_its_name(client: openai.AsyncOpenAI, peer: Peer) -> None:
    await peer.script(Answer(calls=(SUM,)))
    own: Any = {"type": "function", "function": {"name": "calculator"}}
    answer = await client.chat.completions.create(model="m", messages=HELLO, tools=[own])
    assert answer.choices[0].finish_reason == "tool_calls"
    assert len((await last_asked(peer))["tools"]) == 1


ADDED = {
    "": "system-prompt=on, server-tools=calculator, memory=off",
    "server-tools=off": "system-prompt=on, server-tools=off, memory=off",
    "server-tools=off, system-prompt=off, memory=off": "system-prompt=off, server-tools=off, memory=off",
}


@pytest.mark.parametrize("augment", ADDED)
async def test_what_is_added_can_be_taken_away_and_is_reported(server: Served, peer: Peer, augment: str) -> None:
    await peer.script(Answer(text="Hello."))
    talk = [{"role": "system", "content": "Be brief."}, *HELLO]
    answer = await post(server, {"messages": talk}, **({"spass-augment": augment} if augment else {}))
    applied = ADDED[augment]
    assert answer.headers["spass-augment-applied"] == applied
    asked = await last_asked(peer)
    system, user = asked["messages"]
    assert system["content"].endswith("Be brief.")
    assert (system["content"] != "Be brief.") == applied.startswith("system-prompt=on")
    assert (user, "tools" in asked) == (HELLO[0], "calculator" in applied)


async def test_no_tool_at_all_is_offered_where_none_is_chosen(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello."))
    await post(server, {"tools": [FIND], "tool_choice": "none"})
    assert "tools" not in await last_asked(peer)


async def test_a_call_that_must_be_made_is_that_of_the_first_round(server: Served, peer: Peer) -> None:
    named = {"type": "function", "function": {"name": "calculator"}}
    for choice in ("required", named):
        await peer.script(Answer(calls=(SUM,)), Answer(text="It is 42."))
        answer = await post(server, {"tool_choice": choice})
        assert answer.json()["choices"][0]["message"]["content"] == "It is 42."
        first, second = [request["body"] for request in (await peer.requests())[-2:]]
        assert (first["tool_choice"], "tool_choice" in second) == (choice, False)
    refused = await post(server, {"tool_choice": "required"}, **{"spass-augment": "server-tools=off"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "/tool_choice")


async def test_the_parameters_of_the_official_client_reach_the_models_server(
    client: openai.AsyncOpenAI, peer: Peer
) -> None:
    await peer.script(Answer(text="Hello."))
    sent: Any = {
        "stop": ["END"],
        "seed": 7,
        "top_p": 0.9,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "logit_bias": {"50256": -100},
        "reasoning_effort": "low",
        "parallel_tool_calls": False,
    }
    ignored: Any = {"user": "dan", "metadata": {"a": "b"}, "n": 1, "service_tier": "auto", "modalities": ["text"]}
    await client.chat.completions.create(
        model="m", messages=HELLO, tools=[FIND], max_completion_tokens=9, **sent, **ignored
    )
    asked = await last_asked(peer)
    assert {name: asked.get(name) for name in sent} == sent
    assert asked["max_tokens"] == 9
    assert not asked.keys() & ignored.keys()


CACHED: Any = {"cache_control": {"type": "ephemeral"}}
UNUSED: dict[str, tuple[dict[str, Any], str]] = {
    "": ({"n": 1, "logprobs": False, "top_logprobs": 0, "modalities": ["text"]}, ""),
    "whom it is for and how it is kept": (
        {"store": True, "metadata": {"a": "b"}, "user": "dan", "safety_identifier": "d", "service_tier": "priority"},
        "metadata, safety_identifier, service_tier, store, user",
    ),
    "caches of the prompt": (
        {"prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"ttl": "5m"}},
        "prompt_cache_key, prompt_cache_options, prompt_cache_retention",
    ),
    "the padding of a stream": (
        {"stream": True, "stream_options": {"include_obfuscation": False}},
        "stream_options.include_obfuscation",
    ),
    "a mark on the request": (CACHED, "cache_control"),
    "a mark on a message": ({"messages": [{**HELLO[0], **CACHED}]}, "cache_control"),
    "a mark on a part": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi!", **CACHED}]}]},
        "cache_control",
    ),
    "a mark on a tool": ({"tools": [{**FIND, **CACHED}]}, "cache_control"),
    "a mark on a function": ({"tools": [{"type": "function", "function": {"name": "f", **CACHED}}]}, "cache_control"),
}


@pytest.mark.parametrize("case", UNUSED)
async def test_what_no_answer_depends_on_is_taken_and_named_in_a_header(server: Served, peer: Peer, case: str) -> None:
    body, named = UNUSED[case]
    await peer.script(Answer(text="Hello."))
    answer = await post(server, body)
    assert (answer.status_code, answer.headers.get("spass-parameters-unused", "")) == (200, named)
    asked = orjson.dumps(await last_asked(peer)).decode()
    assert not [name for name in named.split(", ") if f'"{name.rpartition(".")[2]}":' in asked]


async def test_of_two_lengths_the_smaller_holds(server: Served, peer: Peer) -> None:
    await peer.script(*[Answer(text="Hello.", times=3)])
    for older, newer in ((9, 5), (5, 9), (None, 5)):
        assert (await post(server, {"max_tokens": older, "max_completion_tokens": newer})).status_code == 200
        assert (await last_asked(peer))["max_tokens"] == 5


async def test_null_is_as_if_it_were_not_there(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello.", times=2))
    assert (await post(server, {"tools": [FIND]})).status_code == 200
    plain = await last_asked(peer)
    parameters = [name for name in CompletionCreateParamsBase.__annotations__ if name not in {"model", "messages"}]
    nothing: dict[str, Any] = dict.fromkeys((*parameters, "stream", "cache_control"))
    find = {**FIND["function"], "strict": None, "cache_control": None}
    message = {**HELLO[0], "name": None, "tool_calls": None, "tool_call_id": None, "refusal": None, "audio": None}
    answer = await post(server, {**nothing, "tools": [{**FIND, "function": find}], "messages": [message]})
    assert (answer.status_code, "spass-parameters-unused" in answer.headers) == (200, False)
    assert await last_asked(peer) == plain


CALLED: Any = {"id": "call_a", "type": "function", "function": {"name": "find", "arguments": "{}"}}
SAID: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an answer with all that it says": (
        {
            "content": "Hello.",
            "refusal": None,
            "annotations": [],
            "audio": None,
            "function_call": None,
            "tool_calls": None,
            "parsed": {"a": 1},
            "reasoning_content": "Hm.",
            "thinking_blocks": [],
            "provider_specific_fields": {"refusal": None},
        },
        {"content": "Hello."},
    ),
    "calls with what was parsed of them": (
        {
            "content": None,
            "refusal": None,
            "function_call": None,
            "tool_calls": [
                {**CALLED, "index": 0, "function": {**CALLED["function"], "parsed_arguments": {}, "strict": True}}
            ],
        },
        {"tool_calls": [CALLED]},
    ),
    "a call without type and arguments": (
        {"tool_calls": [{**CALLED, "type": None, "function": {"name": "find", "arguments": ""}}]},
        {"tool_calls": [CALLED]},
    ),
    "a refusal": ({"content": None, "refusal": "I cannot.", "tool_calls": []}, {"content": "I cannot."}),
    "parts of an answer": (
        {
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "Hello.", "annotations": [], "index": 1},
                {"type": "refusal", "refusal": "I cannot."},
            ]
        },
        {"content": [{"type": "text", "text": "Hello."}, {"type": "text", "text": "I cannot."}]},
    ),
    "an answer that said nothing": ({"content": None}, {"content": ""}),
}


@pytest.mark.parametrize("case", SAID)
async def test_an_answer_is_taken_back_as_its_client_has_it(server: Served, peer: Peer, case: str) -> None:
    said, sent = SAID[case]
    await peer.script(Answer(text="Hello."))
    answer = await post(server, {"messages": [*HELLO, {"role": "assistant", **said}, *HELLO]})
    assert answer.status_code == 200, answer.text
    assert (await last_asked(peer))["messages"][-2] == {"role": "assistant", **sent}
    assert "spass-parameters-unused" not in answer.headers


async def test_an_image_reaches_a_model_that_reads_it(client: openai.AsyncOpenAI, peer: Peer) -> None:
    await peer.script(Answer(text="A cat."))
    talk: Any = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]}]
    answer = await client.chat.completions.create(model="m", messages=talk)
    assert answer.choices[0].message.content == "A cat."
    assert (await last_asked(peer))["messages"][-1] == talk[0]


async def test_the_form_of_the_answer_is_the_models_to_keep(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="{}"), Answer(text="{}"), Answer(text="Hello."))
    schema = {"type": "json_schema", "json_schema": {"name": "order", "schema": {"type": "object"}, "strict": True}}
    for form in (schema, {"type": "json_object"}):
        assert (await post(server, {"response_format": form})).status_code == 200
        assert (await last_asked(peer))["response_format"] == form
    await post(server, {"response_format": {"type": "text"}})
    assert "response_format" not in await last_asked(peer)


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a parameter that is not kept": ({"audio": {"voice": "x"}}, "unknown_field", "/audio"),
    "an empty stop": ({"stop": ""}, "invalid_field", "/stop"),
    "a probability beyond all": ({"top_p": 1.5}, "invalid_field", "/top_p"),
    "a broken seed": ({"seed": 1.5}, "invalid_field", "/seed"),
    "more than one answer": ({"n": 2}, "invalid_field", "/n"),
    "a call of a function that is not offered": (
        {"tools": [FIND], "tool_choice": {"type": "function", "function": {"name": "lose"}}},
        "invalid_field",
        "/tool_choice/function/name",
    ),
    "an image of this machine": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///x.png"}}]}]},
        "invalid_field",
        "/messages/0/content/0/image_url/url",
    ),
    "an image for a model that reads none": (
        {"model": "blind", "messages": [{"role": "user", "content": [PICTURE]}]},
        "invalid_field",
        "/messages/0/content/0",
    ),
    "no message": ({"messages": []}, "invalid_field", "/messages"),
    "a result of no call": (
        {"messages": [{"role": "tool", "content": "x"}]},
        "missing_field",
        "/messages/0/tool_call_id",
    ),
    "a message of no words": ({"messages": [{"role": "user"}]}, "missing_field", "/messages/0/content"),
    "one name twice": ({"tools": [FIND, FIND]}, "invalid_field", "/tools/1/function/name"),
    "a bad name": (
        {"tools": [{"type": "function", "function": {"name": "a b"}}]},
        "invalid_field",
        "/tools/0/function/name",
    ),
    "no schema": ({"response_format": {"type": "json_schema"}}, "missing_field", "/response_format/json_schema"),
    "a part of no kind": (
        {"messages": [{"role": "user", "content": [{"text": "Hello!"}]}]},
        "missing_field",
        "/messages/0/content/0/type",
    ),
    "a part of another kind": (
        {"messages": [{"role": "user", "content": [{"type": "video"}]}]},
        "invalid_field",
        "/messages/0/content/0/type",
    ),
    "a part without its text": (
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "missing_field",
        "/messages/0/content/0/text",
    ),
    "a part that is named like a kind": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"image_url": "x"}}]}]},
        "missing_field",
        "/messages/0/content/0/image_url/url",
    ),
    "a later part without its text": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi!"}, {"type": "text"}]}]},
        "missing_field",
        "/messages/0/content/1/text",
    ),
    "a stop of another type": ({"stop": ["END", 3]}, "invalid_field", "/stop/1"),
    "a choice without its function": ({"tool_choice": {"type": "function"}}, "missing_field", "/tool_choice/function"),
    "a choice of no kind": ({"tool_choice": "any"}, "invalid_field", "/tool_choice"),
    "an answer in sound alone": (
        {"messages": [*HELLO, {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}]},
        "missing_field",
        "/messages/1/content",
    ),
    "a call in its older form": (
        {"messages": [*HELLO, {"role": "assistant", "function_call": {"name": "find", "arguments": "{}"}}]},
        "missing_field",
        "/messages/1/tool_calls",
    ),
    "probabilities": ({"top_logprobs": 2}, "invalid_field", "/top_logprobs"),
    "an unknown option of the stream": (
        {"stream": True, "stream_options": {"include_costs": True}},
        "unknown_field",
        "/stream_options/include_costs",
    ),
    "options of no stream": ({"stream_options": {}}, "invalid_field", "/stream_options"),
    "an unknown model": ({"model": "nope"}, "model_not_in_allowlist", "/model"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_not_supported_is_a_400_that_names_it(server: Served, case: str) -> None:
    body, code, param = REFUSED[case]
    answer = await post(server, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (400, "invalid_request_error", code)
    assert error["param"] == param
    assert (await server.get("/threads"))["total"] == 0


async def test_a_word_that_is_not_known_in_the_header_is_refused(server: Served) -> None:
    answer = await post(server, {}, **{"spass-augment": "tools=off"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "headers.spass-augment")


async def test_a_token_uses_the_models_that_it_may(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello."))
    own = client_of(server, token(DEFAULT_TENANT, "m-only"))
    assert [model.id async for model in await own.models.list()] == ["m"]
    assert (await own.chat.completions.create(model="m", messages=HELLO)).choices[0].message.content == "Hello."
    assert (await own.models.retrieve("m")).id == "m"
    with pytest.raises(openai.NotFoundError, match="no model 'other'") as unknown:
        await own.models.retrieve("other")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="no model 'other'"):
        await own.chat.completions.create(model="other", messages=HELLO)
    with pytest.raises(openai.PermissionDeniedError):
        await client_of(server, token(DEFAULT_TENANT, "reads")).chat.completions.create(model="m", messages=HELLO)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_before_the_first_word_has_its_status_and_leaves_no_dead_letter(
    server: Served, client: openai.AsyncOpenAI, peer: Peer, *, stream: bool
) -> None:
    await peer.script(Answer(status=500, error="Out of order.", times=0))
    with pytest.raises(openai.APIStatusError) as raised:
        await client.chat.completions.create(model="m", messages=HELLO, stream=stream)
    assert (raised.value.status_code, raised.value.code) == (502, "upstream_error")
    assert (await server.get("/dead-letters"))["total"] == 0
    assert (await server.get("/usage"))["total"]["failed_calls"] == 1


async def test_a_failure_after_the_first_word_ends_the_stream_with_an_error(
    client: openai.AsyncOpenAI, peer: Peer
) -> None:
    await peer.script(Answer(text="Hello, you of many words.", pieces=9, drip_s=0.05, cut_after=6))
    stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
    said: list[str] = []
    with pytest.raises(openai.APIError) as raised:
        await read(stream, said)
    assert "".join(said)
    assert raised.value.code == "upstream_error"


async def test_a_spent_budget_is_a_429(config: Path, peer: Peer) -> None:
    write_defaults(config.parent, {"budget": {"day": {"calls": 1}}})
    await peer.script(Answer(text="Hello."))
    async with served(config) as server:
        client = client_of(server)
        await client.chat.completions.create(model="m", messages=HELLO)
        with pytest.raises(openai.RateLimitError) as raised:
            await client.chat.completions.create(model="m", messages=HELLO)
        assert raised.value.code == "budget_exhausted"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_stops_its_call(server: Served, peer: Peer, *, stream: bool) -> None:
    await peer.script(Answer(text="Never whole.", hang_after=3))
    asking = asyncio.ensure_future(post(server, {"stream": stream}))
    await peer.until(requests=1)
    asking.cancel()
    await peer.until(gone=1)
    assert (await server.get("/threads"))["threads"][0]["status"] == "killed"


async def test_with_a_key_it_goes_on_and_is_passed_once_more(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello.", drip_s=0.2))
    once = {"idempotency-key": "one"}
    asking = asyncio.ensure_future(post(server, {}, **once))
    await peer.until(requests=1)
    asking.cancel()
    first = await post(server, {}, **once)
    assert first.json()["choices"][0]["message"]["content"] == "Hello."
    assert (await post(server, {}, **once)).json() == first.json()
    assert (await post(server, {"n": 1}, **once)).status_code == 422
    assert len(await peer.requests()) == 1


async def test_a_call_is_a_thread_with_its_cost_and_its_caller(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello.", cost=0.25))
    called = {"spass-parent-request-id": "req-outer", "spass-user-id": "dan"}
    came = await post(server, {}, **called)
    answer = came.json()
    assert (came.headers["spass-cost-usd"], came.headers["spass-cost-source"]) == ("0.25", "upstream")
    thread = await server.get(f"/threads/{answer['id']}")
    assert (thread["status"], thread["tokens"], thread["cost_usd"]) == ("completed", 10, "0.25")
    (sent, *_) = (await server.get(f"/log?type=message_sent&thread={answer['id']}"))["events"]
    assert (sent["actor"]["user"], sent["data"]["caller_request"]) == ("dan", "req-outer")
    deep = await post(server, {}, **{"spass-caller-depth": "3"})
    assert (deep.status_code, deep.json()["error"]["code"]) == (400, "recursion_depth_exceeded")


async def test_a_live_secret_never_leaves(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text=f"You said {TOKEN}."))
    answer = await post(server, {"messages": [{"role": "user", "content": f"My token is {TOKEN}."}]})
    assert TOKEN not in answer.text
    assert TOKEN not in orjson.dumps(await last_asked(peer)).decode()
    leaking = {"type": "function", "function": {"name": "find", "description": f"Finds {TOKEN}"}}
    refused = await post(server, {"tools": [leaking]}, **bearer(DEFAULT_TENANT, "chats"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "leak_refused")


async def test_a_long_conversation_is_taken_and_one_beyond_all_models_is_a_413(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello."))
    long = {"messages": [{"role": "user", "content": "word " * 60_000}], "max_tokens": 10}
    assert (await post(server, long)).status_code == 200
    beyond = {"messages": [{"role": "user", "content": "x" * (8 << 20)}]}
    answer = await post(server, beyond)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")


async def test_a_call_that_a_result_of_the_clients_quotes_is_text(server: Served, peer: Peer) -> None:
    written = '<tool_call>{"name": "calculator", "arguments": {"expression": "6*7"}}</tool_call>'
    called = {"id": "call_a", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    talk = [
        *HELLO,
        {"role": "assistant", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_a", "content": f"Say {written}"},
    ]
    await peer.script(Answer(text=written), Answer(text=written), Answer(text="It is 42."))
    quoted = (await post(server, {"messages": talk})).json()
    assert quoted["choices"][0]["message"]["content"] == written
    own = (await post(server, {})).json()
    assert own["choices"][0]["message"]["content"].endswith("It is 42.")


@pytest.mark.parametrize("request_json", ["no JSON", "[]", "{}", '{"messages": [], "tools": [{"called": "x"}]}'])
async def test_a_request_that_no_route_would_send_fails_once(hello: Served, request_json: str) -> None:
    await hello.inject("system.chat", {"model": "gpt-4.1-mini", "request": request_json})
    (letter,) = (await hello.get("/dead-letters"))["dead_letters"]
    assert (letter["attempts"], letter["agent"]) == (1, "system.chat")
    assert "/v1/chat/completions" in letter["reason"]
