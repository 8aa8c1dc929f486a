"""``organism tools``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from organism.cli.client import FOR_MODELS, Client
from organism.cli.options import Remote, RunTool
from organism.cli.payloads import json_of
from organism.cli.show import compact, out, print_json, table

COLUMNS: Final = ("TOOL", "TAKES", "DOES")


def listed(options: Remote) -> None:
    """Each tool that may be called, with the names of its arguments; those in brackets may be left out."""
    tools = Client(options).get("/tools", base=FOR_MODELS)["data"]
    if options.json:
        print_json(tools)
        return
    table(COLUMNS, map(_row, tools), "no tools")


def _row(tool: Mapping[str, Any]) -> tuple[str, str, str]:
    function = tool["function"]
    needed = function["parameters"].get("required", ())
    takes = (name if name in needed else f"[{name}]" for name in function["parameters"].get("properties", ()))
    return function["name"], " ".join(takes), function["description"].partition("\n")[0]


def run(options: RunTool) -> None:
    """Call it and show what it answers."""
    headers = {"Idempotency-Key": options.key} if options.key else {}
    body = {"name": options.name, "arguments": json_of(options.arguments, "ARGUMENTS") or {}}
    said = Client(options).post("/tools/execute", body, headers=headers, base=FOR_MODELS)
    if options.json:
        print_json(said)
    elif "result" in said:
        out().print(compact(said["result"]))
    else:
        out().print(f"still running; `organism threads {said['thread_id']}` shows what came of it")
