"""Reads files in a process of its own: one that takes too long or too much memory ends that process, and nothing else.

Files come from anywhere, and parsers were not written for hostile ones: an HTML page of 300 KB
keeps a parser busy for hours, and a small PDF unpacks to gigabytes.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec import Struct
from msgspec.json import decode, encode

from organism.cli.ingest import Piece, Unreadable, pieces_of

SECONDS: Final = 60
MEMORY_BYTES: Final = 1 << 30
_PROGRAM: Final = "import sys; from organism.cli.isolated_reader import answer_all; answer_all(*map(int, sys.argv[1:]))"


class _Asked(Struct):
    file: str
    folder: str | None


class _Answer(Struct):
    """``is_over``: the process may be in a bad state, and ends."""

    pieces: Sequence[Piece] = ()
    unreadable: str = ""
    is_over: bool = False


class FileReader:
    """A context manager: the process starts with the first file, and goes on as long as it reads well."""

    def __init__(self, seconds: int = SECONDS, memory_bytes: int = MEMORY_BYTES) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._end()

    def pieces_of(self, file: Path, folder: Path | None = None) -> list[Piece]:
        """The file's text in pieces, as ``ingest.pieces_of``. Raises ``Unreadable``, whatever goes wrong."""
        try:
            asked = encode(_Asked(str(file), str(folder) if folder is not None else None))
        except UnicodeEncodeError as error:
            raise Unreadable("its name is not UTF-8; rename it first") from error
        answer = self._asked(asked)
        if not answer.endswith(b"\n"):
            is_late = self._end() == -signal.SIGALRM
            limits = f"{self._seconds} s" if is_late else f"{self._memory_bytes >> 20} MiB of memory"
            raise Unreadable(f"it cannot be read within {limits}")
        read = decode(answer, type=_Answer)
        if read.is_over:
            self._end()
        if read.unreadable:
            raise Unreadable(read.unreadable)
        return list(read.pieces)

    def _asked(self, line: bytes) -> bytes:
        """The line that the process answers; cut off if it ends instead."""
        if self._process is None:
            command = (sys.executable, "-P", "-c", _PROGRAM, str(self._seconds), str(self._memory_bytes))
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        process = self._process
        assert process.stdin is not None  # noqa: S101 - both are pipes; narrows the type
        assert process.stdout is not None  # noqa: S101 - as above
        with suppress(BrokenPipeError):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
        return process.stdout.readline()

    def _end(self) -> int:
        """End the process; gives its exit code if it had ended by itself."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(BrokenPipeError):
            process.communicate()
        return process.returncode


def answer_all(seconds: int, memory_bytes: int) -> None:
    """Run in that process: read the files that standard input names, and answer each with a line."""
    with suppress(ValueError, OSError):  # a system without this limit still has the other
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    is_over = False
    while not is_over and (line := sys.stdin.buffer.readline()):
        asked = decode(line, type=_Asked)
        signal.alarm(seconds)  # ends the process, whatever it does then
        answer, is_over = _answered(Path(asked.file), Path(asked.folder) if asked.folder is not None else None)
        signal.alarm(0)
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _answered(file: Path, folder: Path | None) -> tuple[bytes, bool]:
    """The answer, and whether it is the last."""
    try:
        return encode(_Answer(pieces_of(file, folder))), False
    except Unreadable as why:
        return encode(_Answer(unreadable=str(why).encode("utf-8", "replace").decode())), False
    except MemoryError:
        reason = "within the memory that a file may take"
    except BaseException as error:  # noqa: BLE001 - parsers raise anything, one in Rust a BaseException
        reason = f"({type(error).__name__})"
    return encode(_Answer(unreadable=f"it cannot be read {reason}", is_over=True)), True
