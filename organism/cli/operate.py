"""The verbs that change something: control, dead letters, approvals, effects in doubt, and calls of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer

from organism.cli import options as take
from organism.cli.client import FOR_MODELS, Client, given, path_of
from organism.cli.send import json_of
from organism.cli.show import Rows, compact, moment, out, print_json, show_list, state
from organism.model.redact import visible

LETTER_COLUMNS: Final = ("DEAD LETTER", "AGENT", "CODE", "ATTEMPTS", "REASON")
APPROVAL_COLUMNS: Final = ("APPROVAL", "AGENT", "STATUS", "EXPIRES", "PREVIEW")
EFFECT_COLUMNS: Final = ("EFFECT", "AGENT", "SINCE", "KEY")


def kill(options: take.Kill) -> None:
    _show_state(Client(options).post(path_of("threads", options.thread, "kill")), options)


def pause(options: take.Control) -> None:
    _show_state(Client(options).post(f"{_target(options)}/pause"), options)


def resume(options: take.Control) -> None:
    _show_state(Client(options).post(f"{_target(options)}/resume"), options)


def _target(options: take.Control) -> str:
    meant = []
    if options.agent is not None:
        meant.append(path_of("agents", options.agent))
    if options.thread is not None:
        meant.append(path_of("threads", options.thread))
    if options.everything:
        meant.append("/organism")
    if len(meant) != 1:
        raise typer.BadParameter("name one of them: an AGENT, --thread THREAD or --all.")
    return meant[0]


def _show_state(said: Mapping[str, Any], options: take.Remote) -> None:
    if options.json:
        print_json(said)
        return
    now = said.get("state") or said.get("status") or ""
    out().print(said.get("id") or said.get("name") or "", state(now, paused=bool(said.get("paused"))))


def reload(options: take.Remote) -> None:
    said = Client(options).post("/organism/reload")
    if options.json:
        print_json(said)
        return
    changes = [f"{what}: {', '.join(said[what])}" for what in ("added", "removed", "updated") if said[what]]
    out().print("; ".join(changes) or "nothing has changed")


def stop(options: take.Remote) -> None:
    said = Client(options).post("/organism/stop")
    if options.json:
        print_json(said)
    else:
        out().print("stopping: what runs gets its grace")


def dead_letters(options: take.OpenItems) -> None:
    found = Client(options).rows("dead-letters", {"thread_id": options.thread}, options.limit)
    show_list(options, found, LETTER_COLUMNS, _letter_row, "no dead letters")


def _letter_row(letter: Mapping[str, Any]) -> tuple[Any, ...]:
    return letter["id"], letter["agent"], letter["code"], str(letter["attempts"]), letter["reason"]


def replay(options: take.Replay) -> None:
    body = {} if options.payload is None else {"payload": json_of(options.payload, "--payload")}
    said = Client(options).post(path_of("dead-letters", options.message, "replay"), body, key=options.key)
    if options.json:
        print_json(said)
    else:
        out().print(f"thread   {said['thread_id']}\nmessage  {said['message_id']}\nposition {said['position']}")


def discard(options: take.Discard) -> None:
    """Close it; its thread is shown as it then stands."""
    _show_state(Client(options).delete(path_of("dead-letters", options.message)), options)


def approvals(options: take.Approvals) -> None:
    """Those of one status, or all."""
    status = None if options.status == "all" else options.status
    found = Client(options).rows("approvals", {"status": status, "thread_id": options.thread}, options.limit)
    empty = "no approvals" if status is None else f"no {status} approvals"
    show_list(options, found, APPROVAL_COLUMNS, _approval_row, empty)


def _approval_row(approval: Mapping[str, Any]) -> tuple[Any, ...]:
    preview = compact(visible(approval["preview"]))
    return approval["id"], approval["agent"], state(approval["status"]), moment(approval["expires_at"]), preview


def resolve_approval(options: take.Approval) -> None:
    edits = json_of(options.edits, "--edits")
    body = given({"decision": options.decision, "edits": edits, "comment": options.comment or None})
    _show_state(Client(options).post(path_of("approvals", options.approval, "resolve"), body), options)


def indeterminate(options: take.OpenItems) -> None:
    found = Client(options).rows("indeterminate", {"thread_id": options.thread}, options.limit)
    show_list(options, found, EFFECT_COLUMNS, _effect_row, "no effect is in doubt")


def _effect_row(effect: Mapping[str, Any]) -> tuple[Any, ...]:
    return effect["id"], effect["agent"], moment(effect["since"]), effect["key"]


def resolve_effect(options: take.Indeterminate) -> None:
    """Say what became of it; its thread is shown as it then stands."""
    body = given({"outcome": options.outcome, "result": json_of(options.result, "--result")})
    _show_state(Client(options).post(path_of("indeterminate", options.effect, "resolve"), body), options)


def tools(options: take.Remote) -> None:
    """Each tool that may be called, with the names of its arguments; those in brackets may be left out."""
    found = Client(options).get("/tools", base=FOR_MODELS)["data"]
    show_list(options, Rows(found, len(found)), ("TOOL", "TAKES", "DOES"), _tool_row, "no tools")


def _tool_row(tool: Mapping[str, Any]) -> tuple[str, str, str]:
    function = tool["function"]
    needed = function["parameters"].get("required", ())
    takes = (name if name in needed else f"[{name}]" for name in function["parameters"].get("properties", ()))
    return function["name"], " ".join(takes), function["description"].partition("\n")[0]


def run_tool(options: take.RunTool) -> None:
    body = {"name": options.name, "arguments": json_of(options.arguments, "ARGUMENTS") or {}}
    said = Client(options).post("/tools/execute", body, key=options.key, base=FOR_MODELS)
    if options.json:
        print_json(said)
    elif "result" in said:
        out().print(compact(said["result"]))
    else:
        out().print(f"still running; `organism threads {said['thread_id']}` shows what came of it")
