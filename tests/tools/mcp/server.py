"""A real MCP server for the tests, over standard input and output. It keeps a diary in the file that it is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

DIARY = Path(sys.argv[1])
server = MCPServer("play")


def note(text: str) -> None:
    """Write a line into the diary."""
    with DIARY.open("a") as diary:
        diary.write(text + "\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    note(f"add {a} {b}")
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(text: str, context: Context[Any]) -> str:
    """Puts a text in its place."""
    meta: Any = context.request_context.meta or {}
    note(f"put {text} {dict(meta).get('organism/idempotency-key')}")
    return f"put {text}"


@server.tool(name="write.file")
def write_file(text: str) -> str:
    """Appends a text; nobody says that this may be done twice."""
    note(f"write {text}")
    if text == "die":
        os._exit(3)
    if text == "raise":
        raise ValueError("the disk is full")
    return f"wrote {text} as {os.environ.get('PLAYER', 'nobody')} with {os.environ.get('SECRET_OF_HOST', 'nothing')}"


@server.tool()
async def wait() -> str:
    """Never answers."""
    note("wait")
    await anyio.sleep_forever()
    return ""


if __name__ == "__main__":
    note(f"begun {Path.cwd().name} {os.getpid()}")
    server.run("stdio")
