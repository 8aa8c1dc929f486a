"""The end of what a process writes to its standard error: why it died, if it says so."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Final, TextIO

KEPT_BYTES: Final = 2_000
_READ_BYTES: Final = 65_536


class LastWords:
    """A pipe to write into, as a context; ``said`` is the end of what came through it."""

    def __init__(self) -> None:
        self._tail = b""
        self._read = -1
        self._writing: TextIO

    def __enter__(self) -> TextIO:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        asyncio.get_running_loop().add_reader(self._read, self._take)
        self._writing = os.fdopen(write, "w")
        return self._writing

    def _take(self) -> None:
        try:
            came = os.read(self._read, _READ_BYTES)
        except BlockingIOError:
            return
        if not came:
            asyncio.get_running_loop().remove_reader(self._read)
        self._tail = (self._tail + came)[-KEPT_BYTES:]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._take()
        asyncio.get_running_loop().remove_reader(self._read)
        self._writing.close()
        os.close(self._read)

    @property
    def said(self) -> str:
        """Its last line, or nothing."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""
