"""``organism serve`` as a process of its own."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from websockets.asyncio.client import connect

from tests.cli.command import REPOSITORY, environment, start_process
from tests.server.served import Frames

START_SECONDS = 30


class Process:
    """A running ``organism serve``; ``said`` is what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process, data: Path) -> None:
        self.process = process
        self.data = data
        self.said = ""

    @property
    def url(self) -> str:
        """The address that it printed."""
        found = re.search(r"serves at (\S+)", self.said)
        assert found, self.said
        return found[1]

    @property
    def token(self) -> str:
        """The token that it keeps."""
        return (self.data / "token").read_text().strip()

    @property
    def bearer(self) -> dict[str, str]:
        """The header that it takes."""
        return {"Authorization": f"Bearer {self.token}"}

    def client(self) -> httpx2.AsyncClient:
        """A client of its API."""
        return httpx2.AsyncClient(base_url=f"{self.url}/api/v1", headers=self.bearer, trust_env=False, timeout=30)

    def socket(self, query: str = "") -> connect:
        """Its WebSocket; ``async with`` it."""
        address = f"{self.url.replace('http', 'ws', 1)}/ws{query}"
        return connect(address, additional_headers=self.bearer, compression=None, proxy=None, max_queue=None)

    async def until_completed(self, thread_id: str) -> None:
        """Wait until the thread has ended, or see in the log that it has."""
        async with self.socket("?since=0") as socket:
            frames = Frames(socket)
            await frames.ask("subscribe", threads=[thread_id], events=["thread_updated"], since=0)
            await frames.until("thread_updated", status="completed")

    async def until_said(self, text: str) -> None:
        """Read its output until it has said this."""
        stdout = self.process.stdout
        assert stdout is not None
        while text not in self.said:
            line = await asyncio.wait_for(stdout.readline(), START_SECONDS)
            assert line, f"it ended and had said: {self.said}"
            self.said += line.decode()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; gives the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), START_SECONDS)


@asynccontextmanager
async def serving(data: Path, *arguments: str, config: Path | None = None, **named: str) -> AsyncIterator[Process]:
    """Serve the hello organism (or that of ``config``) on a free port; end it at the end."""
    where: list[str | Path] = ["--config", config or REPOSITORY / "organism.yaml", "--data", data]
    env = environment(**named)
    started = await start_process(
        "serve", *where, *(arguments or ("--port", "0")), env=env, stderr=asyncio.subprocess.STDOUT
    )
    process = Process(started, data)
    try:
        await process.until_said("Try ")
        yield process
    finally:
        await process.end(signal.SIGKILL)
