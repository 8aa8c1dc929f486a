"""An MCP server over standard input and output, of the standard library alone, so that it begins at once.

It keeps a diary in the file that it is given. With a second file, a named pipe, it answers nothing until somebody has
written into it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

DIARY = Path(sys.argv[1])
NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TEXT = {"text": {"type": "string"}}


def tool(name: str, takes: dict[str, Any], description: str = "", **hints: bool) -> dict[str, Any]:
    """A tool as a list shows it."""
    schema = {"type": "object", "properties": takes, "required": list(takes)}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": hints}


TOOLS = [
    tool("add", NUMBERS, "Adds two numbers.", readOnlyHint=True),
    tool("put", TEXT, "Puts a text in its place.", idempotentHint=True),
    tool("write.file", TEXT, "Appends a text; nobody says that this may be done twice."),
    tool("wait", {}, "Never answers."),
]


def note(text: str) -> None:
    """Write a line into the diary."""
    with DIARY.open("a") as diary:
        diary.write(text + "\n")


def called(name: str, given: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a call, or none for one that is never answered."""
    said, is_error = "", False
    if name == "wait":
        note("wait")
        return None
    if name == "add":
        note(f"add {given['a']} {given['b']}")
        number = given["a"] + given["b"]
        return {"content": [{"type": "text", "text": str(number)}], "structuredContent": {"result": number}}
    if name == "put":
        note(f"put {given['text']} {meta.get('organism/idempotency-key')}")
        said = f"put {given['text']}"
    else:
        note(f"write {given['text']}")
        if given["text"] == "die":
            os._exit(3)
        player, secret = os.environ.get("PLAYER", "nobody"), os.environ.get("SECRET_OF_HOST", "nothing")
        is_error = given["text"] == "raise"
        said = "Error executing tool write.file" if is_error else f"wrote {given['text']} as {player} with {secret}"
    return {"content": [{"type": "text", "text": said}], "isError": is_error}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """What a request is answered with."""
    if method == "initialize":
        about = {"name": "play", "version": "1"}
        version = params["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        result = called(params["name"], params["arguments"], params.get("_meta") or {})
        return {"result": result} if result is not None else None
    return {"error": {"code": -32601, "message": f"No method {method}"}}


if __name__ == "__main__":
    note(f"begun {Path.cwd().name} {os.getpid()}")
    for gate in sys.argv[2:]:
        Path(gate).read_text()
    for line in sys.stdin:
        asked = json.loads(line)
        said = answer(asked["method"], asked.get("params") or {}) if "id" in asked else None
        if said is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}) + "\n")
            sys.stdout.flush()
