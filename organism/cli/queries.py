"""The verbs that show what is there: ``status``, ``agents``, ``threads``, ``messages``, ``usage`` and the like."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import orjson
import typer
from rich.text import Text

from organism.cli import options as opts
from organism.cli import output
from organism.cli.client import FOR_MODELS, PAGE_ROWS, Client, drop_none, path_of
from organism.cli.exits import Exit
from organism.model.times import spoken

JSON_SCHEMA: Final = {"Accept": "application/schema+json"}
ALL: Final = 100_000
WAITING_THREADS: Final = "organism threads THREAD shows what of it waits for you; --waiting lists only such"
LEAST_TIME: Final = 10**15
"""A time in 2001 in µs; a smaller number is a position or a count."""
WAITING: Final = {
    "approvals": "approvals list",
    "dead_letters": "dead-letters list",
    "indeterminate": "indeterminate list",
    "foreign_tools": "tools accept",
}
"""The verb that lists what waits for a person, by its name in the organism's answer."""


def status(options: opts.Remote) -> None:
    client = Client(options)
    organism = client.get("/organism")
    named = {
        "organism": organism["name"],
        "status": output.state_of(organism),
        "address": client.server.url,
        "up for": str(timedelta(seconds=int(organism["uptime_seconds"]))),
        "agents": str(organism["agent_count"]),
        "threads": f"{organism['active_threads']} active",
        "messages": str(organism["total_messages"]),
        "position": str(organism["position"]),
        "paused": output.paused(organism),
        "version": organism["version"],
    }
    output.show_object(options, organism, {**named, **_waiting(organism["waiting_for_people"])})


def _waiting(numbers: Mapping[str, int], of: str = "") -> dict[str, str]:
    """What waits for a person, each with the verb that lists it."""
    return {
        what.replace("_", " "): f"{number} waiting for you: organism {WAITING[what]}{of}"
        for what, number in numbers.items()
        if number
    }


def config(options: opts.Remote) -> None:
    """The configuration as the server took it."""
    answer = Client(options).get("/organism/config")
    output.show_document(options, answer)


def tenant(options: opts.TenantConfig) -> None:
    """Each key with its value and its source, after writing those that are given; a value is JSON, or else text."""
    client, changes = Client(options), {}
    for each in options.changes or ():
        key, sign, value = each.partition("=")
        if not sign:
            raise typer.BadParameter(f"expected KEY=VALUE; came {each!r}.")
        try:
            changes[key] = orjson.loads(value)
        except orjson.JSONDecodeError:
            changes[key] = value
    path, base = "/tenant/config", FOR_MODELS
    found = client.put(path, changes, base=base) if changes else client.get(path, base=base)
    if options.json:
        output.print_json(found)
        return
    rows = ((key, output.compact(said["value"]), said["source"]) for key, said in found.items())
    output.table(("KEY", "VALUE", "SOURCE"), rows, "no key")


def graph(options: opts.Graph) -> None:
    """Each listener and those to which it may send, as lines, data or a diagram."""
    client = Client(options)
    if options.mermaid:
        output.out().print(client.text("/organism/graph", {"format": "mermaid"}))
        return
    found = client.get("/organism/graph")
    if options.json:
        output.print_json(found)
        return
    peers = {node["name"]: ["anyone"] if node["any_peer"] else [] for node in found["nodes"]}
    for edge in found["edges"]:
        if edge["kind"] != "reply":
            peers[edge["from"]].append(edge["to"])
    rows = (
        (node["name"], node["kind"], node["group"] or "-", ", ".join(peers[node["name"]]) or "-")
        for node in found["nodes"]
    )
    output.table(("NAME", "KIND", "GROUP", "MAY WRITE TO"), rows, "there are no listeners")


ERRORS: Final[output.Columns] = {"CODE": "code", "STATUS": "http_status", "MEANING": "description"}


def errors(options: opts.Errors) -> None:
    entries = Client(options).get("/errors")["entries"]
    if options.code is None:
        output.show_list(options, output.Rows(entries, len(entries)), ERRORS, "none")
        return
    entry = next((entry for entry in entries if entry["code"] == options.code), None)
    if entry is None:
        output.refuse(Exit.NOT_FOUND, f"There is no error code {options.code!r}.", "`organism errors` lists them.")
    named = {title.lower(): cell for title, cell in zip(ERRORS, output.cells(entry, ERRORS), strict=True)}
    output.show_object(options, entry, {**named, "next": entry["remediation"]})


