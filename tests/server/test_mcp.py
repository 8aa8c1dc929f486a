"""The organism as an MCP server: asked by the real client, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import orjson
import pytest
import pytest_asyncio
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ToolAnnotations

from organism.bootstrap import VERSION
from organism.events.record import Record
from organism.events.vocabulary import Event, MessageStarted
from organism.testing import running
from tests.flows.world import MakeWorld, World
from tests.server.logged import Terminal, logged
from tests.server.served import TOKEN, Served, served
from tests.server.surfaces.test_tools import GRANTS, LISTED, LISTENERS, RETRY, ROUGH, SHIPPED, SOURCE
from tests.server.tenanted import bearer, hello_with, token, write_tokens

ERAS = ("auto", "legacy")
"""The protocol of today, where each request is by itself, and that of before, with its handshake."""


@asynccontextmanager
async def speaking(server: Served, mode: str = "auto", headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    """A client of ``/mcp``."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if headers is None else headers
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,  # of a busy machine too
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    """The text of an answer."""
    return "".join(getattr(block, "text", "") for block in result.content)


async def started(server: Served) -> AsyncIterator[Record[Event]]:
    """The handlings that begin."""
    async for records in server.log.follow(0):
        for record in records:
            if isinstance(record.event, MessageStarted):
                yield record


async def names(client: Client) -> list[str]:
    """The names of the tools that are offered."""
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_tools_are_offered_with_their_schemas_and_called(shared: Served, mode: str) -> None:
    async with speaking(shared, mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == LISTED
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("organism", VERSION)
        assert tools[0].input_schema["required"] == ["expression"]
        assert (tools[0].description or "").startswith("Computes an arithmetic expression exactly.")
        answer = await client.call_tool("calculator", {"expression": "2 * 21"})
        assert (answer.is_error, answer.structured_content) == (
            False,
            {"value": "42", "exact": True, "fraction": ""},
        )
        assert text_of(answer) == '{"value":"42","exact":true,"fraction":""}'


@pytest.mark.parametrize("secret", [TOKEN, token("default", "unused")])
@pytest.mark.parametrize("glue", ["", "x"])
async def test_no_answer_repeats_a_secret_of_its_request(tmp_path: Path, secret: str, glue: str) -> None:
    named, more = f"{glue}{secret}{glue}", {"Accept": "application/json, text/event-stream"}
    async with served(hello_with(tmp_path, {"default": {"unused": ["admin"]}})) as server:
        for method, params in [
            ("tools/list", {}),
            (named, {}),
            ("tools/call", {"name": named, "arguments": {}}),
            ("tools/call", {"name": "calculator", "arguments": {named: named}}),
            ("tools/call", {"name": "key_value_get", "arguments": {"key": named}}),
        ]:
            asked = {"jsonrpc": "2.0", "id": named, "method": method, "params": params}
            answer = await server.call("POST", "//mcp", json=asked, headers=more)
            assert (answer.status_code, answer.json()["id"]) == (200, f"{glue}[redacted]{glue}")
            assert secret not in answer.text


async def test_a_notification_is_taken_without_a_body_or_its_type(shared: Served) -> None:
    shown = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = await shared.call("POST", "//mcp", json=shown, headers={"Accept": "application/json, text/event-stream"})
    assert (answer.status_code, answer.content) == (202, b"")
    assert "content-type" not in answer.headers


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("calculator", {"expression": "1/0"}, "invalid_field: nothing can be divided by zero."),
    ("calculator", {}, "invalid_payload: The Calculator does not fit at /expression: this field is missing"),
    ("nobody", {}, "not_found: There is no tool 'nobody'."),
    ("greeter", {"name": "Dan"}, "not_found: There is no tool 'greeter'."),
    ("http_fetch", {"url": "https://a.example"}, "not_found: http_fetch is off: list the hosts"),
]


