"""Invoke of the agents that ship, over HTTP: a batch is the fold of the stream, and a flag changes the shape alone.

The clock stands still, so that the same question has the same answer.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from organism.views.run import fold
from tests.flows.stage import TurnedTime
from tests.server.served import AGENTS, HELLO, Served, served

QUESTION = "What is 17 % of 2,340, and what day is it in Tokyo?"
TALKS = (
    {"message": QUESTION},
    {"messages": [{"role": "user", "content": "Hi!"}, {"role": "user", "content": QUESTION}]},
)
STREAMS = (
    ("application/x-ndjson", '{"type":', "}\n"),
    ("application/jsonl", '{"type":', "}\n"),
    ("text/event-stream", 'data: {"type":', "}\n\n"),
)
"""Media types of a stream, with how its text begins and how each entry of it ends."""
SAYS: tuple[bool | None, ...] = (None, False, True)


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    """The organism that ships, at a time that stands."""
    async with served(parts=TurnedTime().parts()) as server:
        yield server


async def invoke(server: Served, agent: str, inputs: Any, path: str = "/invoke", **more: Any) -> httpx2.Response:
    """One invoke; ``headers`` besides the token's, all else stands in the body."""
    headers = {**server.bearer, **more.pop("headers", {})}
    named = {"agent": agent} if path == "/invoke" else {}
    body = {**named, "data": {"inputs": inputs}, **more}
    return await server.client.post(f"{server.url}{path}", json=body, headers=headers)


def entries_of(answer: httpx2.Response) -> list[Any]:
    """A stream's entries, as a client reads them, without its cost."""
    assert answer.status_code == 200, answer.text
    entries, _, _ = answer.text.partition("event: spass.cost\n")
    return [orjson.loads(line.removeprefix("data: ")) for line in entries.split("\n") if line]


def outputs(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["outputs"]


def folded(answer: httpx2.Response) -> Any:
    return {name: value for name, value in fold(entries_of(answer)).items() if value is not None}


async def test_the_ai_sdk_is_answered_as_it_asks(server: Served) -> None:
    body = {
        "id": "chat-1",
        "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": QUESTION}]}],
        "trigger": "submit-message",
    }
    headers = {**server.bearer, "x-ag-messages-format": "vercel", "accept": "*/*"}
    answer = await server.client.post(f"{server.url}/agents/researcher/invoke", json=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    *parts, done = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    kinds = [orjson.loads(part)["type"] for part in parts]
    assert (kinds[0], kinds[-1], done) == ("start", "finish", "[DONE]")
    assert {"tool-input-available", "tool-output-available", "text-delta"} <= set(kinds)


@pytest.mark.parametrize("inputs", TALKS, ids=["message", "messages"])
@pytest.mark.parametrize("agent", AGENTS)
async def test_the_fold_of_an_agent_s_stream_is_its_batch(server: Served, agent: str, inputs: Any) -> None:
    batch = outputs(await invoke(server, agent, inputs))
    assert batch["stop_reason"] == "stop"
    assert batch["messages"][-1]["role"] == "assistant"
    for kind, begin, end in STREAMS:
        streamed = await invoke(server, agent, inputs, headers={"accept": kind})
        assert (streamed.headers["content-type"], streamed.text[: len(begin)]) == (kind, begin)
        assert streamed.text.endswith(end)
        entries, _, _ = streamed.text.partition("event: spass.cost\n")
        assert entries.count(end) == len(entries_of(streamed))
        assert folded(streamed) == batch
        assert [entry["type"] for entry in entries_of(streamed)].index("done") == len(entries_of(streamed)) - 1


async def test_the_batch_of_an_agent_with_tools_shows_its_calls_and_their_results(server: Served) -> None:
    messages = outputs(await invoke(server, "researcher", TALKS[0]))["messages"]
    called = {message["tool_call_id"]: message["tool_name"] for message in messages if "tool_name" in message}
    assert sorted(called.values()) == ["calculator", "current_datetime"]
    results = [message for message in messages if "is_error" in message]
    assert {message["tool_call_id"] for message in results} == set(called)
    assert {message["is_error"] for message in results} == {False}
    assert "397.8" in messages[-1]["content"]


REFERRING = """
  - {name: helper, description: Helps, prompt_ref: researcher}
  - {name: labeller, description: Labels, prompt_ref: A2@v1}
"""


async def test_who_refers_to_an_agent_streams_and_who_refers_to_a_prompt_gives_a_batch(tmp_path: Path) -> None:
    for name in ("handlers", "config/agents"):
        shutil.copytree(HELLO.parent / name, tmp_path / name)
    (tmp_path / "organism.yaml").write_text(HELLO.read_text() + REFERRING)
    async with served(tmp_path / "organism.yaml", parts=TurnedTime().parts()) as server:
        batch = outputs(await invoke(server, "helper", TALKS[0]))
        assert folded(await invoke(server, "helper", TALKS[0], flags={"stream": True})) == batch
        labels = outputs(await invoke(server, "labeller", {"message": "Be formal."}))
        refused = await invoke(server, "labeller", {"message": "Be formal."}, flags={"stream": True})
    assert orjson.loads(labels["messages"][-1]["content"])["tone"] == "formal"
    assert (refused.status_code, refused.json()["error"]["supported"]) == (406, ["batch"])


async def test_lines_of_one_header_are_one_list(server: Served) -> None:
    url, body = f"{server.url}/agents/concise-de/invoke", {"data": {"inputs": {"message": "Hallo"}}}
    for name, one, other, kind in (
        ("accept", "text/event-stream", "application/jsonl;q=0.5", "text/event-stream"),
        ("accept", "application/json", "text/event-stream", "application/json"),
        ("x-ag-session-control", "none", "force", "application/json"),
    ):
        lines = [(name, one), (name, other)]
        answer = await server.client.post(url, json=body, headers=[*server.bearer.items(), *lines])
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)


