"""The Model Context Protocol's client for Python, by streamable HTTP, in the protocol's form of today and of before."""

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from checks import TOKEN, URL, check
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

ERAS = ("auto", "legacy")


@asynccontextmanager
async def speaking(mode: str = "auto", token: str = TOKEN) -> AsyncIterator[Client]:
    """A client of ``/mcp``."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def listed(client: Client) -> dict[str, Any]:
    return {tool.name: tool for tool in (await client.list_tools()).tools}


for era in ERAS:

    @check(f"{era}: tools are listed and called")
    async def called(mode: str = era) -> None:
        async with speaking(mode) as client:
            assert {"calculator", "shop"} <= set(await listed(client))
            answer = await client.call_tool("calculator", {"expression": "6*7"})
            assert not answer.is_error
            assert answer.structured_content == {"value": "42", "exact": True, "fraction": ""}

    @check(f"{era}: a tool's own error, and a wrong argument, are results that say so")
    async def failed(mode: str = era) -> None:
        async with speaking(mode) as client:
            for name, arguments, said in (
                ("shop", {"what": "gold"}, "sold out"),
                ("calculator", {"expression": "1/0"}, "zero"),
                ("calculator", {"expresion": "1"}, "expresion"),
            ):
                answer = await client.call_tool(name, arguments)
                assert answer.is_error, answer
                assert said in answer.content[0].text.lower(), answer

    @check(f"{era}: an error of the protocol comes as such")
    async def refused(mode: str = era) -> None:
        async with speaking(mode) as client:
            code = None
            try:
                await client.get_prompt("none")
            except MCPError as error:
                code = error.error.code
            assert code == -32601, code

    @check(f"{era}: a wrong token is refused with what is wrong")
    async def wrong_token(mode: str = era) -> None:
        said = ""
        try:
            async with speaking(mode, "org_wrong") as client:
                await client.list_tools()
        except Exception as error:  # noqa: BLE001 - of whatever kind
            said = "".join(traceback.format_exception(error))
        assert "invalid_authorization" in said, said[-200:]


@check("tools carry hints of what a call does")
async def hinted() -> None:
    async with speaking() as client:
        tools = await listed(client)
    hints = {name: tools[name].annotations for name in ("calculator", "key_value_delete")}
    found = {name: (hint.read_only_hint, hint.destructive_hint, hint.idempotent_hint) for name, hint in hints.items()}
    assert found == {"calculator": (True, False, True), "key_value_delete": (False, True, True)}, found


@check("tools carry the schema of their answer, which holds")
async def outputs() -> None:
    async with speaking() as client:
        tools = await listed(client)
        missing = [name for name, tool in tools.items() if tool.output_schema is None]
        assert missing == [], missing
        answer = await client.call_tool("shop", {"what": "tea"})  # the client holds it to the schema
        assert answer.structured_content == {"cents": 180, "tags": ["hot"]}
