"""Lives of the server: each one a process, by the command or forked, that ends by a kill or a stop."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

from tests.faults import child
from tests.faults.client import TOKEN, Gone
from tests.faults.points import KILL_AT

ROOT: Final = Path(__file__).parents[2]
PLAY: Final = Path(__file__).parent / "play" / "organism.yaml"
URL: Final = re.compile(r"http://[\d.]+:\d+")
START_SECONDS: Final = 30.0
OUTPUT_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Setting:
    """What a server is started with. ``environment`` is added to what every process needs."""

    data: Path
    config: Path = PLAY
    environment: Mapping[str, str] = field(default_factory=dict)

    def dying_at(self, point: str) -> Setting:
        """The same, with a deadly point in it."""
        return self.having(KILL_AT, point)

    def having(self, name: str, value: str) -> Setting:
        """The same with a variable in its environment."""
        return replace(self, environment={**self.environment, name: value})

    def forgiving(self, folder: Path) -> Setting:
        """The same with so many attempts that no message is parked before the server takes itself for crashing."""
        play = folder / "play"
        shutil.copytree(PLAY.parent, play)
        config = play / PLAY.name
        text = config.read_text()
        assert "attempts: 6," in text
        config.write_text(text.replace("attempts: 6,", "attempts: 60,"))
        return replace(self, config=config)

    @property
    def argv(self) -> list[str]:
        """The command's arguments; the system chooses the port."""
        return ["serve", "--config", str(self.config), "--data", str(self.data), "--port", "0"]

    @property
    def whole_environment(self) -> dict[str, str]:
        """The environment of the process."""
        own = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "ORGANISM_TOKEN": TOKEN}
        return {**own, **self.environment}


class Life:
    """One process, ``pid``. ``said`` is its output so far, ``url`` where it serves once it has said so.

    ``is_killed``: ``kill`` was called before its end was known.
    """

    def __init__(self, pid: int, output: asyncio.StreamReader, status: Awaitable[int]) -> None:
        self.pid = pid
        self._handle = _handle_of(pid)
        self.said: list[str] = []
        self.is_killed = False
        self._url: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._status = asyncio.ensure_future(status)
        self._listening = asyncio.ensure_future(self._listen(output))

    async def _listen(self, output: asyncio.StreamReader) -> None:
        while line := await output.readline():
            self.said.append(line.decode("utf-8", "replace").rstrip())
            found = URL.search(self.said[-1])
            if found is not None and not self._url.done():
                self._url.set_result(found[0])
        if not self._url.done():
            self._url.set_result(None)

    async def url(self) -> str | None:
        """Where it serves, as soon as it says so; None if it died before. Raises ``AssertionError`` if it hangs."""
        try:
            async with asyncio.timeout(START_SECONDS):
                return await asyncio.shield(self._url)
        except TimeoutError:
            self.kill()
            said = "\n".join(self.said)
            raise AssertionError(
                f"The server neither served nor ended in {START_SECONDS} s. It said:\n{said}"
            ) from None

    async def serving(self) -> str:
        """Where it serves. Raises ``AssertionError`` with what it said if it died before."""
        url = await self.url()
        if url is None:
            said = "\n".join(self.said)
            raise AssertionError(f"The server ended before it served, by {await self.end()}. It said:\n{said}")
        return url

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. One that has ended gets none, even if its number belongs to another process by now."""
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.is_killed = self._handle is not None
        self.signal(signal.SIGKILL)

    async def end(self) -> int:
        """Its exit status once it has ended: negative for the signal that killed it."""
        status = await asyncio.shield(self._status)
        await asyncio.shield(self._listening)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        return status

    async def unless_it_ends(self, wait: Coroutine[Any, Any, None]) -> None:
        """Wait for something that only a living server brings. Raises ``Gone`` if it ends before."""
        waiting, ending = asyncio.ensure_future(wait), asyncio.ensure_future(self.end())
        try:
            await asyncio.wait([waiting, ending], return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                raise Gone(f"the server ended with {ending.result()}")
        finally:
            waiting.cancel()
            ending.cancel()

    async def stop(self) -> int:
        """Stop it gracefully and wait for its end."""
        self.signal(signal.SIGTERM)
        return await self.end()


def _handle_of(pid: int) -> int | None:
    """What names this very process for as long as it is open; None if it has ended already."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


async def spawn(setting: Setting) -> Life:
    """A life by the command itself, as a user starts it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "organism", *setting.argv),
        env=setting.whole_environment,
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=OUTPUT_LIMIT,
    )
    assert process.stdout is not None
    return Life(process.pid, process.stdout, process.wait())


FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["organism.cli.start_server", "tests.faults.child"])


async def fork(setting: Setting) -> Life:
    """A life forked from a process that has imported everything: importing takes most of a start."""
    ours, its = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=child.live, args=(setting.argv, setting.whole_environment, its), daemon=True)
    process.start()
    its.close()
    output, pipe = asyncio.StreamReader(OUTPUT_LIMIT), os.fdopen(os.dup(ours.fileno()), "rb", buffering=0)
    ours.close()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), pipe)
    assert process.pid is not None
    return Life(process.pid, output, _status(process))


async def _status(process: ForkServerProcess) -> int:
    try:
        await asyncio.to_thread(process.join)
    finally:
        process.kill()  # once nobody waits for its end
    assert process.exitcode is not None
    return process.exitcode
