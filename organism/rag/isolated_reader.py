"""Reads a file in a process of its own: one that takes too long or too much memory ends that process, and nothing else.

Files come from anywhere, and parsers were not written for hostile ones: an HTML page of 300 KB
keeps a parser busy for hours, and a small PDF unpacks to gigabytes.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.json import decode, encode

from organism.rag.files import Kind, Piece, Unreadable, pieces_of

SECONDS: Final = 60
MEMORY_BYTES: Final = 1 << 30
SHORT_BYTES: Final = 1 << 16
_PROGRAM: Final = "import sys; from organism.rag.isolated_reader import answer; answer(*map(int, sys.argv[1:]))"


class _Asked(Struct):
    name: str
    kind: Kind


class _Answer(Struct):
    pieces: Sequence[Piece] = ()
    unreadable: str = ""


async def read_pieces(
    name: str, kind: Kind, data: bytes, seconds: int = SECONDS, memory_bytes: int = MEMORY_BYTES
) -> list[Piece]:
    """The file's text in pieces, as ``files.pieces_of``. Raises ``Unreadable``, whatever goes wrong.

    A short plain text needs no parser, and no process: that takes a hundred times as long.
    """
    if kind == "text" and len(data) <= SHORT_BYTES:
        return await asyncio.to_thread(pieces_of, name, kind, data)
    limits = str(seconds), str(memory_bytes)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", _PROGRAM, *limits), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    try:
        said, _ = await process.communicate(encode(_Asked(name, kind)) + b"\n" + data)
    finally:
        if process.returncode is None:  # the caller has left
            process.kill()
            await process.wait()
    if process.returncode:
        is_late = process.returncode == -signal.SIGALRM
        raise Unreadable(
            f"it cannot be read within {f'{seconds} s' if is_late else f'{memory_bytes >> 20} MiB of memory'}"
        )
    read = await asyncio.to_thread(decode, said, type=_Answer)
    if read.unreadable:
        raise Unreadable(read.unreadable)
    return list(read.pieces)


def answer(seconds: int, memory_bytes: int) -> None:
    """Run in that process: read the file of standard input, and answer on standard output."""
    with suppress(ValueError, OSError):  # a system without this limit still has the other
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    signal.alarm(seconds)  # ends the process, whatever it does then
    asked = decode(sys.stdin.buffer.readline(), type=_Asked)
    sys.stdout.buffer.write(_answered(asked, sys.stdin.buffer.read()))


def _answered(asked: _Asked, data: bytes) -> bytes:
    try:
        return encode(_Answer(pieces_of(asked.name, asked.kind, data)))
    except Unreadable as why:
        reason = str(why).encode("utf-8", "replace").decode()
    except MemoryError:
        reason = "it cannot be read within the memory that a file may take"
    except BaseException as error:  # noqa: BLE001 - parsers raise anything, one in Rust a BaseException
        reason = f"it cannot be read ({type(error).__name__})"
    return encode(_Answer(unreadable=reason))