AGENTS: Final[output.Columns] = {
    "AGENT": "name",
    "STATE": output.state_of,
    "WAITING": "queue_depth",
    "MESSAGES": "message_count",
    "DESCRIPTION": "description",
}


def agents(options: opts.Agents) -> None:
    """All of them, or one: its state, its section of the configuration, or its schema."""
    client = Client(options)
    if options.agent is not None:
        _agent(client, options, path_of("agents", options.agent))
        return
    if options.config or options.schema:
        raise typer.BadParameter("name the agent whose it is: organism agents AGENT --config or --schema.")
    output.show_list(options, client.rows("agents", {}, ALL), AGENTS, "there are no agents")


def _agent(client: Client, options: opts.Agents, path: str) -> None:
    if options.config and options.schema:
        raise typer.BadParameter("--config and --schema are two things: ask for one of them.")
    if options.schema and options.json:
        output.print_json(client.get(f"{path}/schema", headers=JSON_SCHEMA))
    elif options.schema:
        output.out().print(client.text(f"{path}/schema"))
    elif options.config:
        output.show_document(options, client.get(f"{path}/config"))
    else:
        agent = client.get(path)
        named = {
            "agent": agent["name"],
            "state": output.state_of(agent),
            "paused": output.paused(agent),
            "group": agent["group"],
            "description": agent["description"],
            "takes": agent["payload_class"],
            "peers": ", ".join(agent["peers"]),
            "thread": agent["current_thread"],
            "waiting": _queued(agent),
            "messages": str(agent["message_count"]),
            "last": output.clock_time(agent["last_activity"]),
            "model": agent["model"],
        }
        output.show_object(options, agent, named)
        if not options.json:
            _show_handlings(agent)


def _queued(agent: Mapping[str, Any]) -> str:
    since = agent["oldest_waiting_at"]
    return f"{agent['queue_depth']}, the oldest since {output.clock_time(since)}" if since else "0"


def _show_handlings(row: Mapping[str, Any]) -> None:
    """What an agent works on, or what works on a thread: a line each, with what that waits for."""
    rows = (
        (
            handling["agent"],
            handling["message_id"],
            str(handling["attempt"]),
            output.clock_time(handling["started_at"]),
            _waits_for(handling["waits_for"]),
        )
        for handling in row["handlings"]
    )
    if row["handlings"]:
        output.table(("WORKS", "ON", "ATTEMPT", "SINCE", "WAITS FOR"), rows, "")
    if row["open_handlings"] > len(row["handlings"]):
        output.note(f"the oldest {len(row['handlings'])} of {row['open_handlings']}")


def _waits_for(waited: Mapping[str, Any] | None) -> str:
    if waited is None:
        return "-"
    return f"{waited['kind']} {waited['name'] or ''} since {output.clock_time(waited['since'])}"


THREADS: Final[output.Columns] = {
    "THREAD": "id",
    "STATUS": output.state_of,
    "MESSAGES": "message_count",
    "LAST": lambda thread: output.clock_time(thread["last_activity"]),
    "WAITS": lambda thread: str(sum(thread["waiting_for_people"].values()) or "-"),
    "TITLE": lambda thread: thread["error"] or thread["title"] or "-",
}
"""WAITS counts what waits for a person. What went wrong matters more than what it is about."""


def threads(options: opts.Threads) -> None:
    """The newest of them, or one with its messages."""
    client = Client(options)
    if options.thread is None:
        query = {"status": options.status, "agent": options.agent, "since": options.since}
        query["waiting"] = "true" if options.waiting else None
        found = client.rows("threads", query, options.limit)
        empty = "there are no such threads" if any(query.values()) else "no thread yet"
        is_waiting = any(any(thread["waiting_for_people"].values()) for thread in found.rows)
        output.show_list(options, found, THREADS, empty, WAITING_THREADS if is_waiting else "")
        return
    thread = client.get(path_of("threads", options.thread))
    named = {
        "thread": thread["id"],
        "status": output.state_of(thread),
        "paused": output.paused(thread),
        "title": thread["title"],
        "error": thread["error"],
        "participants": ", ".join(thread["participants"]),
        "begun": output.clock_time(thread["created_at"]),
        "last": output.clock_time(thread["last_activity"]),
        **_waiting(thread["waiting_for_people"], f" --thread {thread['id']}"),
    }
    output.show_object(options, thread, named)
    if options.json:
        return
    _show_handlings(thread)
    for message in thread["messages"]:
        output.out().print(output.with_position(message["position"], output.message_line(message)))
    if thread["next"]:
        total = thread["message_count"]
        output.out().print(
            f"{len(thread['messages'])} of {total}; organism messages --thread {thread['id']} --limit {total}"
        )


