"""The verbs that change something: control, dead letters, approvals, effects in doubt, and tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer
from rich.text import Text

from organism.cli import options as opts
from organism.cli.client import FOR_MODELS, Client, drop_none, path_of
from organism.cli.output import (
    Columns,
    Rows,
    changes_of,
    clock_time,
    compact,
    ids_text,
    note_rest,
    print_json,
    show_letters,
    show_list,
    show_text,
    state_of,
)
from organism.cli.send import read_json
from organism.model.redact import visible

ALL_TOOLS: Final = 10_000


def kill(options: opts.Kill) -> None:
    _show_state(options, Client(options).post(path_of("threads", options.thread, "kill")))


def pause(options: opts.Control) -> None:
    _show_state(options, Client(options).post(f"{_target(options)}/pause"))


def resume(options: opts.Control) -> None:
    _show_state(options, Client(options).post(f"{_target(options)}/resume"))


def _target(options: opts.Control) -> str:
    named = drop_none({"agents": options.agent, "threads": options.thread})
    meant = [path_of(*each) for each in named.items()] + (["/organism"] if options.everything else [])
    if len(meant) != 1:
        raise typer.BadParameter("name one of them: an AGENT, --thread THREAD or --all.")
    return meant[0]


def _show_state(options: opts.Remote, answer: Mapping[str, Any]) -> None:
    show_text(options, answer, Text.assemble(answer.get("id") or answer.get("name") or "", " ", state_of(answer)))


def reload(options: opts.Remote) -> None:
    answer = Client(options).post("/organism/reload")
    show_text(options, answer, changes_of(answer) or "loaded; no listener was added, removed or updated")


def stop(options: opts.Remote) -> None:
    show_text(options, Client(options).post("/organism/stop"), "stopping: what runs gets its grace")


GROUPS: Final[Columns] = {
    "GROUP": "group",
    "COUNT": lambda group: str(group["count"]),
    "AGENT": "agent",
    "NEWEST": lambda group: clock_time(group["newest"]["timestamp"]),
    "LINE": lambda group: f"{group['line']['file']}:{group['line']['line']}" if group["line"] else group["code"],
    "REASON": "reason",
}


def dead_letters(options: opts.DeadLetters) -> None:
    """Each failure with its lines of code, and below it those that failed with it; or those that are alike as one."""
    of = {"thread_id": options.thread}
    if options.group:
        found = Client(options).rows("groups", {**of, "group": "true"}, options.limit, "/dead-letters")
        show_list(options, found, GROUPS, "no failure is open")
        return
    found = Client(options).rows("dead-letters", of, options.limit)
    if options.json:
        print_json(found.rows)
        return
    note_rest(found)
    show_letters(found.rows)


def replay(options: opts.Replay) -> None:
    """Replay one with the rest of its failure, all of a thread, which is then shown as it is, or all of a group."""
    client = Client(options)
    if (message := _letter(options)) is None:
        if options.payload is not None:
            raise typer.BadParameter("--payload belongs to one dead letter: name it.")
        if options.group is not None:
            _settle_group(options, client, options.group, "replay", options.key)
            return
        path = path_of("threads", options.thread or "", "dead-letters", "replay")
        _show_state(options, client.post(path, key=options.key))
        return
    body = {} if options.payload is None else {"payload": read_json(options.payload, "--payload")}
    answer = client.post(path_of("dead-letters", message, "replay"), body, key=options.key)
    show_text(options, answer, ids_text(answer))


def discard(options: opts.Discard) -> None:
    """Discard it with the rest of its failure, all of a thread, which is then shown as it is, or all of a group."""
    message, client = _letter(options), Client(options)
    if options.group is not None:
        _settle_group(options, client, options.group, "discard")
        return
    thread = path_of("threads", options.thread or "", "dead-letters", "discard")
    _show_state(options, client.post(thread) if message is None else client.delete(path_of("dead-letters", message)))


def _letter(options: opts.Replay | opts.Discard) -> str | None:
    """The dead letter that is named; None if it is all of a thread or of a group."""
    if [options.message, options.thread, options.group].count(None) != 2:  # noqa: PLR2004 - all but one
        raise typer.BadParameter("name one of them: a MESSAGE, --thread THREAD or --group GROUP.")
    return options.message


def _settle_group(options: opts.Remote, client: Client, group: str, act: str, key: str | None = None) -> None:
    """Act on the failures of a group that are open now, piece by piece, and say how many were and why others not."""
    found = client.rows("groups", {"group": "true", "in_group": group}, 1, "/dead-letters").rows
    body = {"group": group, "until": found[0]["newest"]["position"] if found else 0}
    results: list[Any] = []
    left = 1
    while left:
        own_key = None if key is None else f"{key}-{len(results)}"  # each piece is a request of its own
        piece = client.post(path_of("dead-letters", act), body, key=own_key)
        results += piece["results"]
        left = piece["left"] if any("error" not in each for each in piece["results"]) else 0
    refused = {each["id"]: each["error"]["message"] for each in results if "error" in each}
    done = len({each["id"] for each in results if "error" not in each})
    lines = [f"{done} of the group: {'sent again' if act == 'replay' else 'discarded'}"]
    lines += [f"{message}: {why}" for message, why in refused.items()]
    show_text(options, {"done": done, "refused": refused}, "\n".join(lines))


APPROVALS: Final[Columns] = {
    "APPROVAL": "id",
    "AGENT": "agent",
    "STATUS": state_of,
    "EXPIRES": lambda approval: clock_time(approval["expires_at"]),
    "PREVIEW": lambda approval: compact(visible(approval["preview"])),
}


def approvals(options: opts.Approvals) -> None:
    """Those of one status, or all."""
    status = None if options.status == "all" else options.status
    found = Client(options).rows("approvals", {"status": status, "thread_id": options.thread}, options.limit)
    remedy = "organism approvals resolve APPROVAL approve (or reject)"
    show_list(options, found, APPROVALS, "no approvals" if status is None else f"no {status} approvals", remedy)


def resolve_approval(options: opts.Approval) -> None:
    edits = read_json(options.edits, "--edits")
    body = drop_none({"decision": options.decision, "edits": edits, "comment": options.comment or None})
    _show_state(options, Client(options).post(path_of("approvals", options.approval, "resolve"), body))


def check_approval(options: opts.ApprovalCheck) -> None:
    """The digest, or why the edits do not fit; then the command ends with 1."""
    edits = read_json(options.edits, "--edits")
    body = drop_none({"decision": "approve", "check": True, "edits": edits})
    answer = Client(options).post(path_of("approvals", options.approval, "resolve"), body)
    wrong = [f"{fault['param']}: {fault['message']}" for fault in answer["details"]]
    show_text(options, answer, answer["digest"] or "\n".join(wrong))
    if answer["digest"] is None:
        raise typer.Exit(1)


EFFECTS: Final[Columns] = {
    "EFFECT": "id",
    "AGENT": "agent",
    "SINCE": lambda effect: clock_time(effect["since"]),
    "KEY": "key",
}


def indeterminate(options: opts.OpenItems) -> None:
    found = Client(options).rows("indeterminate", {"thread_id": options.thread}, options.limit)
    remedy = "find out what happened, organism indeterminate resolve EFFECT done (or redo, fail)"
    show_list(options, found, EFFECTS, "no effect is in doubt", remedy)


def resolve_effect(options: opts.Indeterminate) -> None:
    """Resolve the effect; its thread is then shown as it is."""
    body = drop_none({"outcome": options.outcome, "result": read_json(options.result, "--result")})
    _show_state(options, Client(options).post(path_of("indeterminate", options.effect, "resolve"), body))


TOOLS: Final[Columns] = {
    "TOOL": lambda tool: tool["function"]["name"],
    "TAKES": lambda tool: _arguments(tool["function"]["parameters"]),
    "DOES": lambda tool: tool["function"]["description"].partition("\n")[0],
}


def tools(options: opts.Remote) -> None:
    """Each tool that may be called, with the names of its arguments; those in brackets may be left out."""
    found = Client(options).get("/tools", base=FOR_MODELS)["data"]
    show_list(options, Rows(found, len(found)), TOOLS, "no tools")


CHANGED_TOOLS: Final[Columns] = {
    "TOOL": "name",
    "ACCEPTED": lambda tool: "another one" if tool["accepted"] else "never",
    "SAYS NOW": lambda tool: compact(visible(tool["description"])),
    "ARGUMENTS": lambda tool: compact(visible(tool["parameters"])),
    "DIGEST": "offered",
}


def accept_tool(options: opts.AcceptTool) -> None:
    """List the tools that wait, or accept one of them as it is now."""
    client = Client(options)
    found = client.rows("foreign-tools", {"status": "waiting"}, ALL_TOOLS)
    if options.name is None:
        remedy = "organism tools accept TOOL"
        show_list(options, found, CHANGED_TOOLS, "no tool waits to be accepted", remedy)
        return
    offered = (tool["offered"] for tool in found.rows if tool["name"] == options.name)
    digest = options.digest or next(offered, "0" * 64)  # the server says why if it does not wait
    answer = client.post(path_of("foreign-tools", options.name, "accept"), {"digest": digest}, options.key)
    show_text(options, answer, f"{answer['name']} is accepted as it is now, and in use.")


def _arguments(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    return " ".join(name if name in needed else f"[{name}]" for name in schema.get("properties", ()))


def run_tool(options: opts.RunTool) -> None:
    body = {"name": options.name, "arguments": read_json(options.arguments, "ARGUMENTS") or {}}
    answer = Client(options).post("/tools/execute", body, key=options.key, base=FOR_MODELS)
    is_done = "result" in answer
    running = "" if is_done else f"still running; `organism threads {answer['thread_id']}` shows what came of it"
    show_text(options, answer, compact(answer["result"]) if is_done else running)
