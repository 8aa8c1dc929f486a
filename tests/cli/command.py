"""The command line: in this process where its words count, in one of its own where its end does."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from typer.testing import CliRunner

from organism.cli.app import make_app

REPOSITORY = Path(__file__).parents[2]
TERMINAL = {"TTY_COMPATIBLE": "1", "TERM": "xterm-256color", "COLUMNS": "80"}


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


async def organism(*arguments: str | Path, stdin: str = "", **named: str) -> Ran:
    """Run ``organism`` in this process, in an environment that names no other server than ``named``."""
    servers: dict[str, str | None] = {name: None for name in os.environ if name.startswith("ORGANISM_")}
    env = {**servers, "COLUMNS": "200", **named}
    words = [str(each) for each in arguments]
    ran = await asyncio.to_thread(CliRunner().invoke, make_app(), words, stdin, env, prog_name="organism")
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


async def on_terminal(*arguments: str | Path, **named: str) -> str:
    """What ``organism`` writes on a terminal of 80 columns."""
    ran = await organism(*arguments, **TERMINAL, **named)
    return ran.out + ran.err


async def start_process(*arguments: str | Path, **more: Any) -> asyncio.subprocess.Process:
    """Start ``organism`` with these arguments in a process of its own."""
    given = {"cwd": REPOSITORY, "env": environment(), "stdout": PIPE, "stderr": PIPE, **more}
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "organism", *map(str, arguments), **given)


async def in_a_process(*arguments: str | Path, **named: str) -> Ran:
    """Run ``organism`` in a process of its own."""
    process = await start_process(*arguments, env=environment(**named), stdin=PIPE)
    out, err = await process.communicate()
    return Ran(process.returncode or 0, out.decode(), err.decode())


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())