FAILING = """
organism: {name: weak}
models:
  weak: {provider: scripted, script: script.yaml}
retry: {attempts: 2, base_delay_s: 0.001}
listeners:
  - {name: weakling, description: Fails now and then, model: weak}
"""
SCRIPT = """
answers:
  - {when: recovers, fault: unavailable, times: 2}
  - {when: recovers, text: Here I am.}
  - {when: fails, fault: unauthorized}
"""


@pytest.fixture
async def weak(tmp_path: Path) -> AsyncIterator[Served]:
    """An agent whose model fails: for good, or for one attempt."""
    (tmp_path / "organism.yaml").write_text(FAILING)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    async with served(tmp_path / "organism.yaml") as server:
        yield server


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_an_error_before_the_first_byte_waits_for_the_next_attempt(weak: Served, accept: str) -> None:
    headers = {"accept": accept, "idempotency-key": "once"}
    for _ in range(2):
        answer = await invoke(weak, "weakling", {"message": "recovers"}, headers=headers)
        run = outputs(answer) if accept == "application/json" else folded(answer)
        assert run == {"messages": [{"role": "assistant", "content": "Here I am."}], "stop_reason": "stop"}
    failed = await invoke(weak, "weakling", {"message": "fails"}, headers={"accept": accept})
    assert (failed.status_code, failed.json()["error"]["code"]) == (502, "upstream_error")


TOLD = (
    "from", "to", "type", "depth", "agent", "kind", "attempt", "version", "model", "provider", "input_tokens", "tokens",
    "output_tokens", "cost_usd", "cost_source", "attempts", "id", "offset", "length", "outcome", "stopReason",
)  # fmt: skip
"""What events say that is the same for the same question; the rest are ids, digests with salt or with ids."""


async def trace(server: Served, answer: httpx2.Response) -> list[str]:
    """What the log holds of the newest thread."""
    assert answer.status_code == 200, answer.text
    (thread,) = (await server.get("/threads", params={"limit": 1}))["threads"]
    events = (await server.get("/log", params={"thread": thread["id"], "limit": 500}))["events"]
    found = [{"event": each["type"], **{key: each["data"].get(key) for key in TOLD}} for each in events]
    return sorted(orjson.dumps(each).decode() for each in found)


async def test_no_flag_or_header_changes_the_log_the_cost_or_the_trace(server: Served) -> None:
    asked: list[dict[str, Any]] = [{"flags": {"stream": stream, "trim": trim}} for stream, trim in product(SAYS, SAYS)]
    asked += [{"flags": {"resolve": False}}, {"headers": {"accept": STREAMS[2][0]}}]
    asked += [{"headers": {"accept": STREAMS[0][0], "x-ag-messages-format": "vercel"}}]
    traces = [await trace(server, await invoke(server, "researcher", TALKS[0], **more)) for more in asked]
    assert sum('"event":"model_called"' in each for each in traces[0]) == 2
    assert [other for other in traces if other != traces[0]] == []
