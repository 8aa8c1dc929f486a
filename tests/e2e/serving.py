"""``organism serve`` as a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

REPOSITORY = Path(__file__).parents[2]
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
async def serving(
    data: Path, *arguments: str, config: Path | None = None, **environment: str
) -> AsyncIterator[Process]:
    """Serve the hello organism (or that of ``config``) on a free port; end it at the end."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ORGANISM_")}
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "organism",
        "serve",
        "--config",
        str(config or REPOSITORY / "organism.yaml"),
        "--data",
        str(data),
        *(arguments or ("--port", "0")),
        cwd=REPOSITORY,
        env={**clean, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    process = Process(started, data)
    try:
        await process.until_said("Try ")
        yield process
    finally:
        await process.end(signal.SIGKILL)