MESSAGES: Final[output.Columns] = {
    "MESSAGE": "id",
    "FROM → TO": output.route,
    "PAYLOAD": lambda message: message.get("xml") or _payload(message),
}


def messages(options: opts.Messages) -> None:
    """The newest of them in their order, or one."""
    client = Client(options)
    xml = "true" if options.xml else None
    if options.message is not None and not options.why:
        query = {"xml": xml, "handlings": "true"}
        _message(client.get(path_of("messages", options.message), query), options)
        return
    found = _path_of_causes(client, options, xml) if options.why else _newest(client, options, xml)
    output.show_list(options, found, MESSAGES, "no such message")


def _path_of_causes(client: Client, options: opts.Messages, xml: str | None) -> output.Rows:
    """The message itself comes first, the injection at the root last."""
    rows: list[Any] = []
    wanted = options.message
    if wanted is None:
        raise typer.BadParameter("name the message whose causes you want: organism messages MESSAGE --why.")
    while wanted is not None:
        found = client.get(path_of("messages", wanted, "why"), {"xml": xml})
        rows += found["messages"]
        wanted = found["next"]
    return output.Rows(rows, len(rows))


def _newest(client: Client, options: opts.Messages, xml: str | None) -> output.Rows:
    """The list begins with the oldest, so its newest page is found by the total."""
    query = {"agent": options.agent, "since": options.since, "q": options.text}
    path = "/messages" if options.thread is None else path_of("threads", options.thread, "messages")
    total = client.get(path, {**query, "limit": 1})["total"]
    query = {**query, "xml": xml, "offset": max(0, total - options.limit)}
    return client.rows("messages", query, options.limit, path)


def _payload(message: Mapping[str, Any]) -> str:
    return f"{message['payload_type']} {output.compact(message['payload'])}"


def _message(message: Mapping[str, Any], options: opts.Messages) -> None:
    named = {
        "message": message["id"],
        "thread": message["thread_id"],
        "position": str(message["position"]),
        "from": message["from"],
        "to": message["to"],
        "sent": output.clock_time(message["timestamp"]),
        "cause": message["cause"],
        "state": message["handling"]["state"],
        **{f"attempt {each['attempt']}": _attempt(each) for each in message["handling"]["attempts"]},
        "payload": _payload(message),
        "envelope": message.get("xml"),
    }
    output.show_object(options, message, named)


def _attempt(attempt: Mapping[str, Any]) -> str:
    begun = f"{output.clock_time(attempt['started_at'])}, {attempt['outcome'] or 'not ended'}"
    ended = f" after {output.lasted(attempt['duration_ms'])}" if attempt["outcome"] else ""
    line = attempt["line"]
    where = f" at {line['file']}:{line['line']}" if line else ""
    return f"{begun}{ended}{where}" + (f": {attempt['error']}" if attempt["error"] else "")


BUDGETS: Final[output.Columns] = {
    "BUDGET OF TODAY": lambda budget: f"{budget['of']} {budget['name']}",
    "USED": lambda budget: f"{budget['used']:g}",
    "OF": lambda budget: f"{budget['limit']:g} {budget['unit']}",
    "RESETS": lambda budget: output.clock_time(budget["resets_at"]),
}


def _what(found: Mapping[str, Any]) -> str | Text:
    """What is said of it: of a message its route, and its text with what was searched for."""
    if found["kind"] != "message":
        return str(found["description"] if found["kind"] == "agent" else found["title"] or "")
    hit = found["hit"]
    if hit is None:
        return f"{output.route(found)} {found['payload_type']}"
    text, start, end = hit["text"], hit["start"], hit["end"]
    return Text.assemble(f"{output.route(found)} ", text[:start], (text[start:end], "bold"), text[end:])


FOUND: Final[output.Columns] = {
    "KIND": "kind",
    "NAME OR ID": lambda found: found.get("name") or found["id"],
    "WHAT": _what,
}