async def test_what_a_call_refuses_is_reported_to_the_model_as_an_error(shared: Served) -> None:
    async with speaking(shared, "legacy") as client:
        for name, arguments, text in REFUSED:
            answer = await client.call_tool(name, arguments)
            assert answer.is_error
            assert text_of(answer).startswith(text)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_tools(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A tool of the organism's own, the shipped ones, and tokens that may call some of them."""
    play = World(tmp_path_factory.mktemp("tools"), SOURCE, LISTENERS, retry=RETRY)
    write_tokens(play.folder, {"acme": GRANTS})
    async with served(play.config) as server:
        yield server


async def test_a_tool_that_fails_is_reported_without_its_reason(shared_tools: Served) -> None:
    async with speaking(shared_tools) as client:
        answer = await client.call_tool("helper", {"text": "raise"})
    assert answer.is_error
    assert text_of(answer).startswith("handling_failed: ")
    assert "operators" not in text_of(answer)


@pytest.mark.parametrize(
    ("who", "offered"),
    [("all-tools", SHIPPED), ("one-tool", ["calculator"]), ("tools-and-helper", [*SHIPPED, "helper"])],
)
async def test_only_what_the_token_may_call_is_offered_and_called(
    shared_tools: Served, who: str, offered: list[str]
) -> None:
    async with speaking(shared_tools, headers=bearer("acme", who)) as client:
        assert sorted(await names(client)) == sorted(offered)
        answer = await client.call_tool("helper", {"text": "x"})
    assert answer.is_error == ("helper" not in offered)
    assert answer.is_error is False or text_of(answer).startswith("forbidden: ")


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "Bearer wrong"}, 401), (bearer("acme", "reader"), 403)],
)
async def test_it_takes_a_token_with_the_scope(shared_tools: Served, headers: dict[str, str], status: int) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await http.post(f"{shared_tools.url}/mcp", json=ping, headers=headers)).status_code == status


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc":"2.0"}', b"null", b'{"jsonrpc":"2.0","id":1}'])
async def test_what_is_no_message_of_the_protocol_is_refused(shared: Served, body: bytes) -> None:
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{shared.url}/mcp", content=body, headers=headers)
        assert 400 <= answer.status_code < 500
        assert (await http.get(f"{shared.url}/mcp", headers=headers)).status_code == 405
    async with speaking(shared) as client:
        assert await names(client) == LISTED


PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}
ACCEPT = "application/json, text/event-stream"
RPC_REFUSED: dict[str, tuple[dict[str, str], Any, tuple[int, int, str]]] = {
    "no token": ({"Authorization": ""}, PING, (401, -32600, "missing_authorization")),
    "a wrong token": ({"Authorization": "Bearer wrong"}, PING, (401, -32600, "invalid_authorization")),
    "no scope": (bearer("acme", "reader"), PING, (403, -32600, "forbidden")),
    "no JSON": ({}, "{", (400, -32700, "invalid_json")),
    "a key twice": ({}, '{"jsonrpc":"2.0","id":1,"id":2}', (400, -32700, "invalid_json")),
    "no message": ({}, [], (400, -32600, "invalid_field")),
    "an unknown field": ({}, {**PING, "x": 1}, (400, -32600, "unknown_field")),
    "another host": ({"Host": "evil.example"}, PING, (403, -32600, "forbidden")),
    "another type": ({"Content-Type": "text/plain"}, PING, (415, -32600, "unsupported_media_type")),
    "no form that is taken": ({**MODERN, "Accept": "text/html"}, PING, (406, -32600, "not_acceptable")),
}


@pytest.mark.parametrize(("headers", "body", "refusal"), RPC_REFUSED.values(), ids=RPC_REFUSED)
async def test_a_refusal_is_an_error_of_json_rpc(
    shared_tools: Served, headers: dict[str, str], body: Any, refusal: tuple[int, int, str]
) -> None:
    usual = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": ACCEPT}
    content = body if isinstance(body, str) else orjson.dumps(body)
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{shared_tools.url}/mcp", content=content, headers={**usual, **headers})
    refused = answer.json()
    assert (answer.status_code, refused["error"]["code"], refused["error"]["data"]["code"]) == refusal
    assert (refused["jsonrpc"], refused["id"]) == ("2.0", None)
    assert refused["error"]["message"].startswith(f"{refusal[2]}: ")
    assert refused["error"]["data"]["request_id"] == answer.headers["x-request-id"]
    assert ("www-authenticate" in answer.headers) == (answer.status_code == 401)


