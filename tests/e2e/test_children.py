"""Processes that a handler makes: they keep neither the data directory nor the port once the server has been killed."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command import organism
from tests.e2e.serving import Process, serving
from tests.flows.world import World
from tests.tools.mcp.test_stdio import until_gone

pytestmark = pytest.mark.e2e

WAYS = ("pool", "fork", "forkserver", "spawn", "os_fork", "thread", "popen", "before_exec", "posix_spawn")
CHILDREN = """
import concurrent.futures, multiprocessing, os, signal, subprocess, sys, threading, time

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
KEEP = []

def pool():
    KEEP.append(concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")))
    return KEEP[-1].submit(os.getpid).result()

def made_by(method):
    child = multiprocessing.get_context(method).Process(target=time.sleep, args=(600,))
    KEEP.append(child)
    child.start()
    return child.pid

def os_fork():
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
    return child

def thread():
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        return threads.submit(os_fork).result()

WAYS = {
    "pool": pool,
    "fork": lambda: made_by("fork"),
    "forkserver": lambda: made_by("forkserver"),
    "spawn": lambda: made_by("spawn"),
    "os_fork": os_fork,
    "thread": thread,
    "popen": lambda: subprocess.Popen(SLEEP, close_fds=False).pid,
    "before_exec": lambda: subprocess.Popen(SLEEP, close_fds=False, preexec_fn=lambda: None).pid,
    "posix_spawn": lambda: os.posix_spawn(sys.executable, SLEEP, os.environ),
}

async def parent(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(str(WAYS[payload.text]())))

async def forker(payload: Ask, metadata: HandlerMetadata):
    child = os.fork()
    if child:
        return HandlerResponse.respond(Told(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))))
    if payload.text == "raises":
        raise ValueError("only in the child")
    if payload.text == "awaits":
        await asyncio.sleep(0)
    return HandlerResponse.respond(Told("from the child"))

def terminated(payload: Ask, metadata: HandlerMetadata):
    child = os_fork()
    os.kill(child, signal.SIGTERM)
    return HandlerResponse.respond(Told(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))))
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, CHILDREN, {"parent": {}, "forker": {}, "terminated": {"blocking": True}})


async def answered(server: Process, to: str, text: str = "") -> str:
    """What a listener of the play answers."""
    async with server.client() as client:
        answer = await client.post("/inject", json={"to": to, "payload": {"text": text}, "wait": 20})
    return str(answer.json()["replies"][0]["payload"]["text"])


async def test_after_a_kill_no_child_keeps_the_directory_or_the_port(world: World) -> None:
    async with serving(world.data, config=world.config) as killed, AsyncExitStack() as children:
        for way in WAYS:
            child = os.pidfd_open(int(await answered(killed, "parent", way)))
            children.callback(os.close, child)
            children.callback(signal.pidfd_send_signal, child, signal.SIGKILL)  # it lives: else this would raise
        killed.process.kill()
        await until_gone(killed.process.pid)
        port = str(urlsplit(killed.url).port)
        async with serving(world.data, "--port", port, config=world.config) as server:
            assert await answered(server, "terminated") == str(-signal.SIGTERM)
    assert (await organism("log", "verify", "--data", world.data)).code == 0


@pytest.mark.parametrize("how", ["returns", "raises", "awaits"])
async def test_a_forked_child_that_comes_back_from_its_handler_ends_there(world: World, how: str) -> None:
    async with serving(world.data, config=world.config) as server:
        assert await answered(server, "forker", how) == "1"
        assert await answered(server, "terminated") == str(-signal.SIGTERM), "the server goes on"
        assert await server.end() == 0
    assert (await organism("log", "verify", "--data", world.data)).code == 0


async def test_a_start_says_which_mcp_servers_it_awaits_and_none_outlives_a_kill(world: World) -> None:
    pid = world.folder / "pid"
    os.mkfifo(pid)
    silent = ["/bin/sh", "-c", f"echo $$ > {pid}; exec sleep 600 <&-"]
    world.top["tools"] = {"mcp": {"silent": {"command": silent}}}
    world.write(CHILDREN)
    reading = asyncio.create_task(asyncio.to_thread(pid.read_text))
    async with serving(world.data, config=world.config) as server:
        assert "Awaited: silent (MCP)" in server.said
        child = int(await reading)
        os.kill(child, 0)
        server.process.kill()
        await until_gone(child)
