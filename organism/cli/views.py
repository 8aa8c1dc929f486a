"""The verbs that show what is there: ``status``, ``agents``, ``threads``, ``messages``, ``usage`` and the like."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import typer

from organism.cli import options as take
from organism.cli.client import Client, path_of
from organism.cli.exits import Exit
from organism.cli.show import (
    Rows,
    compact,
    message_line,
    moment,
    out,
    placed,
    print_document,
    print_json,
    refuse,
    show_list,
    show_one,
    state,
    table,
)

AGENT_COLUMNS: Final = ("AGENT", "STATE", "WAITING", "MESSAGES", "DESCRIPTION")
THREAD_COLUMNS: Final = ("THREAD", "STATUS", "MESSAGES", "LAST", "PARTICIPANTS")
MESSAGE_COLUMNS: Final = ("MESSAGE", "FROM → TO", "PAYLOAD")
USAGE_COLUMNS: Final = ("AGENT", "CALLS", "FAILED", "TOKENS", "USD", "LAST")
JSON_SCHEMA: Final = {"Accept": "application/schema+json"}
ALL: Final = 100_000


def status(options: take.Remote) -> None:
    client = Client(options)
    said = client.get("/organism")
    named = {
        "organism": said["name"],
        "status": state(said["status"]),
        "address": client.place.url,
        "up for": str(timedelta(seconds=int(said["uptime_seconds"]))),
        "agents": str(said["agent_count"]),
        "threads": f"{said['active_threads']} active",
        "messages": str(said["total_messages"]),
        "position": str(said["position"]),
        "version": said["version"],
    }
    show_one(options, said, named)


def config(options: take.Remote) -> None:
    """The configuration as the server took it."""
    said = Client(options).get("/organism/config")
    (print_json if options.json else print_document)(said)


def graph(options: take.Graph) -> None:
    """Each listener and whom it may write to unasked, as lines, data or a diagram."""
    client = Client(options)
    if options.mermaid:
        out().print(client.text("/organism/graph", {"format": "mermaid"}).rstrip())
        return
    found = client.get("/organism/graph")
    if options.json:
        print_json(found)
        return
    peers: dict[str, list[str]] = {node["name"]: [] for node in found["nodes"]}
    for edge in found["edges"]:
        peers[edge["from"]].append(edge["to"])
    rows = ((node["name"], node["kind"], ", ".join(peers[node["name"]]) or "-") for node in found["nodes"])
    table(("NAME", "KIND", "MAY WRITE TO"), rows, "there are no listeners")


def errors(options: take.Errors) -> None:
    entries = Client(options).get("/errors")["entries"]
    if options.code is None:
        show_list(options, Rows(entries, len(entries)), ("CODE", "STATUS", "MEANING"), _error_row, "none")
        return
    entry = next((entry for entry in entries if entry["code"] == options.code), None)
    if entry is None:
        refuse(Exit.NOT_FOUND, f"There is no error code {options.code!r}.", "`organism errors` lists them.")
    code, status_code, meaning = _error_row(entry)
    named = {"code": code, "status": status_code, "meaning": meaning, "next": entry["remediation"]}
    show_one(options, entry, named)


def _error_row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return entry["code"], str(entry["http_status"]), entry["description"]


def agents(options: take.Agents) -> None:
    """All of them, or one: as it stands, its section of the configuration, or its schema."""
    client = Client(options)
    if options.agent is not None:
        _agent(client, options, path_of("agents", options.agent))
        return
    if options.config or options.schema:
        raise typer.BadParameter("name the agent whose it is: organism agents AGENT --config or --schema.")
    show_list(options, client.rows("agents", {}, ALL), AGENT_COLUMNS, _agent_row, "there are no agents")


def _agent_row(agent: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        agent["name"],
        state(agent["state"], paused=agent["paused"]),
        str(agent["queue_depth"]),
        str(agent["message_count"]),
        agent["description"],
    )


def _agent(client: Client, options: take.Agents, path: str) -> None:
    if options.config and options.schema:
        raise typer.BadParameter("--config and --schema are two things: ask for one of them.")
    if options.schema and not options.json:
        out().print(client.text(f"{path}/schema").rstrip())
        return
    if options.schema:
        print_json(client.get(f"{path}/schema", headers=JSON_SCHEMA))
        return
    if options.config:
        section = client.get(f"{path}/config")
        (print_json if options.json else print_document)(section)
        return
    agent = client.get(path)
    named = {
        "agent": agent["name"],
        "state": state(agent["state"], paused=agent["paused"]),
        "description": agent["description"],
        "takes": agent["payload_class"],
        "peers": ", ".join(agent["peers"]),
        "thread": agent["current_thread"],
        "waiting": str(agent["queue_depth"]),
        "messages": str(agent["message_count"]),
        "last": moment(agent["last_activity"]),
        "model": agent["model"],
    }
    show_one(options, agent, named)


def threads(options: take.Threads) -> None:
    """The newest of them, or one with its messages."""
    client = Client(options)
    if options.thread is not None:
        _thread(client.get(path_of("threads", options.thread)), options)
        return
    query = {"status": options.status, "agent": options.agent, "since": options.since}
    found = client.rows("threads", query, options.limit)
    empty = "there are no such threads" if any(query.values()) else "no thread yet"
    show_list(options, found, THREAD_COLUMNS, _thread_row, empty)


def _thread_row(thread: Mapping[str, Any]) -> tuple[Any, ...]:
    """What went wrong is worth more than who took part."""
    return (
        thread["id"],
        state(thread["status"], paused=thread["paused"]),
        str(thread["message_count"]),
        moment(thread["last_activity"]),
        thread["error"] or ", ".join(thread["participants"]),
    )


def _thread(thread: Mapping[str, Any], options: take.Threads) -> None:
    named = {
        "thread": thread["id"],
        "status": state(thread["status"], paused=thread["paused"]),
        "error": thread["error"],
        "participants": ", ".join(thread["participants"]),
        "begun": moment(thread["created_at"]),
        "last": moment(thread["last_activity"]),
    }
    show_one(options, thread, named)
    if options.json:
        return
    for message in thread["messages"]:
        out().print(placed(message["position"], message_line(message)))
    if thread["next"]:
        total = thread["message_count"]
        out().print(f"{len(thread['messages'])} of {total}; organism messages --thread {thread['id']} --limit {total}")


def messages(options: take.Messages) -> None:
    """The newest of them in their order, or one."""
    client = Client(options)
    xml = "true" if options.xml else None
    if options.message is not None and not options.why:
        _message(client.get(path_of("messages", options.message), {"xml": xml}), options)
        return
    found = _path_of_causes(client, options, xml) if options.why else _newest(client, options, xml)
    show_list(options, found, MESSAGE_COLUMNS, _message_row, "no such message")


def _path_of_causes(client: Client, options: take.Messages, xml: str | None) -> Rows:
    """The message itself comes first, the injection at the root last."""
    rows: list[Any] = []
    wanted = options.message
    if wanted is None:
        raise typer.BadParameter("name the message whose causes you want: organism messages MESSAGE --why.")
    while wanted is not None:
        found = client.get(path_of("messages", wanted, "why"), {"xml": xml})
        rows += found["messages"]
        wanted = found["next"]
    return Rows(rows, len(rows))


def _newest(client: Client, options: take.Messages, xml: str | None) -> Rows:
    """The list begins with the oldest: how many there are says where its end begins."""
    query = {"agent": options.agent, "since": options.since, "q": options.text}
    path = "/messages" if options.thread is None else path_of("threads", options.thread, "messages")
    total = client.get(path, {**query, "limit": 1})["total"]
    query = {**query, "xml": xml, "offset": max(0, total - options.limit)}
    return client.rows("messages", query, options.limit, path)


def _message_row(message: Mapping[str, Any]) -> tuple[Any, ...]:
    route = f"{message['from']} → {message['to']}"
    return message["id"], route, message.get("xml") or f"{message['payload_type']} {compact(message['payload'])}"


def _message(message: Mapping[str, Any], options: take.Messages) -> None:
    named = {
        "message": message["id"],
        "thread": message["thread_id"],
        "position": str(message["position"]),
        "from": message["from"],
        "to": message["to"],
        "sent": moment(message["timestamp"]),
        "cause": message["cause"],
        "payload": f"{message['payload_type']} {compact(message['payload'])}",
        "envelope": message.get("xml"),
    }
    show_one(options, message, named)


def usage(options: take.Usage) -> None:
    """Of all, by agent; or of one thread or agent, by model."""
    if options.thread is not None and options.agent is not None:
        raise typer.BadParameter("--thread and --agent are two accounts: ask for one of them.")
    path = "/usage"
    if options.thread is not None:
        path = path_of("usage", "threads", options.thread)
    elif options.agent is not None:
        path = path_of("usage", "agents", options.agent)
    found = Client(options).get(path, {"at": options.at})
    if options.json:
        print_json(found)
    elif "total" in found:
        rows = [*found["agents"], {**found["total"], "agent": "all"}]
        table(USAGE_COLUMNS, map(_usage_row, rows if found["agents"] else []), "no model was called yet")
    else:
        _usage(found, options)


def _usage_row(used: Mapping[str, Any]) -> tuple[str, ...]:
    calls, failed = str(used["calls"]), str(used["failed_calls"] or "-")
    return used["agent"], calls, failed, str(used["tokens"]), used["cost_usd"], moment(used["last_called"])


def _usage(used: Mapping[str, Any], options: take.Usage) -> None:
    by_model = (f"{each['model']}: {each['calls']} for {each['cost_usd']} USD" for each in used["models"])
    failed = f", {used['failed_calls']} failed" if used["failed_calls"] else ""
    named = {
        "agent": used.get("agent"),
        "thread": used.get("thread_id"),
        "calls": f"{used['calls']}{failed}",
        "tokens": f"{used['tokens']} ({used['input_tokens']} in, {used['output_tokens']} out)",
        "cost": f"{used['cost_usd']} USD" + (f", {used['cost_eur']} EUR" if used["cost_eur"] else ""),
        "took": str(timedelta(seconds=round(used["model_seconds"]))),
        "last": moment(used["last_called"]),
        "models": "; ".join(by_model),
    }
    show_one(options, used, named)
