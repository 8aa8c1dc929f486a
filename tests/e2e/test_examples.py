"""The clients of docs/examples against the real command: they miss nothing, whatever dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Page

from tests.cli.command import REPOSITORY
from tests.e2e.serving import Process, serving
from tests.e2e.test_page import page as page  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.e2e

EXAMPLES = REPOSITORY / "docs" / "examples"
MAX_LINES = 60
PATIENCE_SECONDS = 30


async def greet(server: Process, name: str) -> None:
    """One chain of four messages, to its end."""
    async with server.client() as client:
        answer = await client.post("/inject", json={"to": "greeter", "payload": {"name": name}, "wait": 20})
        assert answer.status_code == 200


@asynccontextmanager
async def following(server: Process, place: Path, *filters: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The Python client as a process of its own, killed at the end."""
    url = server.url.replace("http", "ws", 1) + "/ws"
    command = [sys.executable, str(EXAMPLES / "follow.py"), url, str(place), *filters]
    environment = {**os.environ, "ORGANISM_TOKEN": server.token}
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def lines(process: asyncio.subprocess.Process, count: int) -> list[dict[str, Any]]:
    """The next events that it prints."""
    assert process.stdout
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [orjson.loads(await process.stdout.readline()) for _ in range(count)]


def shouted(events: Sequence[dict[str, Any]]) -> list[str]:
    """The messages to the shouter, event by event."""
    return [event["message"]["payload"]["message"] for event in events]


@pytest.mark.parametrize("name", ["follow.py", "follow.js"])
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) < MAX_LINES


async def test_the_python_client_survives_kills_of_the_server_and_of_itself(tmp_path: Path) -> None:
    place, wanted = tmp_path / "place.json", ("agents=shouter", "events=message")
    place.write_text('{"since": 0}')
    async with serving(tmp_path / "data") as server:
        port = server.url.rsplit(":", 1)[1]
        await greet(server, "a")
        async with following(server, place, *wanted) as client:
            seen = await lines(client, 2)
            await server.end(signal.SIGKILL)
            async with serving(tmp_path / "data", "--port", port) as again:
                await greet(again, "b")
                seen += await lines(client, 2)
        async with serving(tmp_path / "data", "--port", port) as again:
            await greet(again, "c")
            async with following(again, place, *wanted) as client:
                seen += await lines(client, 2)
    assert shouted(seen[::2]) == ["Hello, a!", "Hello, b!", "Hello, c!"]
    positions = [event["position"] for event in seen]
    assert positions == sorted(set(positions))


async def test_the_javascript_client_survives_a_kill_of_the_server(page: Page, tmp_path: Path) -> None:
    states, events = asyncio.Queue[dict[str, Any]](), asyncio.Queue[dict[str, Any]]()
    await page.expose_function("onState", states.put_nowait)
    await page.expose_function("onEvent", events.put_nowait)
    options = """{filter: {agents: "shouter", events: "message"}, onState, onEvent, token}"""
    async with asyncio.timeout(2 * PATIENCE_SECONDS), serving(tmp_path / "data") as server:
        port = server.url.rsplit(":", 1)[1]
        await page.goto(server.url)
        source = (EXAMPLES / "follow.js").read_text()
        await page.evaluate(f"token => {{ {source} follow({options}); }}", server.token)
        assert (await states.get())["event"] == "connected"
        await greet(server, "a")
        seen = [await events.get(), await events.get()]
        await server.end(signal.SIGKILL)
        async with serving(tmp_path / "data", "--port", port) as again:
            await greet(again, "b")
            seen += [await events.get(), await events.get()]
    assert states.empty(), "it had the state and went on from there"
    assert shouted(seen[::2]) == ["Hello, a!", "Hello, b!"]
    positions = [event["position"] for event in seen]
    assert positions == sorted(set(positions))
