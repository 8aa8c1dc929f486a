"""What a model's provider refuses is reported as what it is, on every surface; a client repeats only what may help."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tests.agents.peer.answers import Answer, Called
from tests.agents.peer.steering import Peer
from tests.flows.world import World
from tests.server.served import TOKEN, Served, served

HELLO: Any = [{"role": "user", "content": "Hello!"}]
FIND: Any = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
USER = {"SPASS-User-Id": "ann"}


@pytest.fixture
async def server(tmp_path: Path, peer: Peer) -> AsyncIterator[Served]:
    """An agent without tools, and its model by both APIs."""
    models = {
        "chat": {"provider": "openai", "base_url": peer.url, "context_window": 200_000},
        "messages": {"provider": "anthropic", "base_url": peer.place},
    }
    talker = {"handler": None, "agent": True, "model": "chat", "prompt": "Be brief."}
    limits = {"max_tokens_per_thread": 2000}
    config = World(tmp_path, "", {"talker": talker}, models=models, retry={"attempts": 1}, limits=limits).config
    async with served(config) as running:
        yield running


async def complete(server: Served, model: str = "chat", **body: Any) -> httpx2.Response:
    return await server.call("POST", "//v1/chat/completions", json={"model": model, "messages": HELLO, **body})


def chunks(answer: httpx2.Response) -> list[Any]:
    """The chunks of a stream, which has no events but these."""
    *lines, done, end = answer.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def refusal_of(answer: httpx2.Response) -> tuple[int, str, str | None]:
    """The status, the code, and whether to ask again."""
    return answer.status_code, answer.json()["error"]["code"], answer.headers.get("x-should-retry")


def refusing(status: int, **error: Any) -> Answer:
    """A server that answers with this error, for each of both APIs."""
    return Answer(status=status, body=json.dumps({"type": "error", "error": error}).encode(), times=2)


TOO_LONG: Mapping[str, tuple[int, dict[str, Any]]] = {
    "OpenAI": (400, {"code": "context_length_exceeded", "message": "Too much."}),
    "Anthropic": (400, {"type": "invalid_request_error", "message": "prompt is too long: 201 tokens > 200 maximum"}),
    "Anthropic with its answer": (
        400,
        {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 9 + 9 > 9"},
    ),
    "vLLM": (
        400,
        {"type": "BadRequestError", "message": "This model's maximum context length is 8 tokens.", "code": 400},
    ),
    "vLLM's newer words": (
        400,
        {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8.", "code": 400},
    ),
    "llama.cpp": (
        400,
        {"type": "exceed_context_size_error", "message": "the request exceeds the available context size", "code": 400},
    ),
    "LiteLLM": (400, {"type": None, "message": "litellm.ContextWindowExceededError: no.", "code": "400"}),
    "Gemini": (400, {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}),
    "Ollama": (500, {"message": "the input length exceeds the context length"}),
    "GitHub": (413, {"code": "tokens_limit_reached", "message": "Request body too large. Max size: 8 tokens."}),
}


async def test_what_does_not_fit_the_window_is_a_400_of_its_own_code(server: Served, peer: Peer) -> None:
    for case, (status, error) in TOO_LONG.items():
        await peer.script(refusing(status, **error))
        for model in ("chat", "messages"):
            assert refusal_of(await complete(server, model)) == (400, "context_length_exceeded", "false"), case


REFUSED: Mapping[str, tuple[Answer, int, str, str | None]] = {
    "a request": (refusing(400, message="Ten stops are too many."), 400, "upstream_refused", "false"),
    "a field": (refusing(422, message="Ten stops are too many."), 400, "upstream_refused", "false"),
    "a model": (refusing(404, message="It is gone."), 400, "upstream_refused", "false"),
    "the operator's key": (refusing(401, message="Bad key."), 502, "upstream_error", "false"),
    "the operator": (refusing(403, message="Not you."), 502, "upstream_error", "false"),
    "an account without credit": (
        refusing(429, code="insufficient_quota", message="Pay."), 429, "rate_limit_exceeded", "false",
    ),
    "a redirect": (Answer(status=307, times=2, headers={"location": "/"}), 502, "upstream_error", "false"),
    "a page": (Answer(body=b"x", headers={"content-type": "text/html"}, times=2), 502, "upstream_error", "false"),
    "a moment": (refusing(503, message="Overloaded."), 502, "upstream_error", None),
    "a slow answer": (refusing(504, message="Late."), 504, "upstream_timeout", None),
}  # fmt: skip


async def test_a_refusal_has_the_status_by_which_clients_know_whether_to_ask_again(server: Served, peer: Peer) -> None:
    for case, (refused, *expected) in REFUSED.items():
        await peer.script(refused)
        for model in ("chat", "messages"):
            assert refusal_of(await complete(server, model)) == tuple(expected), case


async def test_a_refusal_is_reported_in_the_providers_words_without_what_the_caller_or_the_operator_wrote(
    server: Served, peer: Peer
) -> None:
    await peer.script(refusing(400, message="Ten stops are too many."), refusing(400, message=f"Not {TOKEN}."))
    assert "Ten stops are too many." in (await complete(server)).json()["error"]["message"]
    await complete(server)
    assert TOKEN not in (await complete(server)).text


async def test_a_turn_does_not_ask_again_what_the_provider_would_refuse_again(tmp_path: Path, peer: Peer) -> None:
    models = {"chat": {"provider": "openai", "base_url": peer.url}}
    talker = {"handler": None, "agent": True, "model": "chat", "prompt": "Be brief."}
    retry = {"attempts": 2, "base_delay_s": 0.01}
    async with served(World(tmp_path, "", {"talker": talker}, models=models, retry=retry).config) as server:
        for status, stream in ((404, False), (401, False), (404, True)):
            await peer.script(Answer(status=status, error="No."), Answer(text="Paid for twice."))
            body = {"message": "Hello!", "stream": stream}
            turn = await server.call("POST", "//a1/agents/talker/chat", json=body, headers=USER)
            assert "Paid for twice." not in turn.text, (status, stream)
            await peer.reset()


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((500, 400), (400, "upstream_refused")),
        ((429, 401), (502, "upstream_error")),
        ((500, 429), (429, "rate_limit_exceeded")),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_of_several_attempts_is_answered_by_the_error_of_the_last(
    tmp_path: Path, peer: Peer, statuses: tuple[int, int], expected: tuple[int, str], *, stream: bool
) -> None:
    models = {"chat": {"provider": "openai", "base_url": peer.url}}
    talker = {"handler": None, "agent": True, "model": "chat", "prompt": "Be brief."}
    retry = {"attempts": 2, "base_delay_s": 0.01}  # of the turn, and of each of its calls of the model
    first, last = statuses
    async with served(World(tmp_path, "", {"talker": talker}, models=models, retry=retry).config) as server:
        for path, body in (
            ("//a1/agents/talker/chat", {"message": "Hello!", "stream": stream}),
            ("//invoke", {"agent": "talker", "data": {"inputs": {"message": "Hello!"}}, "flags": {"stream": stream}}),
        ):
            await peer.reset()
            answers = Answer(status=first, error="First.", times=2), Answer(status=last, error="Last.", times=2)
            await peer.script(*answers)
            turn = await server.call("POST", path, json=body, headers=USER)
            assert (turn.status_code, turn.json()["error"]["code"]) == expected
            assert "First." not in turn.text


async def test_too_many_requests_are_a_429_that_says_when_to_come_back(server: Served, peer: Peer) -> None:
    turn = {"data": {"inputs": {"message": "Hello!"}}}
    for asked, wait in ({"retry-after": "7"}, "7"), ({"retry-after": "0.2"}, "1"), ({}, "1"):
        await peer.script(Answer(status=429, error="Slow down.", headers=asked, times=3))
        answers = [
            await complete(server),
            await complete(server, "messages", stream=True),
            await server.call("POST", "/agents/talker/invoke", json=turn),
        ]
        for answer in answers:
            assert refusal_of(answer) == (429, "rate_limit_exceeded", None)
            assert answer.headers["retry-after"] == wait


async def test_the_official_client_asks_again_only_what_may_go_well(server: Served, peer: Peer) -> None:
    client = openai.AsyncOpenAI(api_key=TOKEN, base_url=f"{server.url}/v1", max_retries=2, http_client=server.client)
    for status, times in ((401, 1), (503, 3)):
        await peer.reset()
        await peer.script(Answer(status=status, error="No.", headers={"retry-after-ms": "1"}, times=0))
        with pytest.raises(openai.APIStatusError):
            await client.chat.completions.create(model="chat", messages=HELLO)
        assert len(await peer.requests()) == times


WITHHELD: Mapping[str, tuple[str, Answer, str, str]] = {
    "by OpenAI": ("chat", Answer(text="It is", finish="content_filter"), "content_filter", "It is"),
    "by Gemini": ("chat", Answer(text="It is", finish="content_filter: SPII"), "content_filter", "It is"),
    "by Azure, before it began": (
        "chat",
        Answer(status=400, body=b'{"error":{"code":"content_filter","message":"The prompt was filtered."}}'),
        "content_filter",
        "",
    ),
    "by a proxy, before it began": (
        "chat",
        Answer(status=403, body=b'{"error":{"message":"Your input was flagged.","code":403}}'),
        "content_filter",
        "",
    ),
    "by Anthropic": ("messages", Answer(text="It is", finish="refusal"), "refusal", "It is"),
    "by Anthropic, at once": ("messages", Answer(finish="refusal"), "refusal", ""),
    "by Anthropic's filter": (
        "messages",
        Answer(status=400, error="Output blocked by content filtering policy"),
        "content_filter",
        "",
    ),
    "with a call": (
        "chat",
        Answer(text="It is", calls=(Called("find"),), finish="content_filter"),
        "content_filter",
        "It is",
    ),
    "by the model": (
        "chat",
        Answer(
            body=b'data: {"choices":[{"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        ),
        "refusal",
        "I will not.",
    ),
    "in the middle": (
        "chat",
        Answer(
            body=b'data: {"choices":[{"delta":{"content":"It is"}}]}\n\n'
            b'data: {"error":{"type":"invalid_request_error","code":"content_filter","message":"No."}}\n\n'
        ),
        "content_filter",
        "It is",
    ),
}


async def test_an_answer_that_is_withheld_is_reported_with_its_reason_and_the_text_so_far(
    server: Served, peer: Peer
) -> None:
    for case, (model, withheld, reason, text) in WITHHELD.items():
        await peer.script(withheld, withheld)
        whole = await complete(server, model, tools=[FIND])
        assert whole.status_code == 200, (case, whole.text)
        (choice,) = whole.json()["choices"]
        assert (choice["finish_reason"], choice["message"]["content"] or "") == ("content_filter", text), case
        assert "tool_calls" not in choice["message"]
        stream = chunks(await complete(server, model, tools=[FIND], stream=True))
        assert "".join(each["choices"][0]["delta"].get("content", "") for each in stream) == text, case
        assert stream[-1]["choices"][0]["finish_reason"] == "content_filter"
        (run,) = (await server.get(f"/log?type=run_done&thread={whole.json()['id']}"))["events"]
        assert run["data"]["stopReason"] == reason


@pytest.mark.parametrize("reason", ["content_filter", "refusal"])
async def test_every_surface_tells_that_an_answer_was_withheld(server: Served, peer: Peer, reason: str) -> None:
    await peer.script(Answer(text="It is", finish=reason, times=6))
    chat, said = "//a1/agents/talker/chat", {"message": "Hello!"}
    turn = await server.call("POST", chat, json=said, headers=USER)
    assert (turn.json()["stop_reason"], turn.json()["reply"]) == (reason, "It is")
    stream = await server.call("POST", chat, json={**said, "stream": True}, headers=USER)
    assert f'"stopReason":"{reason}"' in stream.text
    sessions = "//a1/agents/talker/sessions"
    session = (await server.call("POST", sessions, json={}, headers=USER)).json()["id"]
    for _ in range(2):  # it goes on
        in_session = await server.call("POST", f"{sessions}/{session}/messages", json=said, headers=USER)
        assert (in_session.json()["stop_reason"], in_session.json()["reply"]) == (reason, "It is")
    kept = (await server.call("GET", f"{sessions}/{session}/messages", headers=USER)).json()["messages"]
    assert [(each["role"], each.get("stop_reason")) for each in kept] == [("user", None), ("assistant", reason)] * 2
    asked = {"data": {"inputs": {"message": "Hello!"}}}
    invoked = await server.call("POST", "/agents/talker/invoke", json=asked)
    assert invoked.json()["data"]["outputs"]["stop_reason"] == reason
    vercel = {"x-ag-messages-format": "vercel"}
    ui = await server.call("POST", "/agents/talker/invoke", json={**asked, "flags": {"stream": True}}, headers=vercel)
    assert f'"stopReason":"{reason}"' in ui.text


async def test_a_call_that_its_length_cut_ends_by_its_length(server: Served, peer: Peer) -> None:
    for arguments in ('{"id": 7, "na', ""):
        await peer.script(Answer(calls=(Called("find", arguments),), finish="length", times=2))
        (whole,) = (await complete(server, tools=[FIND], max_tokens=9)).json()["choices"]
        *_, last = chunks(await complete(server, tools=[FIND], max_tokens=9, stream=True))
        assert whole["finish_reason"] == last["choices"][0]["finish_reason"] == "length"
        for calls in (whole["message"]["tool_calls"], last["choices"][0]["delta"]["tool_calls"]):
            assert calls[0]["function"]["arguments"] == arguments


async def test_what_a_model_thinks_aloud_is_given_beside_what_it_says(server: Served, peer: Peer) -> None:
    for model in ("chat", "messages"):
        await peer.script(Answer(text="It is 42.", thought="Six times seven, well.", times=2))
        (choice,) = (await complete(server, model)).json()["choices"]
        assert choice["message"] == {
            "role": "assistant",
            "content": "It is 42.",
            "reasoning_content": "Six times seven, well.",
        }
        deltas = [each["choices"][0]["delta"] for each in chunks(await complete(server, model, stream=True))]
        assert "".join(each.get("reasoning_content", "") for each in deltas) == "Six times seven, well."
        assert "".join(each.get("content", "") for each in deltas) == "It is 42."


@pytest.mark.parametrize("includes_usage", [False, True])
async def test_the_last_chunk_of_a_stream_tells_its_cost(server: Served, peer: Peer, *, includes_usage: bool) -> None:
    await peer.script(Answer(text="Hello.", cost=0.25), Answer(text="Hello, you.", pieces=9, cost=0.5, cut_after=6))
    options: Any = {"stream_options": {"include_usage": True}} if includes_usage else {}
    *before, last = chunks(await complete(server, stream=True, **options))
    cost = {"usd": "0.25", "source": "upstream", "sub_calls": "1"}
    assert last["spass_cost"] == cost
    assert (last["choices"] == [], last.get("usage") is not None) == (includes_usage, includes_usage)
    assert not any("spass_cost" in each for each in before)
    *_, failed = chunks(await complete(server, stream=True, **options))
    assert (failed["error"]["code"], failed["spass_cost"]["sub_calls"]) == ("upstream_error", "1")


async def test_whether_a_functions_schema_is_strict_is_handed_on(server: Served, peer: Peer) -> None:
    for strict in (True, False, None):
        await peer.script(Answer(text="Hello.", times=2))
        own = {"type": "function", "function": {**FIND["function"], **({} if strict is None else {"strict": strict})}}
        for model in ("chat", "messages"):
            assert (await complete(server, model, tools=[own])).status_code == 200
        chat, messages = [request["body"]["tools"][0] for request in (await peer.requests())[-2:]]
        assert chat["function"].get("strict") is strict
        assert messages.get("strict") is (True if strict else None)


async def test_a_server_that_does_not_know_strict_is_asked_without_it(server: Served, peer: Peer) -> None:
    own = {"type": "function", "function": {**FIND["function"], "strict": True}}
    for model in ("chat", "messages"):
        message = "tools.0.strict: Extra inputs are not permitted"
        await peer.script(Answer(status=400, error=message), Answer(text="Hello."))
        assert (await complete(server, model, tools=[own])).status_code == 200
        assert "strict" not in json.dumps((await peer.requests())[-1]["body"]["tools"])


async def test_a_request_longer_than_a_threads_budget_is_served(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello."))
    talk = [{"role": "user", "content": "word " * 4000}]
    assert (await complete(server, messages=talk)).status_code == 200
    refused = await server.call("POST", "/agents/talker/invoke", json={"data": {"inputs": {"message": "word " * 4000}}})
    assert refused.json()["error"]["code"] == "budget_exhausted"


async def test_a_call_of_what_is_not_offered_is_refused_before_the_model_is_asked(server: Served, peer: Peer) -> None:
    lose = {"type": "function", "function": {"name": "lose"}}
    for choice in ({"tool_choice": "required"}, {"tool_choice": lose}, {"tool_choice": lose, "tools": [FIND]}):
        answer = await complete(server, **choice)
        assert (answer.status_code, answer.json()["error"]["param"].startswith("/tool_choice")) == (400, True)
    assert await peer.requests() == []


async def test_what_is_said_of_calls_is_left_out_where_no_function_is_offered(server: Served, peer: Peer) -> None:
    await peer.script(Answer(text="Hello."))
    await complete(server, tools=[FIND], tool_choice="none", parallel_tool_calls=False)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & (await peer.requests())[-1]["body"].keys()