def find(options: opts.Find) -> None:
    """Agents, threads and messages, in this order."""
    found = Client(options).get("/find", {"q": options.text, "limit": options.limit})
    if options.json:
        output.print_json(found)
        return
    kinds = {"agents": "agent", "threads": "thread", "messages": "message"}
    rows = [{"kind": kind, **row} for name, kind in kinds.items() for row in found[name]]
    output.table([*FOUND], (output.cells(row, FOUND) for row in rows), "nothing was found")
    if not found["complete"]:
        output.note("only the newest payloads were searched; organism messages --text TEXT searches all")


USAGE: Final[output.Columns] = {
    "AGENT": "agent",
    "CALLS": "calls",
    "FAILED": lambda used: str(used["failed_calls"] or "-"),
    "TOKENS": "tokens",
    "USD": "cost_usd",
    "LAST": lambda used: output.clock_time(used["last_called"]),
}


def usage(options: opts.Usage) -> None:
    """Of all, by agent; or of one thread or agent, by model."""
    if options.by is not None:
        _billed(options)
        return
    accounts = drop_none({"threads": options.thread, "agents": options.agent})
    if len(accounts) > 1:
        raise typer.BadParameter("--thread and --agent are two accounts: ask for one of them.")
    path = next((path_of("usage", *each) for each in accounts.items()), "/usage")
    found = Client(options).get(path, {"at": options.at})
    if "total" not in found:
        _usage(found, options)
    elif options.json:
        output.print_json(found)
    else:
        used = [*found["agents"], {**found["total"], "agent": "all"}] if found["agents"] else []
        output.table([*USAGE], (output.cells(row, USAGE) for row in used), "no model was called yet")
        if found["budgets"]:
            output.table([*BUDGETS], (output.cells(row, BUDGETS) for row in found["budgets"]), "")


def _billed(options: opts.Usage) -> None:
    query = {"granularity": options.by, "from": options.since, "to": options.until}
    found = Client(options).get("/billing/usage", query, base=FOR_MODELS)
    if options.json:
        output.print_json(found)
        return
    columns = {"FROM": "start", **{name: shown for name, shown in USAGE.items() if name not in {"AGENT", "LAST"}}}
    rows = [*found["buckets"], {**found["total"], "start": "all"}] if found["buckets"] else []
    output.table([*columns], (output.cells(row, columns) for row in rows), "no model was called then")


def _usage(used: Mapping[str, Any], options: opts.Usage) -> None:
    by_model = (f"{each['model']}: {each['calls']} for {each['cost_usd']} USD" for each in used["models"])
    failed = f", {used['failed_calls']} failed" if used["failed_calls"] else ""
    named = {
        "agent": used.get("agent"),
        "thread": used.get("thread_id"),
        "calls": f"{used['calls']}{failed}",
        "tokens": f"{used['tokens']} ({used['input_tokens']} in, {used['output_tokens']} out)",
        "cost": f"{used['cost_usd']} USD" + (f", {used['cost_eur']} EUR" if used["cost_eur"] else ""),
        "took": str(timedelta(seconds=round(used["model_seconds"]))),
        "last": output.clock_time(used["last_called"]),
        "models": "; ".join(by_model),
    }
    output.show_object(options, used, named)


def events(options: opts.Events) -> None:
    """The events in their order, or the newest first, page by page."""
    client, left = Client(options), options.limit
    asked = {"after": options.after, "until": options.until, "thread": options.thread, "type": options.type}
    more = {"content": "true" if options.content else None, "order": "desc" if options.newest else None}
    query = drop_none({**asked, **more})
    while left > 0:
        found = client.get("/log", {**query, "limit": min(left, PAGE_ROWS)})
        for event in found["events"]:
            if options.json:
                output.print_json(event)
            else:
                _show_event(event)
        left -= len(found["events"])
        if found["next"] is None:
            return
        query["until" if options.newest else "after"] = found["next"]


def _show_event(event: Mapping[str, Any]) -> None:
    data = dict(event["data"])
    for name, value in data.items():
        if name.endswith("_at") and isinstance(value, int) and value >= LEAST_TIME:
            data[name] = spoken(value)  # events have times in µs since 1970
    if "content" in event:
        data["content"] = event["content"]
    line = Text.assemble(
        output.clock_time(event["at"]), " ", (event["type"], "bold"), " ", (output.compact(data), "dim")
    )
    output.print_line(output.with_position(event["position"], line))