@pytest.mark.parametrize(
    ("headers", "params", "method", "refusal"),
    [
        ({}, {}, "no/such", (200, -32601)),
        ({}, {}, "tools/call", (200, -32602)),
        (MODERN, {}, "ping", (400, -32602)),
        ({"MCP-Protocol-Version": "1999-01-01"}, {}, "ping", (400, -32602)),
    ],
)
async def test_an_error_of_the_protocol_is_passed_on_as_it_is(
    shared: Served, headers: dict[str, str], params: Any, method: str, refusal: tuple[int, int]
) -> None:
    asked = {"jsonrpc": "2.0", "id": "a7", "method": method, "params": params}
    answer = await shared.call("POST", "//mcp", json=asked, headers={"Accept": ACCEPT, **headers})
    refused = answer.json()
    assert (answer.status_code, refused["error"]["code"], refused["id"]) == (*refusal, "a7")
    assert "type" not in refused["error"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_is_told_what_is_wrong_with_its_token(shared: Served, mode: str) -> None:
    with pytest.raises((MCPError, ExceptionGroup)) as raised:
        async with speaking(shared, mode, {"Authorization": "Bearer wrong"}) as client:
            await client.list_tools()
    assert "invalid_authorization" in "".join(traceback.format_exception(raised.value))


async def hinted(client: Client) -> dict[str, tuple[bool | None, ...]]:
    """Of each tool whether it only reads, destroys, is idempotent, and reaches outside."""
    tools = (await client.list_tools()).tools
    hints = {tool.name: tool.annotations or ToolAnnotations() for tool in tools}
    return {
        name: (each.read_only_hint, each.destructive_hint, each.idempotent_hint, each.open_world_hint)
        for name, each in hints.items()
    }


@pytest.mark.parametrize("by", ["http", "stdio"])
async def test_each_tool_carries_what_a_call_does_and_the_schema_of_its_answer(shared: Served, by: str) -> None:
    async with (
        speaking(shared) if by == "http" else Client(stdio_client(bridge(shared.url, TOKEN)), cache=None) as client
    ):
        hints = await hinted(client)
        assert hints["calculator"] == (True, False, True, False)
        assert hints["wikipedia_search"] == (True, False, True, True)
        assert hints["key_value_set"] == (False, True, True, False)
        assert hints["rag_doc_append"] == (False, True, True, False)
        document = {"id": "d1", "text": "x", "metadata": {"lang": "de", "tags": [1, None]}}
        asked = await client.call_tool("rag_index_create", {"index_id": by, "documents": [document]})
        assert asked.structured_content is not None  # the client holds it against the schema
        assert asked.structured_content["preview"]["doc_count"] == 1
        token = asked.structured_content["confirm_token"]
        confirmed = {"index_id": by, "documents": [document], "confirm_token": token}
        assert not (await client.call_tool("rag_index_create", confirmed)).is_error
        found = await client.call_tool("rag_doc_get", {"index_id": by, "doc_id": "d1"})
        assert found.structured_content == document
        schemas = {tool.name: tool.output_schema or {} for tool in (await client.list_tools()).tools}
        assert {schema["type"] for schema in schemas.values()} == {"object"}
        assert not jsonschema_rs.is_valid(schemas["rag_doc_get"], {**document, "metadata": "{}"})


async def test_of_a_tool_of_one_s_own_nothing_is_promised(shared_tools: Served) -> None:
    async with speaking(shared_tools) as client:
        assert (await hinted(client))["helper"] == (False, True, False, True)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["helper"].output_schema == {"type": "object"}
        assert (await client.call_tool("helper", {"text": "x"})).structured_content == {"text": "told x"}
        assert (await client.call_tool("helper", {"text": "nothing"})).structured_content == {"result": None}


async def test_an_agent_as_a_tool_answers_by_its_schema(world: MakeWorld) -> None:
    thinker = {"handler": None, "model": "offline", "prompt": "Be brief."}
    made = world(SOURCE, {**LISTENERS, "agent": {"tools": ["thinker"]}, "thinker": thinker})
    async with served(made.config) as server, speaking(server) as client:
        assert (await hinted(client))["thinker"] == (False, True, False, False)
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "thinker"]
        assert set((tool.output_schema or {})["$defs"]) == {"Answer"}
        answer = await client.call_tool("thinker", {"message": "Hello?"})
        assert set(answer.structured_content or {}) == {"text", "citations"}


