"""The real command in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
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


async def organism(*arguments: str | Path, stdin: str = "", **environment: str) -> Ran:
    """Run ``organism`` with these arguments, in an environment that names no server."""
    named = {"ORGANISM_TOKEN", "ORGANISM_URL"}
    clean = {name: value for name, value in os.environ.items() if name not in named}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "organism",
        *map(str, arguments),
        cwd=REPOSITORY,
        env={**clean, "COLUMNS": "200", **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(stdin.encode())
    return Ran(process.returncode or 0, out.decode(), err.decode())
