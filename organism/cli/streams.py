"""The standard streams: usable also if they are closed, full, or in an encoding that lacks a character."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from typing import Any, Final, TextIO

ESCAPES: Final = "organism.escapes"
"""How a character that an encoding lacks is written: as JSON's escape, so that a document stays one."""
STDIN, STDOUT, STDERR = range(3)


class OutputFailed(Exception):
    """Standard output cannot be written, for another reason than that its reader has ended."""


class _Stream(io.FileIO):
    """A stream whose output is optional: what cannot be written is dropped."""

    def __init__(self, handle: int, *, is_optional: bool) -> None:
        super().__init__(handle, "w", closefd=False)
        self._is_optional = is_optional

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if self._is_optional:
                return memoryview(data).nbytes
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputFailed(error.strerror) from error


def prepare_streams() -> None:
    """Must run before anything is opened: a file would get a closed stream's number, and what is printed."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(handle, True)
    os.close(handle)
    codecs.register_error(ESCAPES, _escaped)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(STDIN, closefd=False)), "utf-8")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="backslashreplace")
    sys.stdout = _text(STDOUT, sys.stdout, is_optional=False)
    sys.stderr = _text(STDERR, sys.stderr, is_optional=True)


def make_output_optional() -> None:
    """From now on, drop what cannot be written to standard output: a server goes on without a reader."""
    sys.stdout.flush()
    sys.stdout = _text(STDOUT, sys.stdout, is_optional=True)


def drop_output() -> None:
    """From now on, drop everything written to standard output."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDOUT)
    os.close(nothing)


def _text(handle: int, before: TextIO | None, *, is_optional: bool) -> TextIO:
    """A stream of text as Python's own, except for what it does when it cannot write."""
    binary = io.BufferedWriter(_Stream(handle, is_optional=is_optional))
    encoding = "utf-8" if before is None else before.encoding
    at_once = bool(getattr(before, "write_through", False))  # PYTHONUNBUFFERED
    by_line = at_once or handle == STDERR or os.isatty(handle)
    return io.TextIOWrapper(binary, encoding, ESCAPES, line_buffering=by_line, write_through=at_once)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
