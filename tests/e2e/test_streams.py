"""Standard streams that are closed, full or in another encoding, and the hang-up of a terminal."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command import REPOSITORY, environment, organism
from tests.e2e.serving import START_SECONDS, serving
from tests.flows.world import World
from tests.server.served import Frames

pytestmark = pytest.mark.e2e

PRINTS = """
import sys

async def prints(payload: Ask, metadata: HandlerMetadata):
    print("printed " * 10_000, flush=True)
    print("printed", file=sys.stderr, flush=True)
    return HandlerResponse.respond(Told(payload.text))
"""


async def redirected(redirection: str, *arguments: str | Path) -> asyncio.subprocess.Process:
    """``organism`` below a shell that changes its standard streams."""
    words = ["sh", "-c", f'exec "$0" -m organism "$@" {redirection}', sys.executable, *map(str, arguments)]
    return await asyncio.create_subprocess_exec(
        *words, cwd=REPOSITORY, env=environment(), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


@pytest.mark.parametrize(
    ("redirection", "words", "code", "err"),
    [
        (">&-", "log stats --data /nowhere", 5, "error: /nowhere holds no log."),
        ("2>&-", "log stats --data /nowhere", 5, ""),
        (">&- 2>&- <&-", "log stats --data /nowhere", 5, ""),
        ("<&-", "chat greeter -", 3, "error: No server"),
        (">&-", "--version", 0, ""),
        ("2>/dev/full", "log stats --data /nowhere", 5, ""),
        (">/dev/full", "--help", 1, "error: Standard output cannot be written: No space left on device."),
        (">/dev/full", "init new", 1, "error: Standard output cannot be written: No space left on device."),
    ],
)
async def test_a_verb_ends_as_ever_whatever_its_streams_are(
    tmp_path: Path, redirection: str, words: str, code: int, err: str
) -> None:
    given = [str(tmp_path / word) if word == "new" else word for word in words.split()]
    process = await redirected(redirection, *given)
    said, wrong = await process.communicate()
    assert (process.returncode, said) == (code, b""), wrong
    assert wrong.decode().startswith(err), wrong
    assert "Traceback" not in wrong.decode()


@pytest.mark.parametrize("redirection", [">&- 2>&- <&-", ">/dev/full 2>/dev/full", "| true"])
async def test_a_server_needs_no_streams_and_writes_none_of_its_output_into_its_files(
    tmp_path: Path, redirection: str
) -> None:
    world = World(tmp_path, PRINTS, {"prints": {}})
    process = await redirected(redirection, "serve", "--config", world.config, "--data", world.data, "--port", "0")
    async with asyncio.timeout(START_SECONDS):
        while (await organism("status", "--data", world.data)).code:
            assert process.returncode is None
    sent = await organism("inject", "prints", '{"text": "answered"}', "--wait", "20", "--data", world.data)
    assert (sent.code, "answered" in sent.out) == (0, True), sent
    assert (await organism("stop", "--data", world.data)).code == 0
    await asyncio.wait_for(process.communicate(), START_SECONDS)
    assert (await organism("log", "verify", "--data", world.data)).code == 0
    assert [path for path in world.data.rglob("*") if path.is_file() and b"printed " in path.read_bytes()] == []


@asynccontextmanager
async def hangups(handled: signal.Handlers) -> AsyncIterator[None]:
    """Meanwhile processes are started with hangups handled so: ``nohup`` has them ignored."""
    before = signal.signal(signal.SIGHUP, handled)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_hangup_reloads_and_one_that_is_refused_says_why_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, PRINTS, {"prints": {}})
    async with (
        hangups(signal.SIG_DFL),  # as a shell starts it, however the tests are run
        serving(world.data, config=world.config) as server,
        server.socket() as socket,
    ):
        frames = Frames(socket)
        world.config.write_text("organism: {nonsense: 1}")
        server.process.send_signal(signal.SIGHUP)
        await server.until_said("reload_refused")
        assert "organism.yaml:1:organism.nonsense" in server.said
        world.write(PRINTS + PRINTS.replace("prints", "other"), {"prints": {}, "other": {}})
        server.process.send_signal(signal.SIGHUP)
        await frames.until("reload")
        sent = await organism("inject", "other", '{"text": "answered"}', "--wait", "20", "--data", world.data)
        assert "answered" in sent.out
        assert await server.end() == 0


async def test_a_hangup_that_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    async with hangups(signal.SIG_IGN), serving(tmp_path / "data") as server:
        status = await asyncio.to_thread(Path(f"/proc/{server.process.pid}/status").read_text)
    [ignored] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:")]
    assert ignored & 1 << signal.SIGHUP - 1
