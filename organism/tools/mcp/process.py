"""An MCP server that is run here: a process that reads and writes lines of JSON, of bounded length.

At the end its input is closed; if it goes on, it is terminated, then killed, with the processes that it has started.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

MOST_LINE_BYTES: Final = 4 * 1024 * 1024
GRACE_SECONDS: Final = 2.0
"""Granted after its input is closed, after SIGTERM and after SIGKILL."""
KEPT_BYTES: Final = 2_000
MOST_SHOWN: Final = 300
TOO_LONG: Final = f"it wrote a line of more than {MOST_LINE_BYTES} bytes"
_READ_BYTES: Final = 65_536


class LastWords:
    """Why a process is not there any more, as far as it is known."""

    def __init__(self) -> None:
        self.fault = ""
        self._tail = b""

    async def listen(self, errors: asyncio.StreamReader) -> None:
        while came := await errors.read(_READ_BYTES):
            self._tail = (self._tail + came)[-KEPT_BYTES:]

    @property
    def said(self) -> str:
        """What it did wrong, else its last line, or nothing."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return self.fault or (lines[-1][:MOST_SHOWN] if lines else "")


@asynccontextmanager
async def spoken_to(
    command: tuple[str, ...], folder: Path, variables: Mapping[str, str], words: LastWords
) -> AsyncIterator[Any]:
    """Run it with these variables besides a login's; gives the streams from it, which ends when it does, and to it."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=MOST_LINE_BYTES, loop=loop),
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=folder,
        env={**get_default_environment(), **variables},
        start_new_session=True,
    )
    process = Process(transport, protocol, loop)
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - it was made so; narrows the types
    tell, heard = anyio.create_memory_object_stream[Any](0)
    say, said = anyio.create_memory_object_stream[Any](0)
    try:
        async with tell, heard, say, said, anyio.create_task_group() as group:
            group.start_soon(words.listen, process.stderr)
            group.start_soon(_read, process.stdout, tell, words)
            group.start_soon(_write, process.stdin, said, tell)
            yield heard, say
            group.cancel_scope.cancel()
    finally:
        try:
            process.stdin.close()
            await _end(process)
        finally:
            transport.close()


async def _read(output: asyncio.StreamReader, tell: Any, words: LastWords) -> None:
    """Pass on each message. What is no message is passed over: some servers greet."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with tell:
            try:
                while line := await output.readline():
                    with suppress(ValidationError):
                        await tell.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
            except ValueError:  # a line beyond the limit
                words.fault = TOO_LONG


async def _write(input_: asyncio.StreamWriter, said: Any, tell: Any) -> None:
    """Write each message. When the process takes no more, nothing further is read from it either."""
    try:
        async for message in said:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            input_.write(text.encode() + b"\n")
            await input_.drain()
    except ConnectionError:
        tell.close()


async def _end(process: Process) -> None:
    for stronger in (signal.SIGTERM, signal.SIGKILL, None):
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
            break
        if stronger is not None:
            _signal_group(process.pid, stronger)
    _signal_group(process.pid, signal.SIGKILL)  # what it has left behind


def _signal_group(leader: int, stronger: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, stronger)
