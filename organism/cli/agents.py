"""``organism agents``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import typer

from organism.cli.client import Client
from organism.cli.options import Agents
from organism.cli.show import fields, moment, out, print_document, print_json, state, table

COLUMNS: Final = ("AGENT", "STATE", "WAITING", "MESSAGES", "DESCRIPTION")
JSON_SCHEMA: Final = {"Accept": "application/schema+json"}
ALL: Final = 100_000


def agents(options: Agents) -> None:
    """All of them, or one: as it stands, its section of the configuration, or its schema."""
    client = Client(options)
    if options.agent is not None:
        _one(client, options, f"/agents/{quote(options.agent, safe='')}")
        return
    if options.config or options.schema:
        raise typer.BadParameter("name the agent whose it is: organism agents AGENT --config or --schema.")
    found = client.rows("agents", {}, ALL).rows
    if options.json:
        print_json(found)
    else:
        table(COLUMNS, map(_row, found), "there are no agents")


def _row(agent: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        agent["name"],
        state(agent["state"], paused=agent["paused"]),
        str(agent["queue_depth"]),
        str(agent["message_count"]),
        agent["description"],
    )


def _one(client: Client, options: Agents, path: str) -> None:
    if options.config and options.schema:
        raise typer.BadParameter("--config and --schema are two things: ask for one of them.")
    if options.schema and not options.json:
        out().print(client.text(f"{path}/schema").rstrip())
    elif options.schema:
        print_json(client.get(f"{path}/schema", headers=JSON_SCHEMA))
    elif options.config:
        section = client.get(f"{path}/config")
        (print_json if options.json else print_document)(section)
    else:
        _show(client.get(path), options)


def _show(agent: Mapping[str, Any], options: Agents) -> None:
    if options.json:
        print_json(agent)
        return
    fields(
        {
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
    )
