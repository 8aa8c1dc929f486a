"""The verbs that change something: control, dead letters, approvals, effects in doubt, and tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer
from rich.text import Text

from organism.cli import options as take
from organism.cli.client import FOR_MODELS, Client, drop_none, path_of
from organism.cli.send import read_json
from organism.cli.show import Columns, Rows, clock_time, compact, ids_text, say, show_list, state_of
from organism.model.redact import visible


def kill(options: take.Kill) -> None:
    _say_state(options, Client(options).post(path_of("threads", options.thread, "kill")))


def pause(options: take.Control) -> None:
    _say_state(options, Client(options).post(f"{_target(options)}/pause"))


def resume(options: take.Control) -> None:
    _say_state(options, Client(options).post(f"{_target(options)}/resume"))


def _target(options: take.Control) -> str:
    named = drop_none({"agents": options.agent, "threads": options.thread})
    meant = [path_of(*each) for each in named.items()] + (["/organism"] if options.everything else [])
    if len(meant) != 1:
        raise typer.BadParameter("name one of them: an AGENT, --thread THREAD or --all.")
    return meant[0]


def _say_state(options: take.Remote, said: Mapping[str, Any]) -> None:
    say(options, said, Text.assemble(said.get("id") or said.get("name") or "", " ", state_of(said)))


def reload(options: take.Remote) -> None:
    said = Client(options).post("/organism/reload")
    changes = [f"{what}: {', '.join(said[what])}" for what in ("added", "removed", "updated") if said[what]]
    say(options, said, "; ".join(changes) or "nothing has changed")


def stop(options: take.Remote) -> None:
    say(options, Client(options).post("/organism/stop"), "stopping: what runs gets its grace")


LETTERS: Final[Columns] = {
    "DEAD LETTER": "id",
    "AGENT": "agent",
    "CODE": "code",
    "ATTEMPTS": "attempts",
    "REASON": "reason",
}


def dead_letters(options: take.OpenItems) -> None:
    found = Client(options).rows("dead-letters", {"thread_id": options.thread}, options.limit)
    remedy = "correct what failed, organism reload, organism dead-letters replay DEAD_LETTER (or discard)"
    show_list(options, found, LETTERS, "no dead letters", remedy)


def replay(options: take.Replay) -> None:
    body = {} if options.payload is None else {"payload": read_json(options.payload, "--payload")}
    said = Client(options).post(path_of("dead-letters", options.message, "replay"), body, key=options.key)
    say(options, said, ids_text(said))


def discard(options: take.Discard) -> None:
    """Close it; its thread is shown as it then stands."""
    _say_state(options, Client(options).delete(path_of("dead-letters", options.message)))


APPROVALS: Final[Columns] = {
    "APPROVAL": "id",
    "AGENT": "agent",
    "STATUS": state_of,
    "EXPIRES": lambda approval: clock_time(approval["expires_at"]),
    "PREVIEW": lambda approval: compact(visible(approval["preview"])),
}


def approvals(options: take.Approvals) -> None:
    """Those of one status, or all."""
    status = None if options.status == "all" else options.status
    found = Client(options).rows("approvals", {"status": status, "thread_id": options.thread}, options.limit)
    remedy = "organism approvals resolve APPROVAL approve (or reject)"
    show_list(options, found, APPROVALS, "no approvals" if status is None else f"no {status} approvals", remedy)


def resolve_approval(options: take.Approval) -> None:
    edits = read_json(options.edits, "--edits")
    body = drop_none({"decision": options.decision, "edits": edits, "comment": options.comment or None})
    _say_state(options, Client(options).post(path_of("approvals", options.approval, "resolve"), body))


EFFECTS: Final[Columns] = {
    "EFFECT": "id",
    "AGENT": "agent",
    "SINCE": lambda effect: clock_time(effect["since"]),
    "KEY": "key",
}


def indeterminate(options: take.OpenItems) -> None:
    found = Client(options).rows("indeterminate", {"thread_id": options.thread}, options.limit)
    remedy = "find out what happened, organism indeterminate resolve EFFECT done (or redo, fail)"
    show_list(options, found, EFFECTS, "no effect is in doubt", remedy)


def resolve_effect(options: take.Indeterminate) -> None:
    """Say what became of it; its thread is shown as it then stands."""
    body = drop_none({"outcome": options.outcome, "result": read_json(options.result, "--result")})
    _say_state(options, Client(options).post(path_of("indeterminate", options.effect, "resolve"), body))


TOOLS: Final[Columns] = {
    "TOOL": lambda tool: tool["function"]["name"],
    "TAKES": lambda tool: _arguments(tool["function"]["parameters"]),
    "DOES": lambda tool: tool["function"]["description"].partition("\n")[0],
}


def tools(options: take.Remote) -> None:
    """Each tool that may be called, with the names of its arguments; those in brackets may be left out."""
    found = Client(options).get("/tools", base=FOR_MODELS)["data"]
    show_list(options, Rows(found, len(found)), TOOLS, "no tools")


def _arguments(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    return " ".join(name if name in needed else f"[{name}]" for name in schema.get("properties", ()))


def run_tool(options: take.RunTool) -> None:
    body = {"name": options.name, "arguments": read_json(options.arguments, "ARGUMENTS") or {}}
    said = Client(options).post("/tools/execute", body, key=options.key, base=FOR_MODELS)
    is_done = "result" in said
    running = "" if is_done else f"still running; `organism threads {said['thread_id']}` shows what came of it"
    say(options, said, compact(said["result"]) if is_done else running)