def requests_to_mcp(said: Terminal) -> int:
    """How many of them are over."""
    return sum(entry.get("route") == "/mcp" for entry in said.entries)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_leaves_is_waited_for_no_longer_and_a_stop_answers_what_is_under_way(
    world: MakeWorld, mode: str
) -> None:
    asks = SOURCE.replace('gate("helper")', "metadata.approve({})")  # a stop waits for no approval
    async with served(world(asks, LISTENERS).config) as server:
        begun = started(server)
        with logged() as log:
            async with speaking(server, mode) as client:
                left = asyncio.ensure_future(client.call_tool("helper", {"text": "wait"}))
                sent = await anext(begun)
                answered = requests_to_mcp(log)
                left.cancel()
            await server.until(lambda: requests_to_mcp(log) > answered)
        assert (await server.get(f"/threads/{sent.thread}"))["status"] == "active"
        async with speaking(server, mode) as client:
            await names(client)
            call = asyncio.ensure_future(client.call_tool("helper", {"text": "wait"}))
            await anext(begun)
            await server.call("POST", "/organism/stop")
            answer = await call
        assert answer.structured_content is not None
        assert answer.structured_content["status"] == "running"


async def test_who_wants_to_be_told_of_news_hears_that_there_is_no_such_thing(shared: Served) -> None:
    async with speaking(shared) as client:
        with pytest.raises(MCPError):
            async with client.listen(tools_list_changed=True):
                pass
        assert await names(client) == LISTED


async def test_without_the_extra_it_is_said_how_to_install_it(hello: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "organism.server.surfaces.mcp", None)
    answer = await hello.call("POST", "//mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer.status_code == 404
    assert "pip install 'organism[mcp]'" in answer.text


async def test_tools_of_other_servers_are_offered_on_with_their_own_schema(world: MakeWorld, tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ROUGH), str(tmp_path / "diary")]
    made = world(SOURCE, LISTENERS, tools={"mcp": {"rough": {"command": command}}})
    async with served(made.config) as server, speaking(server) as client:
        assert {"rough__do", "rough__promised"} <= set(await names(client))
        answer = await client.call_tool("rough__do", {"do": "this"})
        assert answer.structured_content == {"text": "did this", "json": "", "truncated": False}


def bridge(url: str, token: str) -> StdioServerParameters:
    """``organism mcp`` as a program."""
    root = Path(__file__).parents[2]
    environment = {"ORGANISM_URL": url, "ORGANISM_TOKEN": token, "PYTHONPATH": str(root)}
    return StdioServerParameters(command=sys.executable, args=["-m", "organism", "mcp"], env=environment)


async def test_the_same_is_offered_over_standard_input_and_output(shared: Served) -> None:
    async with Client(stdio_client(bridge(shared.url, TOKEN)), cache=None) as client:
        assert await names(client) == LISTED
        answer = await client.call_tool("calculator", {"expression": "2 * 21"})
        assert answer.structured_content == {"value": "42", "exact": True, "fraction": ""}
        refused = await client.call_tool("calculator", {"expression": "1/0"})
        assert (refused.is_error, text_of(refused)) == (True, "invalid_field: nothing can be divided by zero.")


async def test_the_bridge_says_what_is_wrong_with_the_server_or_the_token(shared: Served) -> None:
    async with Client(stdio_client(bridge(shared.url, "wrong")), cache=None) as client:
        with pytest.raises(MCPError, match="invalid_authorization"):
            await client.list_tools()
        assert (await client.call_tool("calculator", {"expression": "1"})).is_error
    async with Client(stdio_client(bridge("http://127.0.0.1:1", TOKEN)), cache=None) as client:
        answer = await client.call_tool("calculator", {"expression": "1"})
        assert answer.is_error
        assert text_of(answer).startswith("The organism at 127.0.0.1 does not answer: ")


async def test_an_organism_calls_the_tools_of_another(
    shared: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR", TOKEN)
    config = tmp_path / "organism.yaml"
    config.write_text(
        f"organism: {{name: near}}\ntools: {{mcp: {{far: {{url: '{shared.url}/mcp', token_env: FAR}}}}}}\n"
    )
    async with running(config) as near:
        done = await near.inject("far__calculator", {"json": '{"expression": "2 * 21"}'}, wait=True)
        assert done.replies[0]["json"] == '{"value":"42","exact":true,"fraction":""}'
        refused = await near.inject("far__calculator", {"json": '{"expression": "1/0"}'}, wait=True)
        message = "invalid_field: nothing can be divided by zero."
        assert refused.replies == ({"code": "upstream_error", "message": message},)
    assert (await shared.get("/threads?limit=1"))["threads"][0]["participants"] == ["console", "calculator"]
