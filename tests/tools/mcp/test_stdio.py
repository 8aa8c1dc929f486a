"""Servers that are run here: what they may write, how they end, and what is known when they misbehave."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from organism.config.tools import McpServer
from organism.model.handler import EffectUnknown
from organism.model.tool import ToolArguments, ToolError, ToolOutput
from organism.tools.mcp.calls import tool_handler
from organism.tools.mcp.connection import Connection
from organism.tools.mcp.stdio import MOST_LINE_BYTES, TOO_LONG
from tests.tools.outside import Steps

PATIENCE_SECONDS = 10
ROUGH = Path(__file__).with_name("rough.py")


@asynccontextmanager
async def rough(folder: Path, timeout_s: float = 20.0) -> AsyncIterator[Connection]:
    """A connection to the rough server."""
    command = (sys.executable, "-S", str(ROUGH), str(folder / "diary"))
    connection = Connection("rough", McpServer(command=command, timeout_s=timeout_s), folder, {})
    try:
        yield connection
    finally:
        await connection.drop()


async def result_of(connection: Connection, what: str, tool: str = "do", **more: Any) -> Any:
    """What a call to do something comes to."""
    arguments = ToolArguments(orjson.dumps({"do": what, **more}).decode())
    return (await tool_handler(connection, tool, "unsafe", None)(arguments, cast("Any", Steps()))).payload


def diary(folder: Path) -> list[str]:
    """What the server noted."""
    return (folder / "diary").read_text().split()


async def until_gone(pid: int) -> None:
    """Wait for the end of a process, which may be over."""
    gone = asyncio.Event()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, gone.set)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gone.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def test_what_is_no_message_is_passed_over(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        assert await result_of(connection, "this") == ToolOutput("did this", "", truncated=False)


async def test_a_line_without_an_end_is_cut_off_and_the_server_is_begun_again(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        with pytest.raises(EffectUnknown, match=TOO_LONG):
            await result_of(connection, "babble")
        assert (await result_of(connection, "this")).text == "did this"
        assert diary(tmp_path) == ["begun", "babble", "begun", "this"]


@pytest.mark.parametrize("how", ["huge", "huge backwards"])
async def test_an_answer_that_is_too_long_is_an_error_of_its_call_and_the_server_goes_on(
    tmp_path: Path, how: str
) -> None:
    async with rough(tmp_path) as connection:
        refused, _, other = await asyncio.gather(
            result_of(connection, how), result_of(connection, "tick x"), result_of(connection, "this")
        )
        said = (
            f"The MCP server rough was asked, and its answer cannot be read: it has more than {MOST_LINE_BYTES} bytes"
        )
        assert refused == ToolError("upstream_error", said)
        assert other.text == "did this"
        assert diary(tmp_path).count("begun") == 1


async def test_an_answer_that_its_parser_refuses_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        assert (await result_of(connection, "half")).text == "cut ?"
        refused = await result_of(connection, "deep")
        assert isinstance(refused, ToolError)
        assert "cannot be read" in refused.message
        assert diary(tmp_path).count("begun") == 1


async def test_a_server_that_hangs_is_left_and_begun_again(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        await connection.client()
        connection.server = McpServer(command=connection.server.command, timeout_s=0.3)
        with pytest.raises(EffectUnknown, match=r"did not answer within 0.3 seconds"):
            await result_of(connection, "hang")
        connection.server = McpServer(command=connection.server.command)
        assert (await result_of(connection, "this")).text == "did this"
        assert diary(tmp_path) == ["begun", "hang", "begun", "this"]


async def test_a_server_that_still_speaks_is_kept_though_a_call_is_late(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        await connection.client()
        connection.server = McpServer(command=connection.server.command, timeout_s=3)
        with pytest.raises(EffectUnknown, match=r"did not answer within 3 seconds"):
            await result_of(connection, "tick")
        assert (await result_of(connection, "this")).text == "did this"
        assert diary(tmp_path) == ["begun", "tick", "this"]


async def test_a_long_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        found = await result_of(connection, "long")
        assert (len(found.text), found.truncated) == (65_536, True)


async def test_numbers_of_any_size_are_carried_as_they_are(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        assert (await result_of(connection, "numbers")).json == '{"n":1180591620717411303424}'


async def test_what_a_tool_promises_of_its_answers_is_not_held_against_it(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        assert (await result_of(connection, "promise", "promised")).json == '{"n":"no number"}'


async def test_what_a_server_has_begun_ends_with_it(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        child = int((await result_of(connection, "child")).text)
        os.kill(child, 0)
    await until_gone(child)


async def test_a_server_that_does_not_go_is_killed(tmp_path: Path) -> None:
    async with rough(tmp_path) as connection:
        pid = int((await result_of(connection, "deaf")).text)
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
