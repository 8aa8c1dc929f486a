"""An MCP server that does what it is told, also what no server should; of the standard library, so it begins at once.

It keeps a diary in the file that it is given: how often it has begun, and what it was called with.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

DIARY = Path(sys.argv[1])
OBJECT = {"type": "object"}
PROMISE = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS: list[dict[str, Any]] = [
    {"name": "do", "inputSchema": OBJECT},
    {"name": "promised", "inputSchema": OBJECT, "outputSchema": PROMISE},
]
LONG = 5 * 1024 * 1024
LAST: list[int] = []
"""The ids of all messages."""


def note(text: str) -> None:
    """Write a line into the diary."""
    with DIARY.open("a") as diary:
        diary.write(text + "\n")


def say(**message: Any) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str) -> dict[str, Any]:
    """An answer in words."""
    return {"content": [{"type": "text", "text": said}]}


def babble() -> None:
    """Write a line that does not end."""
    sys.stdout.write("x" * LONG)
    sys.stdout.flush()


def huge_backwards() -> None:
    """Answer the call as some libraries do, with its id at the end."""
    result = {"content": [{"type": "text", "text": "y" * LONG}]}
    sys.stdout.write(json.dumps({"result": result, "jsonrpc": "2.0", "id": LAST[-1]}) + "\n")
    sys.stdout.flush()


def deep() -> dict[str, Any]:
    """Objects in objects, more than a parser follows."""
    value: dict[str, Any] = {}
    for _ in range(300):
        value = {"a": value}
    return value


def grow() -> dict[str, Any]:
    """Have a tool more, and say so."""
    TOOLS.append({"name": "grown", "inputSchema": OBJECT})
    say(method="notifications/tools/list_changed")
    return text("grown")


def shrink() -> dict[str, Any]:
    """Have it no more."""
    TOOLS[:] = [tool for tool in TOOLS if tool["name"] != "grown"]
    return text("shrunk")


def bear() -> dict[str, Any]:
    """Begin a process that goes on."""
    return text(str(subprocess.Popen(["/bin/sleep", "1000"]).pid))


def be_deaf() -> dict[str, Any]:
    """Go on whatever is said."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return text(str(os.getpid()))


DEEDS: dict[str, Callable[[], dict[str, Any] | None]] = {
    "babble": babble,
    "hang": signal.pause,
    "tick": lambda: say(method="notifications/message", params={"level": "info", "data": "still here"}),
    "grow": grow,
    "shrink": shrink,
    "half": lambda: text("cut \ud83d"),
    "deep": lambda: {**text("deep"), "structuredContent": deep()},
    "huge": lambda: text("y" * LONG),
    "huge backwards": huge_backwards,
    "long": lambda: text("y" * 200_000),
    "numbers": lambda: {**text("many"), "structuredContent": {"n": 2**70}},
    "promise": lambda: {**text("none"), "structuredContent": {"n": "no number"}},
    "wrong": lambda: {"content": 5},
    "child": bear,
    "deaf": be_deaf,
}
"""What a call may ask for; it is answered with the result, or not at all."""


def answer(message: dict[str, Any]) -> None:
    """Answer one message."""
    number, params = message["id"], message.get("params", {})
    LAST.append(number)
    match message["method"]:
        case "initialize":
            about = {"name": "rough", "version": "1"}
            version = params["protocolVersion"]
            say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
        case "tools/list":
            say(id=number, result={"tools": TOOLS})
        case "tools/call" if params["name"] not in [tool["name"] for tool in TOOLS]:
            say(id=number, error={"code": -32602, "message": f"Unknown tool: {params['name']}"})
        case "tools/call":
            deed = params["arguments"]["do"]
            note(deed)
            result = DEEDS.get(deed, lambda: text(f"did {deed}"))()
            if result is not None:
                say(id=number, result=result)
        case method:
            say(id=number, error={"code": -32601, "message": f"No method {method}"})


if __name__ == "__main__":
    note("begun")
    sys.stdout.write("Welcome! I am no JSON.\n\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer(request)
    while signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.pause()
