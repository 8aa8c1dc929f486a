"""The real command in a process of its own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return orjson.loads(self.out)


def environment(**given: str) -> dict[str, str]:
    """An environment that names no server, with what is given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ORGANISM_")}
    return {**clean, "COLUMNS": "200", **given}


async def begun(*arguments: str | Path, **more: Any) -> asyncio.subprocess.Process:
    """Start ``organism`` with these arguments."""
    given = {"cwd": REPOSITORY, "env": environment(), "stdout": PIPE, "stderr": PIPE, **more}
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "organism", *map(str, arguments), **given)


async def organism(*arguments: str | Path, stdin: str = "", **named: str) -> Ran:
    """Run ``organism`` with these arguments, in an environment that names no other server than ``named``."""
    process = await begun(*arguments, env=environment(**named), stdin=PIPE)
    out, err = await process.communicate(stdin.encode())
    return Ran(process.returncode or 0, out.decode(), err.decode())


async def on_terminal(*arguments: str | Path, **named: str) -> str:
    """What ``organism`` writes on a terminal of 80 columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    clean = {name: value for name, value in environment(**named).items() if name not in {"COLUMNS", "CI"}}
    process = await begun(*arguments, env={**clean, "TERM": "xterm-256color"}, stdin=its, stdout=its, stderr=its)
    os.close(its)
    reading = asyncio.create_task(asyncio.to_thread(_read_all, ours))
    await process.wait()
    return await reading


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def _read_all(handle: int) -> str:
    """All that is written until the terminal is left; then reading it is an error."""
    read = b""
    try:
        while part := os.read(handle, 65536):
            read += part
    except OSError:
        os.close(handle)
    return read.decode().replace("\r\n", "\n")
