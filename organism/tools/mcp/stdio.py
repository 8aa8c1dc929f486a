"""An MCP server that is run here: a process that reads and writes lines of JSON, of bounded length.

At the end its input is closed; if it goes on, it is terminated, then killed, with the processes that it has started.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

MOST_LINE_BYTES: Final = 4 * 1024 * 1024
GRACE_SECONDS: Final = 2.0
"""Granted after its input is closed, after SIGTERM and after SIGKILL each."""
MOST_STDERR_BYTES: Final = 2_000
MOST_SHOWN: Final = 300
MOST_SKIPPED_BYTES: Final = 64 * MOST_LINE_BYTES
ENDS_BYTES: Final = 256
_FIRST_ID: Final = re.compile(rb'\A\s*+\{(?:\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+,)?\s*+"id"\s*+:\s*+(\d++)\s*+,')
_LAST_ID: Final = re.compile(rb'"id"\s*+:\s*+(\d++)\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+)?\}\s*+\Z')
_DIE_WITH_PARENT: Final = """
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
if os.getppid() == int(sys.argv[1]):
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""
"""Run by Python in the server's own process, which then becomes the server: nothing runs in a copy of this process."""
TOO_LONG: Final = f"it wrote a line of more than {MOST_LINE_BYTES} bytes"


class LastWords:
    """Why a process ended, as far as it is known: what it did wrong, and the end of what it wrote to stderr."""

    def __init__(self) -> None:
        self.fault = ""
        self._tail = b""

    async def read(self, stderr: ByteReceiveStream) -> None:
        with suppress(anyio.ClosedResourceError):
            async for chunk in stderr:
                self._tail = (self._tail + chunk)[-MOST_STDERR_BYTES:]

    @property
    def text(self) -> str:
        """What it did wrong, else its last line, or nothing."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return self.fault or (lines[-1][:MOST_SHOWN] if lines else "")


@asynccontextmanager
async def stdio_streams(
    command: tuple[str, ...], folder: Path, variables: Mapping[str, str], words: LastWords
) -> AsyncIterator[Any]:
    """Run it with these variables besides a login's; gives the streams from it, which ends when it does, and to it."""
    environment = {**get_default_environment(), **variables}
    process = await anyio.open_process(_ended_with_us(command), cwd=folder, env=environment, start_new_session=True)
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - pipes by default; narrows the types
    to_client, received = anyio.create_memory_object_stream[Any](0)
    sent, to_server = anyio.create_memory_object_stream[Any](0)
    try:
        async with to_client, received, sent, to_server, anyio.create_task_group() as group:
            group.start_soon(words.read, process.stderr)
            group.start_soon(_read, process.stdout, to_client, words)
            group.start_soon(_write, process.stdin, to_server, to_client)
            yield received, sent
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


def _ended_with_us(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, which Linux kills when this process is killed: its input ends then, but not every server reads it.

    Elsewhere the end of its input is all that it hears. A process that it has started itself hears no more than that.
    """
    if sys.platform != "linux":
        return command
    return (sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command)


async def _read(stdout: ByteReceiveStream, to_client: Any, words: LastWords) -> None:
    """Pass on each message. A line that is no message is passed over: some servers greet."""
    lines = BufferedByteReceiveStream(stdout)
    async with to_client:
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                try:
                    line = await lines.receive_until(b"\n", MOST_LINE_BYTES)
                except anyio.DelimiterNotFound:
                    if (number := await _number_of_long_answer(lines)) is None:
                        words.fault = TOO_LONG
                        return
                    why = f"it has more than {MOST_LINE_BYTES} bytes"
                    await to_client.send(SessionMessage(_unreadable(number, why)))
                    continue
                if (message := _message(line)) is not None:
                    await to_client.send(SessionMessage(message))


def _message(line: bytes) -> JSONRPCMessage | None:
    """The message of a line, if it is one.

    Halves of characters, which servers write when they cut texts, are replaced; an answer that cannot be read is an
    error of
    its call.
    """
    with suppress(ValidationError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    with suppress(ValueError, RecursionError):
        whole = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(whole, by_name=False)
    number = _number(line[:ENDS_BYTES], line[-ENDS_BYTES:])
    return None if number is None else _unreadable(number, "it is no JSON that can be read here")


def _unreadable(number: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=why))


def _number(head: bytes, end: bytes) -> int | None:
    """Which request a line answers, if its beginning or end says so."""
    found = _FIRST_ID.match(head) or _LAST_ID.search(end)
    return int(found[1]) if found else None


async def _number_of_long_answer(lines: BufferedByteReceiveStream) -> int | None:
    """Skip the rest of a line that is too long; gives which request it answers, if its beginning or end says so."""
    head = await lines.receive(ENDS_BYTES)
    if not head.lstrip().startswith(b"{"):
        return None
    end, skipped = b"", 0
    while skipped < MOST_SKIPPED_BYTES:
        chunk, newline, rest = (await lines.receive()).partition(b"\n")
        end, skipped = (end + chunk)[-ENDS_BYTES:], skipped + len(chunk)
        if newline:
            lines.feed_data(rest)
            return _number(head, end)
    return None


async def _write(stdin: ByteSendStream, to_server: Any, to_client: Any) -> None:
    """Write each message. When the process takes no more, nothing further is read from it either."""
    try:
        async for message in to_server:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(text.encode() + b"\n")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        to_client.close()


async def _stop(process: Process) -> None:
    assert process.stdin  # noqa: S101 - narrows the type
    with suppress(anyio.BrokenResourceError, ConnectionError):
        await process.stdin.aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):  # also for processes that it has left behind
        with anyio.move_on_after(GRACE_SECONDS):
            await process.wait()
        _signal_group(process.pid, number)
    with anyio.move_on_after(GRACE_SECONDS):
        await process.aclose()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
