"""A failing model is the upstream's fault, for every caller and on every surface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.flows.test_prompted import PROMPT, SHAPER
from tests.flows.thinking import MODEL, agent
from tests.flows.world import World
from tests.server.served import Served, served

SOURCE = """
from organism import Prompt

@dataclass
class Shape:
    task: str

async def asks_model(payload: Prompt, metadata: HandlerMetadata):
    answer = await metadata.complete([{"role": "user", "content": payload.message}])
    return HandlerResponse.respond(Told(answer.text))

async def shows_first(payload: Prompt, metadata: HandlerMetadata):
    await metadata.emit("message_start", {"id": "m1"})
    return await asks_model(payload, metadata)

async def asks_other(payload: Prompt, metadata: HandlerMetadata):
    return HandlerResponse.respond(await metadata.ask("asks-model", payload))

async def buggy(payload: Prompt, metadata: HandlerMetadata):
    try:
        return await asks_model(payload, metadata)
    except Exception:
        raise ValueError("/secret/path") from None

async def worsens(payload: Prompt, metadata: HandlerMetadata):
    if metadata.attempt == 1:
        await metadata.emit("message", {"text": "Well."})
        await metadata.emit("error", {"code": "upstream_error", "message": "The first."})
    raise ValueError("/secret/path")
"""
TALKS: dict[str, Any] = {"payload_class": "Prompt", "invoke": ["batch", "stream"], "model": MODEL}
LISTENERS: dict[str, Any] = {
    "thinker": agent(tools=["asks-model", "asks-other", "tinker", "buggy"]),
    "tinker": agent(),
    "asks-model": {**TALKS, "handler": "asks_model"},
    "shows-first": {**TALKS, "handler": "shows_first"},
    "asks-other": {**TALKS, "handler": "asks_other", "peers": ["asks-model"]},
    "buggy": {**TALKS, "handler": "buggy"},
    "shaper": SHAPER,
}
CAUSE = "The model is out of order."
AGENTS = ["thinker", "asks-model", "shows-first", "asks-other"]
USER = {"SPASS-User-Id": "dan"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    """Agents and handlers of one model, which fails."""
    fault = {"text": "", "fault": {"kind": "unauthorized", "message": CAUSE}}
    (tmp_path / "script.yaml").write_bytes(orjson.dumps({"answers": [fault]}))
    folder = tmp_path / "config/agents/A2"
    folder.mkdir(parents=True)
    (folder / "v1.json").write_bytes(orjson.dumps(PROMPT))
    models = {MODEL: {"provider": "scripted", "script": "script.yaml"}}
    config = World(tmp_path, SOURCE, LISTENERS, retry={"attempts": 1}, models=models).config
    async with served(config) as serving:
        yield serving


def check(answer: httpx2.Response) -> None:
    """It is a bad gateway that says why."""
    assert answer.status_code == 502, answer.text
    error = answer.json()["error"]
    assert (error["code"], CAUSE in error["message"]) == ("upstream_error", True), error


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", AGENTS)
async def test_a_turn_whose_model_fails_is_a_bad_gateway_on_each_surface(
    server: Served, name: str, *, stream: bool
) -> None:
    message = {"message": "hello"}
    check(await server.call("POST", f"//a1/agents/{name}/chat", json={**message, "stream": stream}, headers=USER))
    session = (await server.call("POST", f"//a1/agents/{name}/sessions", json={}, headers=USER)).json()["id"]
    path = f"//a1/agents/{name}/sessions/{session}/messages"
    check(await server.call("POST", path, json={**message, "stream": stream}, headers=USER))
    inputs = {"data": {"inputs": message}, "flags": {"stream": stream}}
    for more in ({}, {"x-ag-messages-format": "vercel"}, {"Accept": "text/event-stream"}):
        check(await server.call("POST", "/invoke", json={"agent": name, **inputs}, headers=more))


@pytest.mark.parametrize("stream", [False, True])
async def test_so_is_a_completion(server: Served, *, stream: bool) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    check(await server.call("POST", "//v1/chat/completions", json=body))


async def test_so_is_the_call_of_a_prompt(server: Served) -> None:
    inputs = {"data": {"inputs": {"payload": {"task": "Sort."}}}}
    check(await server.call("POST", "//agents/shaper/invoke", json=inputs))


@pytest.mark.parametrize("name", ["asks-model", "asks-other", "tinker"])
async def test_so_is_the_call_of_a_tool(server: Served, name: str) -> None:
    called = {"name": name, "arguments": {"message": "hello"}}
    check(await server.call("POST", "//v1/tools/execute", json=called))
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    headers = {"Accept": "application/json, text/event-stream"}
    result = (await server.call("POST", "//mcp", json=body, headers=headers)).json()["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("upstream_error: ")
    assert CAUSE in result["content"][0]["text"]


async def test_a_handler_that_fails_after_its_model_for_a_reason_of_its_own_does_not_tell_it(server: Served) -> None:
    answer = await server.call("POST", "//a1/agents/buggy/chat", json={"message": "hello"}, headers=USER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "handling_failed")
    assert "secret" not in answer.text
    called = {"name": "buggy", "arguments": {"message": "hello"}}
    answer = await server.call("POST", "//v1/tools/execute", json=called)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "handling_failed")


async def test_a_run_whose_last_attempt_tells_no_error_does_not_end_with_that_of_an_earlier_one(tmp_path: Path) -> None:
    retry = {"attempts": 2, "base_delay_s": 0}
    talks = {"payload_class": "Prompt", "invoke": ["batch", "stream"]}
    async with served(World(tmp_path, SOURCE, {"worsens": talks}, retry=retry).config) as server:
        body: dict[str, Any] = {"agent": "worsens", "data": {"inputs": {"message": "hello"}}}
        whole = await server.call("POST", "/invoke", json=body)
        stream = await server.call("POST", "/invoke", json={**body, "flags": {"stream": True}})
    assert whole.json()["data"]["outputs"]["error"]["code"] == "handling_failed"
    *_, first, last, done = map(orjson.loads, stream.text.splitlines())
    assert [first["data"]["message"], last["data"]["code"], done["type"]] == ["The first.", "handling_failed", "done"]
